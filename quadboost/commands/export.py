"""What quadboost-export does: a model file written as a program, or as a scorecard."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from ..export import to_c, to_javascript, to_onnx, to_scorecard, to_sql
from ..model.ensemble import Ensemble, load
from ..model.whole_file import check_output, whole_file
from .streams import STANDARD, check_standard_output

# Which options each target takes, besides the model.
OPTIONS: dict[str, tuple[str, ...]] = {
    "sql": ("table", "dialect", "keep", "contributions"),
    "onnx": ("dtype", "contributions", "missing_text"),
    "c": ("name",),
    "js": ("name",),
    "scorecard": ("points", "odds", "pdo", "digits"),
}
WRITERS: dict[str, Callable[..., Any]] = {"sql": to_sql, "onnx": to_onnx, "c": to_c, "js": to_javascript}


def export(arguments: Namespace) -> None:
    """Write the file that the arguments of the command ask for."""
    options = {name: value for name, value in vars(arguments).items() if name in _all_options()}
    target, output = arguments.to, arguments.output
    for name in options:
        if name not in OPTIONS[target]:
            takers = " or ".join(other for other, names in OPTIONS.items() if name in names)
            raise ValueError(f"--{name.replace('_', '-')} is an option of --to {takers}, not of --to {target}")
    if target == "sql" and "table" not in options:
        raise ValueError("--to sql needs --table, the name of the table to score")
    if output == STANDARD:
        if target in ("onnx", "scorecard"):
            raise ValueError(f"--to {target} writes no text; give the name of a file with --output")
        check_standard_output()
    else:
        check_output(output, [arguments.model])
    _write(load(arguments.model, arguments.sha256), target, output, options)


def _write(ensemble: Ensemble, target: str, output: str, options: dict[str, Any]) -> None:
    if target == "scorecard":
        to_scorecard(ensemble, **options).save(output)
        return
    result = WRITERS[target](ensemble, **options)
    if output == STANDARD:
        print(result, end="")
        return
    with whole_file(output) as file:
        file.write(result.encode() if isinstance(result, str) else result.SerializeToString())


def _all_options() -> set[str]:
    return {name for names in OPTIONS.values() for name in names}
