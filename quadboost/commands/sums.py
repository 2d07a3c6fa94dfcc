"""What quadboost-sums does, and quadboost-train --from-sums: sums of tables in files, and training on them."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from ..estimators.plain import QuadBoostClassifier, QuadBoostRegressor
from ..model.ensemble import Ensemble, load
from ..model.file import MAGIC, ModelRecord, write_model
from ..model.whole_file import check_output
from ..parts.rows import memory_limit
from ..parts.sums import KeptSums
from ..parts.sums_file import load_sums
from .streams import STANDARD
from .text_format import TextFormat
from .train_data import REGRESSION, choose_task


def write_sums_of_table(arguments: Namespace) -> None:
    from .tables import open_table
    from .train_table import Reader

    like = None if arguments.voters is None else _loaded(arguments.voters)
    if like is not None:
        if arguments.features or arguments.drop or arguments.thresholds is not None:
            raise ValueError("--voters tells features and thresholds; leave out --features, --drop and --thresholds")
        arguments.features = list(like.schema.feature_names or ())
        arguments.task = "regression" if like.classes is None else "classification"
    file = open_table(arguments.table, TextFormat.of(arguments))
    check_output(arguments.output, [*file.paths, *([] if like is None else [arguments.voters])])
    examples = Reader(file, arguments).stream(file, memory_limit(arguments.memory), 0)
    task = arguments.task if like is not None else choose_task(examples.y, arguments.task, arguments.target)[0]
    kept = KeptSums.of(
        examples.X,
        like=like,
        regression=task == REGRESSION,
        thresholds=63 if arguments.thresholds is None else arguments.thresholds,
        categorical_features=examples.categorical,
    )
    kept.save(arguments.output)
    if not arguments.quiet:
        n_rows, voters = kept.sums.n_rows, kept.sums.voters
        print(f"sums of {n_rows} rows, {voters.n_features} features, {voters.n_voters} voters: {arguments.output}")


def _loaded(path: str) -> KeptSums | Ensemble:
    """Load a model or a file of sums; its first bytes say which it is."""
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    return load(path) if start == MAGIC else load_sums(path)


def train_from_sums(arguments: Namespace, options: dict[str, Any]) -> None:
    """Train on the rows of some files of sums, without those of others."""
    start = time.monotonic()
    for name in ("table", "example", "target", "weight", "validation", "eval_metric", "cv", "bound", "json"):
        if getattr(arguments, name):
            told = f"the table {arguments.table}" if name == "table" else f"--{name.replace('_', '-')}"
            raise ValueError(f"{told} has no meaning with --from-sums, which stands instead of a table; leave it out")
    if arguments.output == STANDARD:
        raise ValueError("--output -: a model is written to a file; name one")
    check_output(arguments.output, [*arguments.from_sums, *arguments.minus])
    kept = load_sums(arguments.from_sums[0])
    for path in arguments.from_sums[1:]:
        kept = kept + load_sums(path)
    for path in arguments.minus:
        kept = kept - load_sums(path)
    options = {name: value for name, value in options.items() if name != "categorical_features"}
    if kept.classes is None:
        model: Any = QuadBoostRegressor(**options)
    else:
        model = QuadBoostClassifier(**{**options, "calibration": None})
    ensemble = model.fit(kept).ensemble_
    write_model(arguments.output, ModelRecord.of(ensemble))
    if not arguments.quiet:
        if kept.classes is not None:
            print("probabilities are not calibrated: that would need the rows")
        print(
            f"trained on the sums of {kept.sums.n_rows} rows: {len(ensemble.feature)} voters, "
            f"{time.monotonic() - start:.1f} s, {arguments.output}"
        )
