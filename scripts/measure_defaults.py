"""Measure what the default parameters are chosen by: test error and risk over many tables (docs/defaults.md).

    python scripts/measure_defaults.py --data DIR [--splits N] [--group NAME] [--quick] [--output FILE ...]

DIR holds gzipped CSV files, last column `label`, and a manifest.json that says for each of them which labels are
positive. Tables that come with scikit-learn and made ones, of up to 30,000 training rows or up to 1,000 features, are
added. Two thirds of a table are for training. Needs pandas and LightGBM (the extra `benchmarks`).
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from tables_to_measure import GROUPS, MANY_ROWS, Table, given_tables, made_tables, shipped_tables, wide_tables

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor, boost
from quadboost.data.schema import read_table
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

SIZES = (1_000, 5_000, 30_000)  # training rows of made tables
SHAPES = ((300, 1_000), (3_000, 300))  # training rows and features of wide tables
MANY_FEATURES = 300

# --- fits ---------------------------------------------------------------------------------------------------

SQRT_M_TIMES_L1 = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
M_BY_K_TIMES_L2 = {
    "corrective": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "forward": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
}
LINF = (0.1, 0.3, 0.7, 1.5, 3.0, 10.0)
ROUNDS = (30, 100, 300, 1_000, 10_000)

VARIANTS = {
    "tol": (1e-5, 1e-4, 1e-3, 1e-2),
    "thresholds": (31, 63, 127, 255),
    "min_category_count": (1, 5, 20),
    "mode": ("corrective", "forward"),
}
TREES = 100
RULES = {
    "n_trees": (25, 50, TREES, 200),
    "max_leaves": (7, 15, 31, 63),
    "max_conditions": (1, 2, 4, None),
    "growth_rows": (1_000, 5_000, 200_000),
}
HIST = HistGradientBoostingClassifier, HistGradientBoostingRegressor
LIGHTGBM = partial(LGBMClassifier, n_jobs=1, verbose=-1), partial(LGBMRegressor, n_jobs=1, verbose=-1)
OURS = partial(QuadBoostClassifier, n_jobs=1), partial(QuadBoostRegressor, n_jobs=1)
ESTIMATORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "QuadBoost": (OURS, {}),
    "QuadBoost, l2": (OURS, {"penalty": "l2"}),
    "HistGradientBoosting, stumps, 1,000 rounds": (HIST, {"max_depth": 1, "max_iter": 1_000}),
    "LightGBM, stumps, 1,000 rounds": (LIGHTGBM, {"max_depth": 1, "n_estimators": 1_000}),
    "HistGradientBoosting, trees": (HIST, {}),
}
MOST_ROWS_FOR_OTHERS = 100_000
HEAD = "## Figures\n"  # in the page; what follows it is replaced


@dataclass(frozen=True)
class Split:
    """A table in two parts; labels also as -1 and +1, a column each unless there are two."""

    X: tuple[Any, Any]
    y: tuple[np.ndarray, np.ndarray]
    targets: tuple[np.ndarray, np.ndarray]
    has_labels: bool

    @classmethod
    def of(cls, X: Any, y: np.ndarray, seed: int) -> Split:
        has_labels = y.dtype == object
        strata = y.astype(str) if has_labels else None
        rows = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=seed, stratify=strata)
        targets = y[:, None]
        if has_labels:
            classes, y = np.unique(y, return_inverse=True)
            targets = np.where(y[:, None] == np.arange(len(classes)), 1.0, -1.0)
            targets = targets[:, 1:] if len(classes) == 2 else targets

        def parts(table: Any) -> tuple[Any, Any]:
            return tuple(table.iloc[part] if hasattr(table, "iloc") else table[part] for part in rows)

        return cls(parts(X), parts(y), parts(targets), has_labels)

    def figures(self, scores: np.ndarray) -> dict[str, float]:
        """Test error (of labels), and test risk as a share of the variance of the training targets."""
        truth = self.targets[1]
        risk = float(np.mean((scores - truth) ** 2 / self.targets[0].var(axis=0)))
        if not self.has_labels:
            return {"error": np.nan, "risk": risk}
        if truth.shape[1] == 1:
            return {"error": float(np.mean((scores > 0) != (truth > 0))), "risk": risk}
        return {"error": float(np.mean(scores.argmax(axis=1) != truth.argmax(axis=1))), "risk": risk}


def strengths(split: Split) -> Iterator[dict[str, Any]]:
    """Every penalty over its range; all share one set of moments."""
    schema, matrix = read_table(split.X[0])
    stumps = candidate_voters(
        matrix, thresholds="auto", n_levels={f: len(levels) for f, levels in schema.categories.items()}
    )
    moments = column_moments(stumps, stumps.code(matrix), split.targets[0])
    m, n_voters = len(matrix), stumps.n_voters
    scale = split.targets[0].std(axis=0)
    is_wide = stumps.n_columns >= MANY_FEATURES
    near = {"tol": 1e-3, "max_rounds": 2_000 if is_wide else 10_000}  # fits are compared with others of their kind

    def fit(family: str, value: float, penalty: str | None, **options: Any) -> dict[str, Any]:
        start, scores, rounds = time.process_time(), [], 0
        for output in range(moments.n_outputs):
            in_units = {"l1": "reg_lambda", "linf": "alpha_max"}.get(penalty or "")  # of the target
            scaled = options if in_units is None else options | {in_units: options[in_units] * scale[output]}
            result = boost(moments, penalty, fit_intercept=True, output=output, **{**near, **scaled})
            voters = np.flatnonzero(result.weight)
            feature, kind, threshold = stumps.describe(voters)
            ensemble = Ensemble(
                feature,
                threshold,
                result.weight[voters],
                result.intercept,
                kind=kind,
                n_features=schema.n_features,
                feature_names=schema.feature_names,
                categories=schema.categories,
            )
            scores.append(ensemble.decision_function(split.X[1], n_jobs=1))
            rounds += result.n_rounds
        seconds = time.process_time() - start
        figures = {"seconds": seconds, "rounds": rounds, "m": m, "K": n_voters}
        return {"family": family, "value": value, **figures, **split.figures(np.column_stack(scores))}

    for c in SQRT_M_TIMES_L1:
        yield fit("l1", c, "l1", reg_lambda=c / m**0.5)
    for c in M_BY_K_TIMES_L2["forward"] if not is_wide else ():
        yield fit("l2, forward", c, "l2", reg_lambda=c * n_voters / m, mode="forward")
    for c in M_BY_K_TIMES_L2["corrective"]:  # by the estimator, which solves for all weights at once
        figures = estimated(split, "l2, corrective", c, penalty="l2", reg_lambda=c * n_voters / m)
        yield {**figures, "m": m, "K": n_voters}
    for c in LINF:
        yield fit("linf", c, "linf", alpha_max=c * m**0.5 / n_voters)
    for max_rounds in ROUNDS if not is_wide else ():
        yield fit("none", max_rounds, None, max_rounds=max_rounds)


def estimated(split: Split, family: str, value: Any, **options: Any) -> dict[str, Any]:
    """An estimator with the scores that its strength is chosen by."""
    model = OURS[0](calibration=None, **options) if split.has_labels else OURS[1](**options)
    start = time.process_time()
    model.fit(split.X[0], split.y[0])
    seconds, rounds = time.process_time() - start, int(np.sum(model.n_rounds_))
    scores = (model.decision_function if split.has_labels else model.predict)(split.X[1])
    figures = split.figures(scores.reshape(len(split.y[1]), -1))
    return {"family": family, "value": value, "seconds": seconds, "rounds": rounds, **figures}


def chosen(split: Split) -> Iterator[dict[str, Any]]:
    """What "auto" comes to, under each penalty that has one optimum to go to in little time."""
    for penalty in ("l1", "l2"):
        yield estimated(split, f"auto, {penalty}", "auto", penalty=penalty)


def variants(split: Split) -> Iterator[dict[str, Any]]:
    """The estimator with one parameter other than the default, and other libraries' estimators."""

    def fit(family: str, value: Any, model: Any) -> dict[str, Any]:
        start = time.process_time()
        model.fit(split.X[0], split.y[0])
        seconds = time.process_time() - start
        if split.has_labels:  # the mean of a label given the probabilities: comparable between libraries
            scores = 2.0 * model.predict_proba(split.X[1]) - 1.0
            scores = scores[:, 1:] if scores.shape[1] == 2 else scores
        else:
            scores = model.predict(split.X[1])[:, None]
        rounds = int(np.sum(getattr(model, "n_rounds_", 0)))
        return {"family": family, "value": value, "seconds": seconds, "rounds": rounds, **split.figures(scores)}

    has_categories = hasattr(split.X[0], "dtypes") and "category" in set(map(str, split.X[0].dtypes))
    kind = 0 if split.has_labels else 1
    for parameter, values in VARIANTS.items():
        if has_categories or parameter != "min_category_count":
            for value in values:
                yield fit(parameter, value, OURS[kind](**{parameter: value}))
    for parameter, values in RULES.items():
        for value in values:
            yield fit(f"rules: {parameter}", str(value), OURS[kind](**{"n_trees": TREES, parameter: value}))
    if len(split.y[0]) <= MOST_ROWS_FOR_OTHERS:
        for name, (kinds, options) in ESTIMATORS.items():
            yield fit("estimator", name, kinds[kind](**options))


def measure(table: Table, seed: int) -> list[dict[str, Any]]:
    split = Split.of(*table.load(seed), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of LightGBM, about the names of columns
        found = [*strengths(split), *chosen(split), *variants(split)]
    return [{"table": table.name, "group": table.group, "split": seed, **record} for record in found]


# --- summaries ----------------------------------------------------------------------------------------------

Form = Callable[[np.ndarray, np.ndarray], np.ndarray]  # from numbers of rows m and of voters K
L1_FORMS: dict[str, Form] = {
    "c std(y) / sqrt(m)": lambda m, K: m**-0.5,
    "c std(y)": lambda m, K: m**0.0,
    "c std(y) / m^(2/3)": lambda m, K: m ** (-2 / 3),
    "c std(y) / m": lambda m, K: 1 / m,
    "c std(y) sqrt(log(2 K) / m)": lambda m, K: np.sqrt(np.log(2 * K) / m),
}
L2_FORMS: dict[str, Form] = {
    "c K / m": lambda m, K: K / m,
    "c": lambda m, K: m**0.0,
    "c / sqrt(m)": lambda m, K: m**-0.5,
    "c / m": lambda m, K: 1 / m,
    "c K / sqrt(m)": lambda m, K: K / np.sqrt(m),
    "c sqrt(K) / m": lambda m, K: np.sqrt(K) / m,
}
LINF_FORMS: dict[str, Form] = {
    "c std(y) sqrt(m) / K": lambda m, K: np.sqrt(m) / K,
    "c std(y) m / K": lambda m, K: m / K,
    "c std(y) / K": lambda m, K: 1 / K,
    "c std(y) / sqrt(K)": lambda m, K: K**-0.5,
    "c std(y)": lambda m, K: m**0.0,
}
CONSTANTS = np.logspace(-6, 6, 241)


@dataclass(frozen=True)
class Figures:
    """Error and risk of each table (a row) under each setting (a column), means over splits."""

    group: pd.Series
    error: pd.DataFrame
    risk: pd.DataFrame

    @classmethod
    def of(cls, records: pd.DataFrame, family: str) -> Figures:
        chosen = records[records.family == family]
        means = {
            column: chosen.pivot_table(column, "table", "value", sort=False, dropna=False)
            for column in ("error", "risk")
        }
        return cls(chosen.groupby("table", sort=False).group.first(), **means)

    def summary(self) -> pd.DataFrame:
        """A row per setting: "error / risk" of each group, and the mean rank over all tables."""
        columns = {}
        for group in GROUPS:
            is_member = self.group == group
            if is_member.any():
                columns[group] = [
                    f"{error:.4f} / {risk:.4f}" if error == error else f"- / {risk:.4f}"
                    for error, risk in zip(self.error[is_member].mean(), self.risk[is_member].mean(), strict=True)
                ]
        columns["risk, all"] = [f"{risk:.4f}" for risk in self.risk.mean()]
        # By error, and where tables have no labels by risk.
        ranks = self.error.fillna(self.risk).round(9).rank(axis=1).mean()
        columns["rank"] = [f"{rank:.2f}" for rank in ranks]
        return pd.DataFrame(columns, index=self.risk.columns)


@dataclass(frozen=True)
class Curves:
    """Error and risk of each table as functions of a penalty's strength, from which every form can be read."""

    figures: Figures
    log_strength: pd.DataFrame
    m: pd.Series
    n_voters: pd.Series

    @classmethod
    def of(cls, records: pd.DataFrame, family: str, unit: Form) -> Curves:
        tables = records[records.family == family].groupby("table", sort=False)
        m, n_voters = tables.m.mean(), tables.K.mean()
        figures = Figures.of(records, family)
        values = figures.risk.columns.to_numpy(float)
        log_strength = np.log(np.outer(unit(m, n_voters), values))
        return cls(figures, pd.DataFrame(log_strength, index=m.index), m, n_voters)

    def along(self, form: Form, constants: Iterable[float]) -> Figures:
        """What c times the form gives, for each c."""
        unit = form(self.m, self.n_voters)

        def read(curve: pd.DataFrame) -> pd.DataFrame:
            rows = {
                name: np.interp(
                    np.log(np.multiply(constants, unit[name])), self.log_strength.loc[name], curve.loc[name]
                )
                for name in curve.index
            }
            return pd.DataFrame.from_dict(rows, orient="index", columns=list(constants))

        return Figures(self.figures.group, read(self.figures.error), read(self.figures.risk))

    def best_of_forms(self, forms: Mapping[str, Form]) -> pd.DataFrame:
        """Each form with the constant of least mean risk over all tables, ranked against one another."""
        chosen, labels = [], []
        for name, form in forms.items():
            risk = self.along(form, CONSTANTS).risk.mean()
            chosen.append(self.along(form, [risk.idxmin()]))
            labels.append(f"{name}, c = {risk.idxmin():.2g}")

        def together(column: str) -> pd.DataFrame:
            return pd.concat([getattr(one, column) for one in chosen], axis=1).set_axis(labels, axis=1)

        return Figures(self.figures.group, together("error"), together("risk")).summary()

    def against(self, path: Figures, formula: float) -> pd.DataFrame:
        """The default beside a constant, and beside the constant of each table that is best on its test rows."""
        figures = self.figures
        best = figures.error.fillna(figures.risk).idxmin(axis=1)

        def beside(column: str) -> pd.DataFrame:
            curve = getattr(figures, column)
            hindsight = pd.Series({name: curve.loc[name, best[name]] for name in curve.index})
            columns = {f"c = {formula}": curve[formula], "the best c of each table in hindsight": hindsight}
            return getattr(path, column).join(pd.DataFrame(columns))

        return Figures(figures.group, beside("error"), beside("risk")).summary()

    def best_constants(self) -> pd.DataFrame:
        """For each kind and size of made tables, the value of least risk."""
        made = self.figures.risk[self.figures.group.str.startswith("made")]
        best = made.idxmin(axis=1).map("{:.2g}".format)
        best.index = pd.MultiIndex.from_tuples([tuple(name.split()) for name in best.index])
        return best.unstack(sort=False).rename(columns=lambda m: f"m = {int(m):,}")


def report(records: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Titles and tables; none of what was not measured on any table."""
    known = set(records.family)
    curves = Curves.of(records, "l1", lambda m, K: m**-0.5)
    yield "l1: c of reg_lambda = c std(y) / sqrt(m)", curves.figures.summary()
    yield "l1: what the default chooses", curves.against(Figures.of(records, "auto, l1"), 0.4)
    yield "l1: forms, each with its best c", curves.best_of_forms(L1_FORMS)
    if curves.figures.group.str.startswith("made").any():
        yield "l1: best c of made tables", curves.best_constants()
    for family in filter(known.__contains__, ("l2, corrective", "l2, forward")):
        curves = Curves.of(records, family, lambda m, K: K / m)
        yield f"{family}: c of reg_lambda = c K / m", curves.figures.summary()
        if family == "l2, corrective":
            yield "l2: what the default chooses", curves.against(Figures.of(records, "auto, l2"), 0.3)
        yield f"{family}: forms, each with its best c", curves.best_of_forms(L2_FORMS)
    curves = Curves.of(records, "linf", lambda m, K: np.sqrt(m) / K)
    yield "linf: c of alpha_max = c std(y) sqrt(m) / K", curves.figures.summary()
    yield "linf: forms, each with its best c", curves.best_of_forms(LINF_FORMS)
    if "none" in known:
        yield "no penalty: rounds", Figures.of(records, "none").summary()
    for family in filter(known.__contains__, (*VARIANTS, *(f"rules: {name}" for name in RULES), "estimator")):
        values = records[records.family == family].groupby("value", sort=False)
        cost = pd.DataFrame(
            {"CPU s": values.seconds.mean().map("{:.3f}".format), "rounds": values.rounds.mean().round()}
        )
        title = "estimators" if family == "estimator" else family
        title = f"default estimator: {family}" if family in VARIANTS else title
        yield title, Figures.of(records, family).summary().join(cost.astype({"rounds": int}))


def as_markdown(frame: pd.DataFrame) -> str:
    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(map(str, cells)) + " |"

    index = [f"{value:.4g}" if isinstance(value, float) else f"{value}" for value in frame.index]
    head = [line(["", *frame.columns]), line(["---"] * (frame.shape[1] + 1))]
    return "\n".join([*head, *(line([name, *row]) for name, row in zip(index, frame.values.tolist(), strict=True))])


def below(path: Path, text: str) -> str:
    """The page that is there with other figures, or figures alone."""
    before, head, _ = path.read_text().partition(HEAD) if path.exists() else ("", "", "")
    return before + head + "\n" + text if head else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of tables with a manifest.json")
    parser.add_argument("--splits", type=int, default=2, help="of each table")
    parser.add_argument("--group", choices=GROUPS, help="tables of this kind alone")
    parser.add_argument("--quick", action="store_true", help="one split, small tables")
    parser.add_argument(
        "--output",
        type=Path,
        nargs="+",
        default=[],
        help=".md: the report, below '## Figures' of a page; .json: every figure",
    )
    options = parser.parse_args()

    tables = [*given_tables(options.data), *shipped_tables(), *made_tables(SIZES), *wide_tables(SHAPES)]
    if options.group:
        tables = [table for table in tables if table.group == options.group]
    if options.quick:
        tables, options.splits = [table for table in tables if table.n_train <= 1_000], 1
    few = min(2, options.splits)
    work = [(table, split) for table in tables for split in range(few if table.n_train > MANY_ROWS else options.splits)]
    by_size = sorted(work, key=lambda item: -item[0].n_train)  # the longest first: none is left alone at the end
    start, found = time.monotonic(), {}
    results = Parallel(n_jobs=2, return_as="generator_unordered")(delayed(measure)(*item) for item in by_size)
    for records in results:
        found[records[0]["table"], records[0]["split"]] = records
        print(f"\r{len(found)} of {len(work)}, {time.monotonic() - start:.0f} s ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)

    records = pd.DataFrame([record for table, split in work for record in found[table.name, split]])
    text = "\n\n".join(f"### {title}\n\n{as_markdown(frame)}" for title, frame in report(records)) + "\n"
    print(text, end="")
    for path in options.output:
        path.write_text(records.to_json(orient="records", indent=0) if path.suffix == ".json" else below(path, text))


if __name__ == "__main__":
    main()
