"""What quadboost-predict does: the rows of a table scored batch by batch, and a table of predictions written."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ..common.threads import resolve_threads
from ..model.ensemble import Ensemble
from ..model.whole_file import check_output
from .recognise import NUMBER, convert, kind_of_levels, to_arrow
from .streams import STANDARD
from .tables import Table, TableFile, open_table
from .text_format import MISSING, MISSING_TEXT, TextFormat
from .write_table import check_ending, table_writer


def predict(ensemble: Ensemble, arguments: Namespace) -> None:
    if arguments.proba and ensemble.classes is None:
        raise ValueError(f"--proba: {arguments.model} is a regression, which has no class probabilities")
    check_ending(arguments.output)
    if arguments.output != STANDARD:
        check_output(arguments.output, [arguments.model, arguments.table])
    if arguments.n_jobs is not None:
        pa.set_cpu_count(resolve_threads(arguments.n_jobs))
    file = open_table(arguments.table, TextFormat.of(arguments, missing_words(ensemble)))
    keep = list(dict.fromkeys(arguments.keep))
    file.require(keep)
    features = features_of(ensemble, file)

    def predicted(batch: Table, matrix: np.ndarray) -> Table:
        scores = ensemble.score_matrix(matrix, n_jobs=arguments.n_jobs)
        results = _results(ensemble, scores, arguments.proba, arguments.scores)
        columns = [*(batch.column(name) for name in keep), *map(to_arrow, results.values())]
        return pa.Table.from_arrays(columns, names=[*keep, *results])

    wanted = list(dict.fromkeys([*features, *keep]))
    none = predicted(pa.Table.from_batches([], file.schema), np.empty((0, ensemble.n_features)))
    for name, n in Counter(none.column_names).items():
        if n > 1:
            raise ValueError(f"--keep {name!r}: the predictions have a column of that name too")
    n_rows = 0
    with table_writer(arguments.output, none.schema) as write:
        for batch in file.batches(wanted):
            write(predicted(batch, _matrix(batch, features, ensemble, file.text, n_rows)).cast(none.schema))
            n_rows += batch.num_rows


def missing_words(ensemble: Ensemble) -> tuple[str, ...]:
    """The words for missing values that the model was trained with. The file may be a stranger's."""
    known = ensemble.info.get(MISSING_TEXT)
    return tuple(map(str, known)) if isinstance(known, list) else MISSING


def features_of(ensemble: Ensemble, file: TableFile) -> dict[str, str]:
    """The columns that are the features, in order, and what they must hold."""
    names = ensemble.feature_names
    if names is None:
        names = tuple(file.names)
        if len(names) != ensemble.n_features:
            raise ValueError(
                f"{file.path} has {len(names)} columns, but the model, which knows no names of columns, "
                f"was trained on {ensemble.n_features}"
            )
    file.require(names)
    levels = {**ensemble.categories, **{j: [[level] for level in order] for j, order in ensemble.schema.orders.items()}}
    return {name: kind_of_levels(levels[j], name) if j in levels else NUMBER for j, name in enumerate(names)}


def _matrix(
    batch: Table, features: dict[str, str], ensemble: Ensemble, text: TextFormat | None, first_row: int
) -> np.ndarray:
    columns = [converted(batch, name, kind, text, first_row) for name, kind in features.items()]
    return ensemble.matrix_of(pa.Table.from_arrays(columns, names=list(features)))


def converted(table: Table, name: str, kind: str, text: TextFormat | None, first_row: int = 0) -> pa.ChunkedArray:
    """A column as the model was trained on it; others are refused."""
    expected = f"but the model was trained on {kind} there"
    return convert(table.column(name), kind, name, text=text, expected=expected, first_row=first_row)


def _results(ensemble: Ensemble, scores: np.ndarray, proba: bool, with_scores: bool) -> dict[str, np.ndarray]:
    """The columns to write, by name."""
    results = _named("prediction", ensemble.predictions_of(scores), range(ensemble.n_outputs))
    classes = () if ensemble.classes is None else ensemble.classes.tolist()
    if proba:
        results |= _named("probability", ensemble.probabilities_of(scores), classes)
    if with_scores:
        results |= _named("score", scores, classes or range(ensemble.n_outputs))
    return results


def _named(name: str, values: np.ndarray, suffixes: Iterable[object]) -> dict[str, np.ndarray]:
    """One column under the name, or several under the name with a suffix."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{suffix}": column for suffix, column in zip(suffixes, values.T, strict=True)}
