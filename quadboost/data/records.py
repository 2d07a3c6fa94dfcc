"""Rows as dicts from the names of features to values, such as a service gets them as JSON.

A feature that a record lacks is missing there; a name that is no feature is refused. Most records are read by
`RecordReader` in a few microseconds. What it cannot read, such as text among numbers, takes the way of all tables,
which also have the words for what is wrong. So do several rows with a level never seen, for many of them deserve a
warning.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .tables import Coded, Table, code_list, listed

UNSEEN = -1.0  # the number of a level that training has not seen


def has_text(values: Iterable[Any]) -> bool:
    return any(type(value) is str for value in values)


class RecordReader:
    """Reads records of numbers and known levels as rows of the matrix that a model scores.

    Parameters
    ----------
    names : sequence of str
        Of the features, in the order of the matrix.
    level_of : dict
        Feature index -> value -> number of its level. Others, and all where it is empty, are taken as numbers.
    """

    def __init__(self, names: Sequence[str], level_of: Mapping[int, Mapping[Any, int]]) -> None:
        self.names = names
        self._missing = dict.fromkeys(names, math.nan)
        self._values = itemgetter(*names) if len(names) > 1 else lambda record: (record[names[0]],)
        self._level_of = [(feature, levels, has_text(levels)) for feature, levels in level_of.items() if levels]
        # Unlike numpy, struct makes no numbers of text.
        self._pack = struct.Struct(f"{len(names)}d").pack

    def matrix(self, records: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """One row for each record; None if any of them needs more than is done here."""
        try:
            if len(records) == 1:  # saves a microsecond of three
                rows = self._row(records[0], UNSEEN)
            else:
                rows = b"".join([self._row(record) for record in records])
        except (struct.error, KeyError, TypeError, AttributeError, OverflowError):
            return None
        return np.frombuffer(rows).reshape(len(records), len(self.names))

    def _row(self, record: Mapping[str, Any], unseen: float | None = None) -> bytes:
        if type(record) is dict and len(record) == len(self.names):  # others may make values of keys they do not have
            values: Iterable[Any] = self._values(record)
        else:
            found = {**self._missing, **record}  # in the order of the features
            if len(found) > len(self.names):
                raise KeyError
            values = found.values()
        if not self._level_of:
            try:
                return self._pack(*values)
            except struct.error:  # most likely None
                pass
        row = [math.nan if value is None else value for value in values]
        for feature, levels, of_text in self._level_of:
            if (value := row[feature]) == value:  # not missing
                row[feature] = levels.get(value, unseen if of_text and type(value) is str else None)
        return self._pack(*row)


def records_table(records: Sequence[Any], names: Sequence[str] | None, owner: str) -> Table:
    """A table with the columns `names`, of which a record may lack some."""
    if names is None:
        raise ValueError(
            f"X has records, but {owner} was trained without names of features; give rows of "
            "values, or train on a frame with names"
        )
    known = set(names)
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(f"row {i} of X is {record!r:.60}, and others are dicts; give a dict for each row")
        extra = [name for name in record if name not in known]
        if extra:
            raise ValueError(f"row {i} of X has {listed(extra)}, which {owner} was not trained on; leave it out")

    def read(j: int, label: str) -> Coded:
        return code_list([record.get(names[j]) for record in records], label)

    return Table((len(records), len(names)), tuple(names), read)
