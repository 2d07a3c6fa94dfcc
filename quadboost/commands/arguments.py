"""The arguments of the commands, and what --help says of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

from .._version import __version__
from ..common.names import LOSSES, METRICS
from .streams import STANDARD, fail
from .text_format import DECIMALS

EXAMPLES = ("breast_cancer", "diabetes", "digits", "iris", "wine")

TABLE_HELP = """tables:
  CSV (.csv, .tsv, .txt, also with .gz; the first line names the columns), Parquet (.parquet), Feather and Arrow
  (.feather, .arrow); - is CSV from the standard input. A column of a text file holds numbers, true and false, or
  text; all of its values decide which. Empty fields, NA, NaN, null, None and ? are missing values. Text and
  true/false are categories.
"""

TRAIN_EXAMPLES = """examples:
  quadboost-train --example breast_cancer --output model.h5
  quadboost-train people.csv --target income --output model.h5
  quadboost-train people.csv --target income --drop id name --validation 0.2 --output model.h5
  quadboost-train day1.parquet --target price --task regression --penalty l2 --reg-lambda 0.01 \\
      --validation day2.parquet --weight amount --output model.h5 --json figures.json
"""

PREDICT_EXAMPLES = """examples:
  quadboost-predict model.h5 people.csv --output labels.csv
  quadboost-predict model.h5 people.csv --proba --keep id name --output labels.parquet
  quadboost-predict model.h5 people.csv.gz | sort | uniq -c
  quadboost-predict model.h5 - --delimiter tab --decimal , --encoding latin-1 <people.txt >labels.csv
  quadboost-predict model.h5 --describe
"""

REPORT_EXAMPLES = """examples:
  quadboost-report model.h5 unseen.csv --target income --output report.html
"""

EXPORT_EXAMPLES = """examples:
  quadboost-export model.h5 --to sql --table people --keep id --output scores.sql
  quadboost-export model.h5 --to sql --table public people --dialect postgres --output scores.sql
  quadboost-export model.h5 --to onnx --output model.onnx
  quadboost-export model.h5 --to c --name risk --output risk.c
  quadboost-export model.h5 --to js --output model.js
  quadboost-export model.h5 --to scorecard --points 600 --odds 50 --pdo 20 --output card.xlsx
"""

SUMS_EXAMPLES = """examples:
  quadboost-sums monday.csv --target outcome --output monday.sums
  quadboost-sums tuesday.csv --target outcome --voters monday.sums --output tuesday.sums
  quadboost-train --from-sums monday.sums tuesday.sums --output model.h5
"""

TARGET_HELP = "column to predict; rows where it is missing are left out"

NUMBER: dict[str, Any] = {"type": float, "metavar": "NUMBER"}
COUNT: dict[str, Any] = {"type": int, "metavar": "N"}
COLUMNS: dict[str, Any] = {"metavar": "COLUMN", "nargs": "+", "action": "extend"}
QUIET: dict[str, Any] = {"action": "store_true", "help": "print nothing but errors"}
SHA256: dict[str, Any] = {"metavar": "DIGEST", "help": "refuse a model file with another SHA-256"}

EXIT_STATUS = """exit status:
  0 on success, 2 on error (one line on stderr), 130 when interrupted. A file is written whole or not at all.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fail(self.prog, f"{message} (see {self.prog} --help)")


def _parser(name: str, usage: str, description: str, epilog: str) -> _Parser:
    return _Parser(
        name,
        usage=f"%(prog)s {usage}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )


def _add_general(parser: _Parser) -> None:
    group = parser.add_argument_group("general")
    group.add_argument("-h", "--help", action="help", help="show this help and exit")
    group.add_argument("--version", action="version", version=f"%(prog)s {__version__}")


def _add_text_format(parser: _Parser) -> None:
    group = parser.add_argument_group("text files")
    group.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        help="between fields, or the word tab (default: found from the name of the file and its first line)",
    )
    group.add_argument("--decimal", choices=DECIMALS, default=".", help="before the decimals of numbers (default: .)")
    group.add_argument("--encoding", metavar="NAME", default="utf-8", help="such as latin-1 or utf-16 (default: utf-8)")
    group.add_argument(
        "--missing-text",
        metavar="WORD",
        nargs="*",
        help="the words that are missing values, besides empty fields; none: empty fields alone "
        "(default: NA, NaN, null, None, ? and such; in predict: those of the training)",
    )


def train_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "quadboost-train",
        "TABLE --target COLUMN --output MODEL.h5 [options]",
        "Train an ensemble of decision stumps on a table and write it to a model file.",
        f"{TABLE_HELP}\n{TRAIN_EXAMPLES}\n{EXIT_STATUS}",
    )
    _add_training_data(parser)
    _add_text_format(parser)
    _add_options(parser)
    group = parser.add_argument_group("sums, instead of a table")
    sums: dict[str, Any] = {"metavar": "SUMS", "nargs": "+", "action": "extend", "default": []}
    group.add_argument("--from-sums", help="train on the rows of these files, which quadboost-sums wrote", **sums)
    group.add_argument("--minus", help="without the rows of these", **sums)
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="MODEL.h5", required=True, help="model file to write")
    bounds = "print bounds on the error on new rows, computed from the training rows (two classes)"
    group.add_argument("--bound", action="store_true", help=bounds)
    group.add_argument(
        "--json", metavar="FILE", help="write the summary to this file too, as JSON; -: to the standard output, alone"
    )
    group.add_argument("-q", "--quiet", **QUIET)
    _add_general(parser)
    return parser


def sums_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "quadboost-sums",
        "TABLE --target COLUMN --output DAY.sums [--voters FIRST.sums] [options]",
        "Sum the rows of a table at fixed thresholds, for quadboost-train --from-sums, where several such files are "
        "added and subtracted. They are not private: they hold counts of single rows.",
        f"{TABLE_HELP}\n{SUMS_EXAMPLES}\n{EXIT_STATUS}",
    )
    group = parser.add_argument_group("data")
    group.add_argument("table", metavar="TABLE", help="table to sum; put it before the options")
    group.add_argument("--target", metavar="COLUMN", required=True, help=TARGET_HELP)
    _add_columns(group)
    _add_text_format(parser)
    group = parser.add_argument_group("sums")
    group.add_argument("--voters", metavar="MODEL_OR_SUMS", help="thresholds and labels of this model or file of sums")
    most = "at most so many for a feature, unless --voters says which (default: 63)"
    group.add_argument("--thresholds", help=most, **COUNT)
    group.add_argument("-o", "--output", metavar="DAY.sums", required=True, help="file to write")
    group.add_argument("-q", "--quiet", **QUIET)
    _add_general(parser)
    return parser


def _add_training_data(parser: _Parser) -> None:
    group = parser.add_argument_group("data")
    group.add_argument("table", metavar="TABLE", nargs="?", help="table to train on; put it before the options")
    group.add_argument("--target", metavar="COLUMN", help=TARGET_HELP)
    shipped = "train on this dataset, which scikit-learn ships, instead of a table"
    group.add_argument("--example", choices=EXAMPLES, help=shipped)
    group.add_argument(
        "--validation",
        metavar="TABLE|FRACTION",
        help="rows to choose the number of rounds by: another table, or a share of this one, such as 0.2",
    )
    group.add_argument(
        "--eval-metric",
        choices=[name for names in METRICS.values() for name in names],
        help="choose by this on the rows of --validation, instead of by the loss",
    )
    group.add_argument(
        "--cv",
        metavar="FOLDS",
        type=int,
        help="choose the penalty's strength and the number of rounds by cross-validation with this many folds; 0: none "
        "(default: 5 if neither a strength nor --validation is given)",
    )
    _add_columns(group)


def _add_columns(group: Any) -> None:
    """What the columns of a table are, and how it is read."""
    group.add_argument(
        "--task",
        choices=("classification", "regression"),
        help="default: classification if the target is text, true and false, or a few different whole numbers",
    )
    group.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    which = group.add_mutually_exclusive_group()
    which.add_argument("--features", help="learn from these alone", **COLUMNS)
    which.add_argument("--drop", help="do not learn from these", **COLUMNS)
    known = "take these as categories, besides text and true/false"
    group.add_argument("--categorical", help=known, default=[], **COLUMNS)
    written = "take these columns of a text file as they are written, the target too: 01 and 1 are then different"
    group.add_argument("--text", help=written, default=[], **COLUMNS)
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=_size,
        help="read the table in pieces if it would take more than this, such as 2GB; the model is the same "
        "(default: half of what is free)",
    )


def _add_options(parser: _Parser) -> None:
    """Add the estimators' parameters as options; only those given are passed on, so defaults stay the estimators'."""
    group = parser.add_argument_group(
        "options",
        "The parameters of QuadBoostClassifier and QuadBoostRegressor, where they are documented in full.",
    )

    def add(flag: str, help: str, **settings: Any) -> None:
        group.add_argument(flag, help=help, default=argparse.SUPPRESS, **settings)

    _add_penalties_and_voters(add)
    _add_trees(add)
    _add_losses(add)
    _add_rounds(add)
    _add_other_parameters(add)
    help = "for --validation FRACTION, the folds of --cv, and the growth of trees (default: 0)"
    group.add_argument("--seed", help=help, dest="random_state", default=0, type=int, metavar="N")


def _add_penalties_and_voters(add: Callable[..., None]) -> None:
    penalties = ("auto", "l1", "l2", "linf", "none")
    add("--penalty", "penalty on the weights; auto: l1, with trees l2 (default: auto)", choices=penalties)
    add(
        "--reg-lambda",
        "strength of an l1 or l2 penalty: number, auto (from the training rows, without folds), theory "
        "(default: by cross-validation)",
        type=_number_or(float, "auto", "theory"),
        metavar="NUMBER",
    )
    add("--alpha-max", "largest weight under the linf penalty (default: by cross-validation)", **NUMBER)
    add(
        "--thresholds",
        "most thresholds of a feature; auto: 255, fewer of hundreds of features; all: between any two values "
        "(default: auto)",
        type=_number_or(int, "auto", "all"),
        metavar="N",
    )
    spacings = ("quantile", "uniform")
    add("--spacing", "thresholds with equal mass between them, or evenly spaced (default: quantile)", choices=spacings)
    add("--min-category-count", "pool levels with fewer rows (default: 5)", **COUNT)
    intercept = "fit no intercept"
    add("--no-intercept", intercept, dest="fit_intercept", action="store_false")


def _add_trees(add: Callable[..., None]) -> None:
    add(
        "--n-trees",
        "trees to grow, whose nodes are rules; auto: stumps or 100 trees, by cross-validation (default: 0)",
        type=_number_or(int, "auto"),
        metavar="N",
    )
    add("--max-leaves", "most leaves of a tree (default: 31)", **COUNT)
    add("--max-conditions", "most features in a rule (default: no limit)", **COUNT)
    add("--growth-rows", "rows that trees are grown on, at most (default: 200000)", **COUNT)
    add("--max-voters", "most stumps and rules of a score, under l1 (default: no limit)", **COUNT)


def _add_rounds(add: Callable[..., None]) -> None:
    modes = ("corrective", "forward")
    add("--mode", "re-weight a voter drawn again, or add it (default: corrective)", choices=modes)
    add("--max-rounds", "most boosting rounds, for each output (default: 100000; 1000 in a cross-validation)", **COUNT)
    add(
        "--reweight-every",
        "re-weight all voters every N rounds; auto: solve for all weights where that pays (default: auto)",
        type=_number_or(int, "auto"),
        metavar="N",
    )
    add(
        "--reweight-sweeps",
        "re-weighting sweeps at a time; solve: all weights at once (default: 1)",
        type=_number_or(int, "solve"),
        metavar="N",
    )
    add("--patience", "stop after N rounds without a lower validation risk (default: 50)", **COUNT)
    add(
        "--tol",
        "stop when the dual gap is at most this, relative to the risk of a constant (default: 0.0001)",
        **NUMBER,
    )
    add("--max-seconds", "stop the rounds after this time (default: no limit)", **NUMBER)


def _add_losses(add: Callable[..., None]) -> None:
    add("--loss", "what is minimised (default: squared)", choices=LOSSES)
    add("--quantile", "which quantile --loss quantile predicts (default: 0.5)", **NUMBER)
    add(
        "--huber-width",
        "residuals up to this are squared by --loss huber (default: auto)",
        type=_number_or(float, "auto"),
        metavar="NUMBER",
    )
    plain = "classification by the squared loss: scores as they are, and probabilities by a clipped line"
    add("--no-calibration", plain, dest="calibration", action="store_const", const=None)


def _add_other_parameters(add: Callable[..., None]) -> None:
    add(
        "--monotone",
        "features with which the score may only rise (1) or fall (-1), such as income=+1,debt=-1",
        dest="monotonic_cst",
        nargs="+",
        metavar="COLUMN=SIGN",
    )
    add(
        "--interactions",
        "which features may meet in a rule: pairwise, no_interactions, or groups such as age,income age,debt",
        dest="interaction_cst",
        nargs="+",
        metavar="COLUMN,COLUMN",
    )
    add(
        "--class-weight",
        "classification: weights of classes, or balanced (default: 1 each)",
        nargs="+",
        metavar="LABEL=WEIGHT",
    )
    scaling = "regression: divide the target by its standard deviation for the fit"
    add("--standardize", scaling, action="store_true")
    add("--cache-bytes", "memory for Gram columns (default: 1073741824)", **COUNT)
    add("--threads", "threads; the model is the same (default: every core)", dest="n_jobs", **COUNT)


def predict_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "quadboost-predict",
        "MODEL.h5 TABLE --output FILE [options]",
        "Predict the rows of a table with a model file. Columns are matched by name; those that the model does not "
        "know are ignored.",
        f"{TABLE_HELP}\n{PREDICT_EXAMPLES}\n{EXIT_STATUS}",
    )
    group = parser.add_argument_group("input")
    group.add_argument("model", metavar="MODEL.h5", help="model file")
    group.add_argument("table", metavar="TABLE", nargs="?", help="table to predict; -: the standard input")
    group.add_argument("--sha256", **SHA256)
    _add_text_format(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=STANDARD,
        help="file to write: .csv, .tsv (also with .gz) or .parquet; -: CSV to the standard output (default)",
    )
    group.add_argument("--proba", action="store_true", help="also the probability of each class")
    group.add_argument("--scores", action="store_true", help="also the score, of each class if there are more than two")
    copied = "copy these columns of the table, as they are, before the prediction"
    group.add_argument("--keep", help=copied, default=[], **COLUMNS)
    described = "print what the model is, its strongest features and its figures"
    group.add_argument("--describe", action="store_true", help=described)
    group.add_argument("--threads", dest="n_jobs", help="threads (default: every core)", **COUNT)
    _add_general(parser)
    return parser


def report_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "quadboost-report",
        "MODEL.h5 TABLE --target COLUMN --output REPORT.html [options]",
        "Write a page about a model: what it does with each feature, how good it is on the rows of a table, which it "
        "should not have been trained on, and a form that scores a row.",
        f"{TABLE_HELP}\n{REPORT_EXAMPLES}\n{EXIT_STATUS}",
    )
    group = parser.add_argument_group("input")
    group.add_argument("model", metavar="MODEL.h5", help="model file")
    group.add_argument("table", metavar="TABLE", help="table to judge by; -: the standard input")
    group.add_argument("--target", metavar="COLUMN", required=True, help="column that the model predicts")
    group.add_argument("--sha256", **SHA256)
    _add_text_format(parser)
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="REPORT.html", required=True, help="file to write")
    group.add_argument("--title", metavar="TEXT", help="title of the page")
    group.add_argument("-q", "--quiet", **QUIET)
    _add_general(parser)
    return parser


def export_parser() -> argparse.ArgumentParser:
    parser = _parser(
        "quadboost-export",
        "MODEL.h5 --to sql|onnx|c|js|scorecard --output FILE [options]",
        "Write a model file as a program that gives the same scores without Python, or as a scorecard. Every file "
        "carries a self-test.",
        f"{EXPORT_EXAMPLES}\n{EXIT_STATUS}",
    )
    group = parser.add_argument_group("input")
    group.add_argument("model", metavar="MODEL.h5", help="model file")
    group.add_argument("--sha256", **SHA256)
    group = parser.add_argument_group("output")
    group.add_argument("--to", required=True, choices=("sql", "onnx", "c", "js", "scorecard"), help="what to write")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="file to write; of a scorecard .csv or .xlsx; -: text to the standard output",
    )
    _add_export_options(parser)
    _add_general(parser)
    return parser


def _add_export_options(parser: _Parser) -> None:
    """Only those given are passed on, so defaults stay those of the functions."""
    group = parser.add_argument_group("options of one target")

    def add(flag: str, help: str, **settings: Any) -> None:
        group.add_argument(flag, help=help, default=argparse.SUPPRESS, **settings)

    add("--table", "sql: the table to score, or its schema and its name", nargs="+", metavar="NAME")
    add("--dialect", "sql: the database (default: duckdb)", choices=("duckdb", "postgres", "sqlite"))
    add("--keep", "sql: columns of the table to return as they are", **COLUMNS)
    add("--contributions", "sql, onnx: also the intercept, and what each term adds to it", action="store_true")
    add("--dtype", "onnx: float32 is not exact (default: float64)", choices=("float64", "float32"))
    add("--missing-text", "onnx: the text that stands for a missing one (default: empty)", metavar="TEXT")
    add("--name", "c, js: what the names in the file begin with", metavar="NAME")
    add("--points", "scorecard: points that stand for --odds (default: 600)", **NUMBER)
    add("--odds", "scorecard: odds of the second class (default: 50)", **NUMBER)
    add("--pdo", "scorecard: points that double the odds (default: 20)", **NUMBER)
    add("--digits", "scorecard: decimals of the points (default: 0)", **COUNT)


def _number_or(number: type, *words: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return text if text in words else number(text)
        except ValueError:
            what = "a whole number" if number is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is neither {what} nor {' nor '.join(words)}") from None

    return parse


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kKMGT]?)i?[bB]?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 500MB or 2GB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
