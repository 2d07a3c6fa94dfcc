"""What quadboost-report does: a table with its target read whole, and a page written."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
import pyarrow as pa

from ..explain.report import report
from ..model.ensemble import Ensemble
from ..model.whole_file import check_output
from .predict import converted, features_of, missing_words
from .recognise import NUMBER, kind_of_levels, to_arrow
from .streams import STANDARD
from .tables import open_table
from .text_format import TextFormat


def write_report(ensemble: Ensemble, arguments: Namespace) -> None:
    if arguments.output == STANDARD:
        raise ValueError("a report is a file; give --output report.html")
    check_output(arguments.output, [arguments.model, arguments.table])
    file = open_table(arguments.table, TextFormat.of(arguments, missing_words(ensemble)))
    file.require([arguments.target])
    features = features_of(ensemble, file)
    table = file.read(list(dict.fromkeys([*features, arguments.target])))
    labels = [] if ensemble.classes is None else ensemble.classes.tolist()
    kind = kind_of_levels([labels], arguments.target) if labels else NUMBER
    targets = converted(table, arguments.target, kind, file.text).to_pylist()
    known = np.array([value is not None and value == value for value in targets], dtype=bool)
    columns = [converted(table, name, its_kind, file.text) for name, its_kind in features.items()]
    X = pa.Table.from_arrays(columns, names=list(features))
    y = np.array([value for value, is_known in zip(targets, known, strict=True) if is_known])
    report(ensemble, X.filter(to_arrow(known)), y, arguments.output, title=arguments.title)
    if not arguments.quiet:
        left_out = len(known) - len(y)
        more = f", {left_out:,} without a target left out" if left_out else ""
        print(f"{arguments.output}: report on {len(y):,} rows{more}")
