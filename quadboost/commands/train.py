"""What quadboost-train does: read examples, fit an estimator, write the model file and a summary."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from .._version import __version__
from ..bounds.risk import Certificate, certify
from ..common.names import METRICS
from ..common.progress import pace
from ..data.constraints import MOST_THAT_MEET
from ..data.tables import listed
from ..estimators.cv import AUTO_TREES, QuadBoostClassifierCV, QuadBoostRegressorCV
from ..estimators.plain import QuadBoostClassifier, QuadBoostRegressor
from ..model.ensemble import Ensemble
from ..model.file import ModelRecord, write_model
from ..model.whole_file import check_output
from .streams import STANDARD, check_standard_output
from .text_format import MISSING_TEXT
from .train_data import CLASSIFICATION, REGRESSION, Examples, choose_task, shipped_examples, task_of

FOLDS = 5  # of the cross-validation that chooses a strength where none is given
ESTIMATORS: dict[str, Any] = {CLASSIFICATION: QuadBoostClassifier, REGRESSION: QuadBoostRegressor}
FIGURES = {"error": "error", "log_loss": "log-loss", "r2": "r2"}  # of a model, as a user reads them
SHARE_OF_COLUMNS = 0.25  # of --memory, for Gram columns
LEAST_PROBABILITY = 1e-15  # of a clipped line: the log of zero is no figure
# Parameters of the estimators that a command does not offer, or sets itself.
LEFT_OUT = {"callbacks", "callback_every", "verbose", "validation_fraction", "warm_start"}
SEARCHES: dict[str, Any] = {CLASSIFICATION: QuadBoostClassifierCV, REGRESSION: QuadBoostRegressorCV}
ONLY_FOR = {
    "class_weight": CLASSIFICATION,
    "calibration": CLASSIFICATION,
    "standardize": REGRESSION,
    "quantile": REGRESSION,
    "huber_width": REGRESSION,
}
LOSS_OF = {"quantile": "quantile", "huber_width": "huber"}


def train(arguments: Namespace) -> None:
    start = time.monotonic()
    if arguments.quiet:
        warnings.simplefilter("ignore")
    arguments.quiet |= arguments.json == STANDARD
    arguments.verbose = 0 if arguments.quiet else 1 if sys.stderr.isatty() else 2
    if arguments.from_sums:
        from .sums import train_from_sums

        train_from_sums(arguments, _options(arguments))
        return
    if arguments.minus:
        raise ValueError("--minus is for --from-sums: it takes rows away from those")
    validation_table, fraction = _validation(arguments.validation)
    _check(arguments, validation_table)
    options = _options(arguments)
    arguments.task = task_of(options.get("loss", "squared"), arguments.task)
    if arguments.cv:
        _check_cv(arguments.cv, options, arguments.validation)
    examples, validation = _read(arguments, validation_table)
    target = arguments.target or "target"
    task, reason = choose_task(examples.y, arguments.task, target)
    if task == REGRESSION:
        examples, validation = _real(examples), None if validation is None else _real(validation)
    if examples.n_streamed:
        _check_streamed(arguments, fraction)
    if fraction is not None:
        examples, validation = examples.split(fraction, arguments.random_state, stratify=task == CLASSIFICATION)
    if arguments.bound and (task == REGRESSION or examples.weight is not None or len(np.unique(examples.y)) > 2):
        raise ValueError("--bound is for two classes and rows without weights; leave it out")
    if not arguments.quiet:
        _print(f"{task} of {target!r}: {reason}")
        if examples.n_left_out:
            _print(f"{examples.n_left_out} rows without a target are left out")
        how = ", which are read in pieces: they would not fit into --memory" if examples.n_streamed else ""
        _print(f"training on {examples.n_rows} rows, {len(examples.names)} features{how}")
    n_folds, why = _choose_folds(arguments, options, examples, task)
    if examples.n_streamed and not n_folds:
        examples = examples.without_targets()
    if why and not arguments.quiet:
        _print(why)
    ensemble = _fit(task, options, examples, validation, arguments, n_folds)
    summary = {"task": task, "target": target, **_summary(ensemble, examples, validation)}
    summary["seconds"] = time.monotonic() - start
    certificate: Certificate | None = certify(ensemble, examples.X, examples.y) if arguments.bound else None
    bounds = {} if certificate is None else {"bounds": certificate.as_dict()}
    words = {} if arguments.missing_text is None else {MISSING_TEXT: arguments.missing_text}
    ensemble = ensemble.replace(info={**ensemble.info, "summary": summary, **words, **bounds})
    classes = None if ensemble.classes is None else ensemble.classes.tolist()
    whole = {"quadboost": __version__, "model": arguments.output, "classes": classes, **summary, **bounds}
    figures = json.dumps(whole, indent=2)
    in_file = {arguments.json: f"{figures}\n".encode()} if arguments.json not in (None, STANDARD) else {}
    write_model(arguments.output, ModelRecord.of(ensemble), beside=in_file)
    if arguments.json == STANDARD:
        _print(figures)
    if not arguments.quiet:
        _print(_in_words(summary, classes, arguments.output, ensemble.loss))
        if certificate is not None:
            _print(f"\n{certificate}")


# --- arguments ----------------------------------------------------------------------------------------------


def _validation(argument: str | None) -> tuple[str | None, float | None]:
    """A table or a fraction."""
    try:
        fraction = None if argument is None else float(argument)
    except ValueError:
        return argument, None
    if fraction is not None and not 0 < fraction < 1:
        raise ValueError(f"--validation {argument} must lie between 0 and 1, or be a table")
    return None, fraction


def _check(arguments: Namespace, validation_table: str | None) -> None:
    """Refuse before any work what cannot go well."""
    if (arguments.table is None) == (arguments.example is None):
        raise ValueError("give a TABLE, before the options, or else --example NAME")
    if arguments.example is not None:
        for name in ("target", "weight", "categorical", "text"):
            if getattr(arguments, name):
                raise ValueError(f"--{name} is for a TABLE, and has no meaning with --example")
        if validation_table is not None:
            raise ValueError(f"--validation {validation_table}: with --example it must be a number between 0 and 1")
    elif arguments.target is None:
        raise ValueError("--target is missing: name the column to predict")
    if arguments.eval_metric is not None and arguments.validation is None:
        raise ValueError(f"--eval-metric {arguments.eval_metric} is for validation rows; give --validation too")
    if arguments.weight is not None and arguments.weight == arguments.target:
        raise ValueError(f"--weight and --target name the same column, {arguments.target!r}")
    inputs = [path for path in (arguments.table, validation_table) if path is not None]
    if inputs == [STANDARD, STANDARD]:
        raise ValueError("the table and --validation are both -, but the standard input holds one table")
    if arguments.output == STANDARD:
        raise ValueError("--output -: a model is written to a file; name one")
    check_output(arguments.output, inputs)
    if arguments.json == STANDARD:
        check_standard_output()
    elif arguments.json is not None:
        check_output(arguments.json, inputs)
        if os.path.realpath(arguments.json) == os.path.realpath(arguments.output):
            raise ValueError(f"--json and --output name the same file, {arguments.output}")


def _check_streamed(arguments: Namespace, fraction: float | None) -> None:
    """Refuse what needs all rows in memory."""
    for flag, is_given in {"--bound": arguments.bound, f"--validation {fraction}": fraction is not None}.items():
        if is_given:
            raise ValueError(
                f"{flag} needs the whole table in memory, and {arguments.table} would take more than --memory; "
                "give more, or leave it out"
            )


def _check_cv(cv: int, options: dict[str, Any], validation: str | None) -> None:
    """Refuse what does not go with cross-validation."""
    if cv < 2:
        raise ValueError(f"--cv {cv} must be a whole number of at least 2, or 0 for no cross-validation")
    if validation is not None:
        raise ValueError("--cv and --validation both choose the number of rounds; give one of them")
    for flag in _apart_from_search(options):
        raise ValueError(f"{flag} does not go with --cv; leave one of them out")


def _apart_from_search(options: dict[str, Any]) -> list[str]:
    """The options given that do not go with cross-validation."""
    searched = set(QuadBoostClassifierCV._get_param_names()) | set(QuadBoostRegressorCV._get_param_names())
    allowed = searched - {"reg_lambda", "alpha_max"} | {"random_state"}
    return [f"--{name.replace('_', '-')}" for name in options if name not in allowed]


def _choose_folds(arguments: Namespace, options: dict[str, Any], examples: Examples, task: str) -> tuple[int, str]:
    """The number of folds, 0 for none, and what to tell a user who did not ask for cross-validation."""
    penalty, n_trees = options.get("penalty", "auto"), options.get("n_trees", 0)
    strength = "--alpha-max" if penalty == "linf" else "--reg-lambda"
    apart = _apart_from_search(options)
    y = examples.y if examples.weight is None else examples.y[examples.weight > 0]
    most = len(y) if task == REGRESSION else int(np.unique(y, return_counts=True)[1].min(initial=len(y)))
    what = "rows" if task == REGRESSION else "rows of the smallest class"
    if arguments.cv is not None and arguments.cv > most:
        raise ValueError(f"--cv {arguments.cv} is more than there are {what}, {most}; give fewer folds")
    has_choice = arguments.cv is not None or arguments.validation is not None or strength in apart
    too_few = most < (2 * FOLDS if task == REGRESSION else FOLDS)
    if n_trees == "auto" and not arguments.cv and (has_choice or penalty is None or apart or too_few):
        raise ValueError("--n-trees auto is chosen by cross-validation; give a number, or --cv 5 without the others")
    if has_choice or penalty is None or n_trees not in (0, "auto"):
        return arguments.cv or 0, ""
    default = "0.1" if penalty == "linf" else "taken from all training rows"
    if apart:
        return 0, f"no {strength} given: {default}, because {apart[0]} does not go with cross-validation"
    if too_few:
        return 0, f"no {strength} given: {default}, because there are too few {what} for cross-validation"
    return FOLDS, f"no {strength} given: chosen by {FOLDS}-fold cross-validation (--cv 0: {default})"


def _options(arguments: Namespace) -> dict[str, Any]:
    """The parameters of the estimator that were given, checked."""
    known = {name for estimator in ESTIMATORS.values() for name in estimator._get_param_names()} - LEFT_OUT
    options = {name: value for name, value in vars(arguments).items() if name in known}
    if options.get("penalty") == "none":
        options["penalty"] = None
    for name, loss in LOSS_OF.items():
        if name in options and options.get("loss") != loss:
            raise ValueError(f"--{name.replace('_', '-')} is for --loss {loss}; give that too, or leave it out")
    plain = {name: value for name, value in options.items() if name not in ONLY_FOR}
    if plain.get("n_trees") == "auto":
        plain["n_trees"] = AUTO_TREES
    (QuadBoostClassifier if plain.get("loss") == "logistic" else QuadBoostRegressor)(**plain)._options()
    return options


def _class_weight(items: Sequence[str], labels: np.ndarray) -> Any:
    if list(items) == ["balanced"]:
        return "balanced"
    label_of = {str(label): label for label in np.unique(labels).tolist()}
    weights = {}
    for item in items:
        name, _, weight = item.rpartition("=")
        if name not in label_of:
            raise ValueError(f"--class-weight {item!r} must be LABEL=WEIGHT with a label of {listed([*label_of])}")
        try:
            weights[label_of[name]] = float(weight)
        except ValueError:
            raise ValueError(f"--class-weight {item!r}: {weight!r} is not a number") from None
    return weights


def _monotone(items: Sequence[str], names: Sequence[str]) -> dict[int, int]:
    """Columns and signs; several may be divided by commas, and a name may hold some."""
    signs = {}
    for item in items:
        for part in re.split(r"(?<==[01]),|(?<==[+-]1),", item):
            name, _, sign = part.rpartition("=")
            if sign not in ("1", "+1", "-1", "0"):
                raise ValueError(
                    f"--monotone {part!r} must be COLUMN=1 for a rising score, or COLUMN=-1 for a falling one"
                )
            if name not in names:
                raise ValueError(f"--monotone names {name!r}, which is not among the features, {listed(names)}")
            column = list(names).index(name)
            if column in signs:
                raise ValueError(f"--monotone names {name!r} twice; give it one sign")
            signs[column] = int(sign)
    return signs


def _interactions(items: Sequence[str], names: Sequence[str]) -> Any:
    """Groups of columns that may meet, their names divided by commas, or a word for them."""
    if len(items) == 1 and items[0] in MOST_THAT_MEET:
        return items[0]
    groups = []
    for item in items:
        group = item.split(",")
        for name in group:
            if name not in names:
                raise ValueError(f"--interactions names {name!r}, which is not among the features, {listed(names)}")
        groups.append([list(names).index(name) for name in group])
    return groups


# --- fit ----------------------------------------------------------------------------------------------------


def _read(arguments: Namespace, validation_table: str | None) -> tuple[Examples, Examples | None]:
    if arguments.example is not None:
        return shipped_examples(arguments), None
    from .train_table import table_examples  # needs pyarrow, which --example does not

    return table_examples(arguments, validation_table)


def _real(examples: Examples) -> Examples:
    return replace(examples, y=examples.y.astype(np.float64))


def _fit(
    task: str,
    options: dict[str, Any],
    examples: Examples,
    validation: Examples | None,
    arguments: Namespace,
    n_folds: int,
) -> Ensemble:
    for name, only_for in ONLY_FOR.items():
        if name in options and only_for != task:
            raise ValueError(f"--{name.replace('_', '-')} is for {only_for}, and this is {task}")
    if arguments.eval_metric not in (None, *METRICS[task]):
        known = ", ".join(METRICS[task])
        raise ValueError(f"--eval-metric {arguments.eval_metric} is not for {task}; use one of {known}")
    if "class_weight" in options:
        options = {**options, "class_weight": _class_weight(options["class_weight"], examples.y)}
    if "monotonic_cst" in options:
        options = {**options, "monotonic_cst": _monotone(options["monotonic_cst"], examples.names)}
    if "interaction_cst" in options:
        options = {**options, "interaction_cst": _interactions(options["interaction_cst"], examples.names)}
    if validation is not None and task == CLASSIFICATION:
        unknown = np.setdiff1d(validation.y, examples.y)
        if len(unknown):
            raise ValueError(f"the validation rows have the label {unknown[0].item()!r}, which no training row has")
    if examples.n_streamed:  # the model is the same for any of these
        options = {"cache_bytes": max(1, int(SHARE_OF_COLUMNS * examples.X.memory)), **options}
    on_terminal, quiet = sys.stderr.isatty(), arguments.quiet
    options |= {"categorical_features": examples.categorical, "verbose": int(on_terminal and not quiet)}
    if n_folds:
        options["verbose"] = 0 if quiet else 1 if on_terminal else 2
        return _cross_validated(task, options, examples, arguments, n_folds)
    estimator = ESTIMATORS[task](**options, callbacks=None if on_terminal or quiet else [_Lines()])
    more = {}
    if validation is not None:
        more = {"X_val": validation.X, "y_val": validation.y, "sample_weight_val": validation.weight}
        more["eval_metric"] = arguments.eval_metric
    y = None if examples.n_streamed else examples.y
    return _named(estimator.fit(examples.X, y, examples.weight, **more).ensemble_, examples)


def _cross_validated(
    task: str, options: dict[str, Any], examples: Examples, arguments: Namespace, n_folds: int
) -> Ensemble:
    splitter = StratifiedKFold if task == CLASSIFICATION else KFold
    cv = splitter(n_folds, shuffle=True, random_state=arguments.random_state)
    y = None if examples.n_streamed else examples.y
    folds = _folds(examples, cv)
    examples = examples.without_targets() if examples.n_streamed else examples
    estimator = SEARCHES[task](**options, cv=cv).fit(examples.X, y, examples.weight)
    figures = _held_out_figures(estimator.best_estimator_, examples, folds)
    if not arguments.quiet:
        told = {name: value for name, value in estimator.best_params_.items() if name != "n_trees" or value}
        chosen = ", ".join(f"{name}={_short(value)}" for name, value in told.items())
        _print(f"{n_folds}-fold cross-validation chose {chosen}; on rows held out: {_listed(figures)}")
    ensemble = estimator.ensemble_
    known = {**ensemble.info, "cross_validation": {**ensemble.info["cross_validation"], **figures}}
    return _named(ensemble.replace(info=known), examples)


def _folds(examples: Examples, cv: Any) -> np.ndarray:
    """The fold of every row, -1 of those that do not count."""
    counts = examples.counts()
    kept = np.flatnonzero(counts)
    folds = np.full(len(counts), -1, dtype=np.int16)
    for number, (_, held_out) in enumerate(cv.split(kept, examples.y[kept])):
        folds[kept[held_out]] = number
    return folds


def _held_out_figures(estimator: Any, examples: Examples, folds: np.ndarray) -> dict[str, float]:
    """The figures of the choice on each row, by a model of the folds that the row is not in."""
    sums = np.zeros(4)
    for number in range(folds.max() + 1):
        plain = clone(estimator).set_params(verbose=0, callbacks=None)
        known = examples.where((folds >= 0) & (folds != number))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of rounds was chosen
            plain.fit(known.X, None if known.n_streamed else known.y, known.weight)
        sums += _sums_on(plain.ensemble_, examples.where(folds == number), estimator.ensemble_)
    return _figures_from(estimator.ensemble_, sums)


def _listed(figures: dict[str, float]) -> str:
    return ", ".join(f"{FIGURES[name]} {value:.6g}" for name, value in figures.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _named(ensemble: Ensemble, examples: Examples) -> Ensemble:
    """The ensemble as it goes into the file."""
    parameters = {name: value for name, value in ensemble.info["parameters"].items() if name not in LEFT_OUT}
    names = examples.names if ensemble.feature_names is None else ensemble.feature_names  # an array has none
    return ensemble.replace(feature_names=names, info={**ensemble.info, "parameters": parameters})


class _Lines:
    """News of the fit where there is no terminal to draw a bar on."""

    def __init__(self) -> None:
        self.is_due = pace(2)

    def __call__(self, round: int, risk: float, validation_risk: float | None) -> None:
        if self.is_due():
            more = "" if validation_risk is None else f", validation risk {validation_risk:.6f}"
            _print(f"round {round}: risk {risk:.6f}{more}")


# --- summary ------------------------------------------------------------------------------------------------


def _summary(ensemble: Ensemble, examples: Examples, validation: Examples | None) -> dict[str, Any]:
    info = ensemble.info
    summary: dict[str, Any] = {
        "rows": examples.n_rows,
        "validation_rows": 0 if validation is None else len(validation.y),
        "rows_left_out": examples.n_left_out,
        "features": ensemble.n_features,
        "categorical_features": len(ensemble.categories),
        "features_used": len(np.unique([*ensemble.feature, *ensemble.trees.feature[~ensemble.trees.is_leaf]])),
        "rounds": sum(output["rounds"] for output in info["outputs"]),
        "stop": sorted({output["stop"] for output in info["outputs"]}),
        "voters": len(ensemble.feature),
        "rules": ensemble.n_rules,
        "risk": float(np.mean([output["risk"] for output in info["outputs"]])),
        **_figures(ensemble, examples),
        "validation_risk": None,
        "fit_seconds": info["seconds"],
    }
    known = {} if validation is None else _figures(ensemble, validation)
    summary |= {f"validation_{name}": known.get(name) for name in FIGURES if name in summary}
    risks = [output["validation_risk"] for output in info["outputs"] if "validation_risk" in output]
    if validation is not None and risks:
        summary["validation_risk"] = float(np.mean(risks))
    if "cross_validation" in info:
        summary["cross_validation"] = info["cross_validation"]
    return summary


def _figures(ensemble: Ensemble, examples: Examples) -> dict[str, float]:
    """How good a model is on some rows."""
    return _figures_from(ensemble, _sums_on(ensemble, examples, ensemble))


def _sums_on(ensemble: Ensemble, examples: Examples, like: Ensemble) -> np.ndarray:
    """What the figures of a model on some rows are made of; those of several models, all like one, add up."""
    sums = np.zeros(4)
    for X, y, weight in examples.blocks():
        found = _predicted(ensemble, ensemble.score_matrix(ensemble.matrix_of(X)))
        sums += _figure_sums(like, found, y, weight)
    return sums


def _predicted(ensemble: Ensemble, scores: np.ndarray) -> np.ndarray:
    """Probabilities of all classes, or predictions of the target."""
    return ensemble.predictions_of(scores) if ensemble.classes is None else ensemble.probabilities_of(scores)


def _figure_sums(ensemble: Ensemble, found: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Sums over rows of what the figures of a model are made of; the first is that of the weights."""
    if ensemble.classes is None:
        far = y - np.mean(ensemble.intercept)  # so that little is lost in squares
        each = [np.ones(len(y)), (y - found) ** 2, far, far * far]
    else:
        probability = found[np.arange(len(y)), np.searchsorted(ensemble.classes, y)]
        wrong = ensemble.classes[found.argmax(axis=1)] != y
        each = [np.ones(len(y)), wrong, -np.log(np.maximum(probability, LEAST_PROBABILITY)), np.zeros(len(y))]
    return np.array([np.sum(one if weight is None else one * weight) for one in each])


def _figures_from(ensemble: Ensemble, sums: np.ndarray) -> dict[str, float]:
    """Error (share of wrong labels) and log-loss of probabilities; root mean square and r2 of predictions."""
    first, second, third = (sums[1:] / sums[0]).tolist()
    if ensemble.classes is not None:
        return {"error": first, "log_loss": second}
    spread = third - second**2
    return {"error": float(np.sqrt(first)), "r2": 1.0 - first / spread if spread > 0 else 0.0}


def _in_words(summary: dict[str, Any], classes: list[Any] | None, path: str, loss: str) -> str:
    def both(name: str) -> str:
        validation = summary[f"validation_{name}"]
        more = "" if validation is None else f", validation {validation:.6g}"
        return f"training {summary[name]:.6g}{more}"

    n_validation = summary["validation_rows"]
    lines = {
        "rows": f"{summary['rows']}" + (f", validation {n_validation}" if n_validation else ""),
        "features": f"{summary['features']}, {summary['features_used']} of them used",
        "classes": None if classes is None else f"{len(classes)}: {listed(classes, 10)}",
        "rounds": f"{summary['rounds']} ({', '.join(summary['stop'])})",
        "voters": summary["voters"],
        "rules": summary["rules"] or None,
        "risk" if loss == "squared" else "loss": both("risk"),
        "error": both("error") + (" (root mean square)" if classes is None else ""),
        "log-loss": None if classes is None else both("log_loss"),
        "r2": both("r2") if classes is None else None,
        "time": f"{summary['seconds']:.1f} s, {summary['fit_seconds']:.1f} s of them for the fit",
        "model": path,
    }
    return "\n".join(f"{name:10}{text}" for name, text in lines.items() if text is not None)


def _print(text: str) -> None:
    print(text, flush=True)
