"""Estimators that choose their penalty, its strength and the number of rounds by cross-validation."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from ..boosting.losses import make_loss
from ..boosting.result import Boosted
from ..choosing.bands import bin_errors
from ..choosing.folds import Fold, Folds, Split
from ..choosing.hashed import HashedFolds
from ..choosing.losses import cross_validate_loss, strengths_of_loss
from ..choosing.plots import plot_surface
from ..choosing.rules import candidates_with_trees, cross_validate_rules
from ..choosing.search import Candidate, Judge, Table, check_strengths, cross_validate
from ..common.checks import at_least, one_of
from ..common.progress import steps_of
from ..data.exact import exact_mean
from ..data.examples import labels_of, real_targets
from ..fitting.calibration import calibrate_at_once
from ..fitting.measured import Measured, Options
from ..fitting.problem import Problem
from ..model.ensemble import Ensemble
from ..moments.moments import DEFAULT_CACHE_BYTES
from ..voters.binned import Binned
from .base import QuadBoost
from .plain import QuadBoostClassifier, QuadBoostRegressor

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

PENALTIES = ("l1", "l2", "linf", None)
AUTO = "auto"
AUTO_TREES = 100  # that are tried
ROUNDS_TO_JUDGE = 50  # numbers of rounds to try where each must be scored by itself

SEARCH_PARAMETERS = """penalty : {"auto", "l1", "l2", "linf", None} or a list of these
        "auto": l1 for stumps; l2 and l1 for rules.
    n_trees : int or "auto"
        How many trees to grow, in each split on its training rows; 0: stumps alone. "auto": both, and 100 trees.
    reg_lambda : int, list of floats, or dict from penalty to these
        Strengths of l1 and l2 penalties to try. A whole number: so many, evenly on a log scale below the largest
        useful one, which depends on the data.
    alpha_max : int or list of floats
        The same for linf.
    max_rounds : int
        Most boosting rounds of a candidate, for each output.
    rounds : None, int or list of ints
        Numbers of rounds to try. None: every one up to `max_rounds` where `scoring` is "risk", else 50 of them; a whole
        number: so many, evenly on a log scale.
    cv : int, splitter, HashedFolds, or iterable of (train, test) row numbers
        A whole number: so many folds, stratified by class for a classifier and never dividing a group, in the order
        of the rows as always in scikit-learn. `HashedFolds` looks at what rows are in place of their order.
    scoring : "risk", "error", the name of a scikit-learn scorer, or a callable(estimator, X, y)
        "risk" is the mean squared residual, from the moments of the rows held out, and costs next to nothing (under
        another loss: the mean loss);
        "error" (labels only) is the share of wrong labels. Both are weighted as the rows are, and less is better.
        Of a scorer more is better.
    one_standard_error : bool
        Choose the strongest penalty (then the fewest rounds) whose mean score is at most one standard error worse
        than the best one.
    thresholds_per_fold : bool
        Take the thresholds of each fold from its training rows alone, instead of once from all rows. Thresholds know
        nothing of the targets, but a strict estimate of the error wants this; it takes longer."""

SEARCH_ATTRIBUTES = """cv_results_ : dict of arrays, one entry per candidate and number of rounds; ready for a frame
        param_penalty, param_reg_lambda, param_alpha_max, param_n_trees, param_max_rounds, mean_test_score,
        std_test_score, standard_error, rank_test_score and, for each split, split0_test_score and so on.
    best_index_ : int
        Where in `cv_results_` the choice is.
    best_params_ : dict
        The choice, as parameters of the plain estimator.
    best_score_ : float
        Its mean score.
    best_estimator_ : estimator
        The plain estimator with these parameters, fitted to all rows. Its attributes are also here."""


class _Search(QuadBoost):
    """What both estimators share."""

    _plain: type[QuadBoost]  # the estimator without a search

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose, and learn from all rows with the choice.

        Parameters
        ----------
        X : array, list of rows, pandas or polars frame, pyarrow table or sparse matrix, of shape (m, d)
        y : array of shape (m,), of a regression also (m, n_outputs)
        sample_weight : array of shape (m,), optional
        groups : array of shape (m,), optional
            For the splitter: rows of a group stay together.
        """
        start, options = time.monotonic(), self._check()
        options.schedule.warn_if_idle(stacklevel=3)
        problem, _ = self._problem(X, y, sample_weight, options, needs_rows=True)
        self._fit_search(problem, y, groups, options, start)
        return self

    def plot(self, penalty: str | None = "chosen", ax: Any = None) -> Any:
        """Draw the mean score over strengths and rounds, for the chosen penalty or another one that was tried.

        Needs matplotlib.
        """
        check_is_fitted(self, "cv_results_")
        one_of("penalty", penalty, ["chosen", *dict.fromkeys(self.cv_results_["param_penalty"].tolist())])
        chosen = self.best_params_["penalty"] if penalty == "chosen" else penalty
        return plot_surface(self.cv_results_, chosen, self.best_params_, ax)

    def _estimator(self, **chosen: Any) -> QuadBoost:
        """The plain estimator: its parameters are those that it has in common with this one, and the chosen ones."""
        parameters = self.get_params(deep=False) | ({"n_trees": 0} if self.n_trees == AUTO else {})
        common = set(self._plain._get_param_names()) & set(parameters) - {"penalty", "reg_lambda", "alpha_max"}
        return self._plain(**{name: parameters[name] for name in common} | chosen)

    def _check(self) -> Options:
        """Check all parameters; the options are those of every fit."""
        if self.n_trees != AUTO:
            at_least("n_trees", self.n_trees, 0)
        for name in _penalties(self.penalty):
            one_of("penalty", name, PENALTIES)
        for name, strengths in self._strengths().items():
            check_strengths("alpha_max" if name == "linf" else "reg_lambda", strengths)
        for name in ("one_standard_error", "thresholds_per_fold"):
            one_of(name, getattr(self, name), (True, False))
        if not callable(self.scoring) and not isinstance(self.scoring, str):
            raise ValueError(f"scoring={self.scoring!r} must be 'risk', 'error', the name of a scorer, or a callable")
        if not callable(self.scoring) and self.scoring not in ("risk", "error"):
            get_scorer(self.scoring)  # its error names all scorers
        if self.scoring == "error" and not is_classifier(self):
            raise ValueError("scoring='error' counts wrong labels; for a regression use 'risk' or a scorer")
        options = self._estimator(penalty=None)._options()
        rounds = self._rounds()
        most = options.schedule.max_rounds if rounds is None else int(rounds[-1])
        return replace(options, schedule=replace(options.schedule, max_rounds=most))

    def _strengths(self) -> dict[str, Any]:
        """What was given for each penalty that has a strength."""
        lambdas = (
            self.reg_lambda if isinstance(self.reg_lambda, Mapping) else dict.fromkeys(("l1", "l2"), self.reg_lambda)
        )
        for name in lambdas:
            if name not in ("l1", "l2"):
                raise ValueError(f"reg_lambda has values for {name!r}; it may have them for 'l1' and 'l2'")
        strengths = {**lambdas, "linf": self.alpha_max}
        for name in _penalties(self.penalty):
            if name is not None and name not in strengths:
                raise ValueError(f"reg_lambda has no values for {name!r}; it has them for {list(lambdas)}")
        return {name: strengths[name] for name in _penalties(self.penalty) if name is not None}

    def _rounds(self) -> np.ndarray | None:
        """The numbers of rounds to try; None: every one."""
        rounds = self.rounds
        if rounds is None and self.scoring == "risk":
            return None
        if rounds is None or isinstance(rounds, Integral):
            count = ROUNDS_TO_JUDGE if rounds is None else at_least("rounds", rounds, 1)
            most = at_least("max_rounds", self.max_rounds, 1)
            return np.unique(np.geomspace(most, 1, count).round().astype(np.int64))
        values = list(rounds) if isinstance(rounds, Iterable) and not isinstance(rounds, str) else []
        if not values:
            raise ValueError(f"rounds={rounds!r} must be None, a whole number (how many to try) or a list of numbers")
        return np.unique([at_least("a value of rounds", value, 1) for value in values])

    def _candidates(self, problem: Problem, measured: Measured, options: Options) -> list[Candidate]:
        strengths = self._strengths()

        def values(name: str) -> np.ndarray:
            return strengths_of_loss(name, strengths[name], problem, measured, options)

        return [
            Candidate(name, float(value))
            for name in _penalties(self.penalty)
            for value in ([np.nan] if name is None else values(name))
        ]

    def _splits(
        self, X: Any, y: np.ndarray, kept: np.ndarray | None, groups: Any
    ) -> list[Split] | Callable[[np.ndarray], list[Split]]:
        """The splits, in numbers of the rows that are kept; or how they follow from the codes of these."""
        cv = self.cv
        if isinstance(cv, HashedFolds):
            if groups is not None:
                raise ValueError(f"cv={cv} may divide a group; give a number, or a splitter that knows groups")
            return cv.of
        if isinstance(cv, Integral):
            at_least("cv", cv, 2)
        if isinstance(cv, type):
            raise ValueError(f"cv={cv.__name__} is a class; give an object of it, such as {cv.__name__}()")
        if groups is not None:
            groups = column_or_1d(groups)
            check_consistent_length(y, groups)
            if isinstance(cv, Integral):
                cv = StratifiedGroupKFold(cv) if is_classifier(self) else GroupKFold(cv)
        all_splits: Iterable[Any]
        if isinstance(cv, Iterable):
            all_splits = cv
            number = np.arange(len(y)) if kept is None else np.where(kept, np.cumsum(kept) - 1, -1)
        else:  # rows of weight 0 are no rows: a splitter does not see them
            rows = np.arange(len(y)) if kept is None else np.flatnonzero(kept)
            number, X, y = np.arange(len(rows)), X if len(rows) == len(y) else _some_rows(X, rows), y[rows]
            groups = None if groups is None else groups[rows]
            all_splits = check_cv(cv, y, classifier=is_classifier(self)).split(X, y, groups)
        splits: list[Split] = []
        for split_of_cv in all_splits:
            name = f"split {len(splits)} of cv"
            try:
                train, held_out = (number[rows] for rows in split_of_cv)
            except (ValueError, IndexError, TypeError):
                raise ValueError(
                    f"{name} must be two arrays of row numbers below {len(number)}, those to train on and the others"
                ) from None
            split = Split(train[train >= 0], held_out[held_out >= 0])
            if not len(split.train) or not len(split.held_out):
                raise ValueError(f"{name} has no row to train on, or none to judge by")
            splits.append(split)
        if not splits:
            raise ValueError("cv gives no split; give a whole number of folds, such as 5")
        return splits

    def _fit_search(self, problem: Problem, y: Any, groups: Any, options: Options, start: float) -> None:
        """Score all candidates, choose, and fit the choice to all rows; y is of all rows of X, as the user gave it."""
        checked = real_targets if problem.classes is None else labels_of
        y = problem.examples.y if problem.examples.kept is None else checked(y)
        splits = self._splits(problem.examples.X, y, problem.examples.kept, groups)
        rounds = self._rounds()
        most = None if rounds is None else int(rounds[-1])
        folds = Folds(problem, splits, options, thresholds_per_fold=self.thresholds_per_fold, max_rounds=most)
        measured = Measured(problem.rows, folds.voters, folds.codes, folds.all_rows)
        stumps = [] if self.n_trees not in (0, AUTO) else self._candidates(problem, measured, options)
        rules = []
        if self.n_trees:
            penalties = _penalties(["l2", "l1"] if self.penalty == AUTO else self.penalty)
            strengths = self._strengths() | (dict.fromkeys(penalties, self.reg_lambda) if self.penalty == AUTO else {})
            n_trees = AUTO_TREES if self.n_trees == AUTO else int(self.n_trees)
            rules = candidates_with_trees(penalties, strengths, problem, options, n_trees)
        candidates, judge = [*stumps, *rules], self._judge(problem, y, options)
        with steps_of(self.verbose, len(candidates) * len(folds.splits), "run") as tell:
            tables = []
            if stumps and options.loss == "squared":
                tables.append(cross_validate(folds, stumps, rounds, judge, tell))
            elif stumps:
                tables.append(cross_validate_loss(folds, stumps, judge, tell))
            if rules:
                tables.append(cross_validate_rules(folds, rules, judge, tell))
            table = reduce(Table.joined, tables)
        greater_is_better = self.scoring not in ("risk", "error")
        row = table.choose(greater_is_better=greater_is_better, one_standard_error=self.one_standard_error)
        self.cv_results_ = _results(table, greater_is_better)
        self.best_index_ = row
        self.best_score_ = float(table.mean[row])
        self.best_params_ = _parameters(candidates[table.candidate[row]], int(table.rounds[row]))
        self._refit(folds, measured, table, start)

    def _judge(self, problem: Problem, y: np.ndarray, options: Options) -> Judge | None:
        if self.scoring == "risk":
            return None
        rows, kept = problem.rows, problem.examples.kept
        loss = options.loss
        link = None if loss == "squared" else make_loss(loss, rows.y, None, np.ones(rows.y.shape[1])).link
        is_calibrated = loss == "squared" and getattr(self, "calibration", None) == "auto"

        def model(fold: Fold, runs: Sequence[Boosted]) -> Ensemble:
            calibration = calibrate_at_once(fold.measured, options, runs) if is_calibrated else None
            return problem.ensemble(fold.voters, runs, loss=loss, link=link, calibration=calibration)

        if self.scoring == "error":

            def error(fold: Fold, runs: Sequence[Boosted]) -> float:
                found = model(fold, runs)
                wrong = (
                    found.labels_of(found.score_matrix(rows.matrix(fold.rows), n_jobs=1))
                    != problem.examples.y[fold.rows]
                )
                return exact_mean(wrong.astype(np.float64), None if rows.weight is None else rows.weight[fold.rows])

            return error

        original = np.arange(len(y)) if kept is None else np.flatnonzero(kept)
        scorer = self.scoring if callable(self.scoring) else get_scorer(self.scoring)
        weight = problem.examples.all_weights() if _takes_weights(scorer) else None
        X = problem.examples.X

        def score(fold: Fold, runs: Sequence[Boosted]) -> float:
            estimator = self._plain.from_ensemble(model(fold, runs), n_jobs=1)
            held_out = original[fold.rows]
            weighted = {} if weight is None else {"sample_weight": weight[held_out]}
            return float(scorer(estimator, _some_rows(X, held_out), y[held_out], **weighted))

        return score

    def _refit(self, folds: Folds, measured: Measured, table: Table, start: float) -> None:
        """Fit the chosen estimator to all rows, and take over what it has learnt."""
        best: Any = self._estimator(**self.best_params_)
        options = best._options()
        best._fit(folds.problem, None, options, start, None if options.growth.n_trees else measured)
        choice = {
            "scoring": self.scoring if isinstance(self.scoring, str) else _name_of(self.scoring),
            "score": self.best_score_,
            "splits": sum(name.startswith("split") for name in self.cv_results_),
            "candidates": len(self.cv_results_["mean_test_score"]),
            "chosen": self.best_params_,
        }
        best.ensemble_ = best.ensemble_.replace(
            bin_error=bin_errors(folds, options, best.ensemble_, table, self.best_index_),
            info={**best.ensemble_.info, "estimator": type(self).__name__, "cross_validation": choice},
        )
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        for name in vars(best).keys() - best.get_params(deep=False).keys():
            setattr(self, name, vars(best)[name])
        self.best_estimator_ = best


def _some_rows(X: Any, rows: np.ndarray) -> Any:
    """Those rows of a table. Some versions of scikit-learn that we support do not know tables of pyarrow."""
    if isinstance(X, Binned):
        return X[rows]
    return X.take(rows) if hasattr(X, "column_names") else _safe_indexing(X, rows)


def _penalties(penalty: Any) -> list[Any]:
    """The penalties to try; "auto" is that of stumps."""
    penalty = "l1" if isinstance(penalty, str) and penalty == AUTO else penalty
    penalties = list(penalty) if isinstance(penalty, list | tuple) else [penalty]
    if not penalties or len(set(map(repr, penalties))) < len(penalties):
        raise ValueError(f"penalty={penalty!r} must name at least one penalty, and none twice")
    return penalties


def _name_of(scorer: Any) -> str:
    """A name for a scorer that is the same in every run."""
    return str(getattr(scorer, "__name__", type(scorer).__name__))


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, and the metric behind it if it names one, take sample weights."""
    functions = [scorer, getattr(scorer, "_score_func", scorer)]
    return all("sample_weight" in inspect.signature(function).parameters for function in functions)


def _parameters(candidate: Candidate, rounds: int) -> dict[str, Any]:
    """A candidate as parameters of the plain estimator."""
    parameters: dict[str, Any] = {"penalty": candidate.penalty, "max_rounds": rounds, "n_trees": candidate.n_trees}
    if candidate.penalty is not None:
        parameters["alpha_max" if candidate.penalty == "linf" else "reg_lambda"] = candidate.strength
    return parameters


def _results(table: Table, greater_is_better: bool) -> dict[str, np.ndarray]:
    def column(values: list[Any], dtype: Any = np.float64) -> np.ndarray:
        return np.array(values, dtype=dtype)[table.candidate]

    loss = np.nan_to_num(-table.mean if greater_is_better else table.mean, nan=np.inf)
    return {
        "param_penalty": column([candidate.penalty for candidate in table.candidates], object),
        "param_reg_lambda": column([candidate.reg_lambda for candidate in table.candidates]),
        "param_alpha_max": column([candidate.alpha_max for candidate in table.candidates]),
        "param_n_trees": column([candidate.n_trees for candidate in table.candidates], np.int64),
        "param_max_rounds": table.rounds,
        "mean_test_score": table.mean,
        "std_test_score": table.score.std(axis=1),
        "standard_error": table.standard_error,
        "rank_test_score": np.searchsorted(np.sort(loss), loss) + 1,
        **{f"split{number}_test_score": score for number, score in enumerate(table.score.T)},
    }


class QuadBoostClassifierCV(_Search, QuadBoostClassifier):  # type: ignore[misc]  # fit takes groups, no validation rows
    __doc__ = f"""`QuadBoostClassifier` that chooses its penalty and number of rounds by cross-validation.

    The Gram columns of a fold are those of all rows less those of the rows held out, all penalties share them, and one
    run gives every number of rounds: a whole grid costs far less than to fit each candidate to each fold.

    The parameters that are not described here are those of `QuadBoostClassifier`.

    Parameters
    ----------
    {SEARCH_PARAMETERS}

    Attributes
    ----------
    {SEARCH_ATTRIBUTES}
    """

    _plain = QuadBoostClassifier

    def __init__(
        self, penalty: Any = "auto", *, n_trees: int | str = 0, max_leaves: int = 31, max_conditions: int | None = None,
        interaction_cst: Any = None, growth_rows: int = 200_000, random_state: Any = None, reg_lambda: Any = 10,
        alpha_max: Any = 10, rounds: Any = None, cv: Any = 5,
        scoring: Any = "risk", one_standard_error: bool = False, thresholds_per_fold: bool = False,
        mode: str = "corrective", max_rounds: int = 1_000, thresholds: int | str = "auto", spacing: str = "quantile",
        fit_intercept: bool = True, reweight_every: int | str | None = "auto", reweight_sweeps: int | str = 1,
        tol: float = 1e-4, cache_bytes: int = DEFAULT_CACHE_BYTES, categorical_features: Any = "auto",
        min_category_count: int = 5, class_weight: Any = None, monotonic_cst: Any = None, loss: str = "squared",
        calibration: str | None = "auto", n_jobs: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._set_parameters(locals())


class QuadBoostRegressorCV(_Search, QuadBoostRegressor):  # type: ignore[misc]  # fit takes groups, no validation rows
    __doc__ = f"""`QuadBoostRegressor` that chooses its penalty and number of rounds by cross-validation.

    The parameters that are not described here are those of `QuadBoostRegressor`. With `standardize`, "risk" is in units
    of each target's variance.

    Parameters
    ----------
    {SEARCH_PARAMETERS}

    Attributes
    ----------
    {SEARCH_ATTRIBUTES}
    """

    _plain = QuadBoostRegressor

    def __init__(
        self, penalty: Any = "auto", *, n_trees: int | str = 0, max_leaves: int = 31, max_conditions: int | None = None,
        interaction_cst: Any = None, growth_rows: int = 200_000, random_state: Any = None, reg_lambda: Any = 10,
        alpha_max: Any = 10, rounds: Any = None, cv: Any = 5,
        scoring: Any = "risk", one_standard_error: bool = False, thresholds_per_fold: bool = False,
        mode: str = "corrective", max_rounds: int = 1_000, thresholds: int | str = "auto", spacing: str = "quantile",
        fit_intercept: bool = True, reweight_every: int | str | None = "auto", reweight_sweeps: int | str = 1,
        tol: float = 1e-4, cache_bytes: int = DEFAULT_CACHE_BYTES, categorical_features: Any = "auto",
        min_category_count: int = 5, monotonic_cst: Any = None, loss: str = "squared", quantile: float = 0.5,
        huber_width: float | str = "auto", standardize: bool = False, n_jobs: int | None = None, verbose: int = 0,
    ) -> None:  # fmt: skip
        self._set_parameters(locals())
