"""What can honestly be promised of a model: bounds on the error it will make on new examples.

The held-out bound is the one that helps. The others need no test set, but are loose; a bound of 1 or more says
nothing, and is called vacuous. docs/theory.md has the maths, and where it differs from the paper.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..common.checks import at_least, one_of
from ..model.ensemble import Ensemble
from .complexity import Complexity, rademacher_complexity

MONTE_CARLO_SHARE = 0.05  # of delta, for the error of the estimated complexity
LEAST_LAMBDA, MOST_LAMBDA = 1e-9, 1e6  # between which the fixed point of the l2 penalty is looked for,
LAMBDA_STEP, LAMBDA_PRECISION = 4.0, 1.001  # in steps of this factor, and then to this factor

# Functions of the signed score y F(x), never below the zero-one loss; the Lipschitz constant of each, clipped at 1.
LOSSES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "quadratic": (lambda signed: (1.0 - signed) ** 2, 2.0),
    "clipped quadratic": (lambda signed: np.minimum((1.0 - signed) ** 2, 1.0), 2.0),
    "ramp": (lambda signed: np.clip(1.0 - signed, 0.0, 1.0), 1.0),
}


@dataclass(frozen=True)
class RiskBound:
    """A bound on the error, term by term.

    Attributes
    ----------
    name : str
    delta : float
        The bound holds with probability 1 - delta over the draw of the training rows.
    risk : float
        Mean loss on these rows.
    complexity : float
        What the Rademacher complexity of the voters adds.
    monte_carlo : float
        What it may be more, for it is an estimate.
    confidence, log_log : float
        What holding with probability 1 - delta adds, and holding for every norm of the weights.
    norm : float
        Of the weights, one for each distinct voter, and one for the intercept if there is any.
    n_voters : int
        How many weights that are.
    scale : float
        By what the score was multiplied; the labels do not depend on that.
    rademacher : Complexity
    """

    name: str
    delta: float
    risk: float
    complexity: float
    monte_carlo: float
    confidence: float
    log_log: float
    norm: float
    n_voters: int
    scale: float
    rademacher: Complexity

    @property
    def total(self) -> float:
        """The bound: the sum of its terms."""
        return self.risk + self.complexity + self.monte_carlo + self.confidence + self.log_log

    @property
    def vacuous(self) -> bool:
        """Whether it is 1 or more, which says nothing."""
        return self.total >= 1.0

    def __str__(self) -> str:
        promise = f"error at most {self.total:.3f} with probability {1 - self.delta:g}"
        nothing = f"vacuous, for a bound of {self.total:.3f} says nothing"
        return (
            f"{self.name}: {nothing if self.vacuous else promise}\n"
            f"  mean loss on {self.rademacher.n_examples} training rows {self.risk:.4f}\n"
            f"  + complexity {self.complexity:.4f} (voters: {self.n_voters}, norm of their weights: {self.norm:.3g},"
            f" R: {self.rademacher.value:.4f})\n"
            f"  + error of R {self.monte_carlo:.4f} + confidence {self.confidence:.4f}"
            f" + every norm {self.log_log:.4f}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Every figure, as JSON can hold it."""
        return {**asdict(self), "total": self.total, "vacuous": self.vacuous}


def held_out_bound(errors: int, n: int, delta: float = 0.05) -> float:
    """The largest error rate with which so few errors have a probability of delta (Clopper and Pearson).

    With probability at least 1 - delta over n examples that played no part in training, the model's true error is
    not above this. For any model, any number of classes.

    Parameters
    ----------
    errors : int
        Wrong predictions.
    n : int
        Predictions, wrong and right.
    delta : float
        The bound may fail with this probability.
    """
    from scipy.special import betaincinv

    n = at_least("n", n, 1)
    if at_least("errors", errors, 0) > n:
        raise ValueError(f"errors={errors} must not be more than n={n}")
    _check_delta(delta)
    return 1.0 if errors == n else float(betaincinv(errors + 1, n - errors, 1.0 - delta))


def risk_bound(
    model: Any, X: Any, y: Any, *, delta: float = 0.05, p: float = 1, variant: str = "corrected",
    loss: str = "quadratic", complexity: Complexity | None = None, draws: int = 1000,
    random_state: int | np.random.Generator | None = 0, n_jobs: int | None = None,
) -> RiskBound:  # fmt: skip
    """Theorem 1 of the paper for a model of stumps for two classes, on the rows it was trained on.

    Where a link was folded into the model, the bound is of its weights without the slope: score / slope has the same
    sign, so it makes the same errors. A model of another loss than the squared one has no score that the quadratic
    loss is meant for, and is refused unless `loss` is "ramp".

    Parameters
    ----------
    model : fitted classifier or Ensemble
    X, y
        The training rows, also those for early stopping if you like: the bound is for all weights at once, however
        they were found. Each row counts once, whatever weight it had.
    delta : float
        The bound may fail with this probability over the draw of these rows.
    p : float of at least 1, or inf
        Norm of the weights, to be chosen beforehand. No other has a smaller complexity term than 1.
    variant : {"corrected", "paper"}
        "paper" is the formula as printed for the empirical complexity, without the error of its estimate, for
        comparison; it has no proof.
    loss : {"quadratic", "clipped quadratic", "ramp"}
        The loss whose mean is taken; also to be chosen beforehand.
    complexity : Complexity, optional
        Of the voters on X, where it is known; estimated over all stumps by default.
    draws : int
        For that estimate, as in `rademacher_complexity`.
    random_state : int, Generator or None
        The same.
    n_jobs : int, optional
        The same.
    """
    _check_delta(delta)
    one_of("variant", variant, ("corrected", "paper"))
    loss_of, lipschitz = LOSSES[one_of("loss", loss, list(LOSSES))]
    if not p >= 1:
        raise ValueError(f"p={p!r} must be at least 1")
    ensemble = _two_class_ensemble(model)
    if ensemble.loss != "squared" and loss != "ramp":
        raise ValueError(
            f"the model was fitted to the {ensemble.loss} loss, so its {loss} loss promises nothing useful; take "
            "scale_free_bound, which depends on the sign of the score alone, or loss='ramp'"
        )
    signed, weight = _signed_scores(ensemble, X, y, n_jobs), _voter_weights(ensemble)
    m, n = len(signed), len(weight)
    complexity = complexity or _complexity(ensemble, X, draws, random_state, n_jobs)
    _check_rows(complexity, m)
    norm = float(np.linalg.norm(weight, p)) if n else 0.0
    rho = max(norm, 1.0)  # the union over norms begins at 1
    factor = 4.0 * lipschitz * rho * n ** (1.0 - 1.0 / p)
    # The combinations of norm 1 are the same for any number of voters where p = 1: no union over that number.
    sizes = 1 if p == 1 and variant == "corrected" else (n + 1) ** 2
    log_log = math.sqrt(math.log(math.log2(2.0 * rho)) / m)

    def confidence(delta: float) -> float:
        return math.sqrt(math.log(math.pi**2 * sizes / (6.0 * delta)) / (2.0 * m))

    if variant == "paper":
        excess, terms = 0.0, (confidence(delta / 2.0), 3.0 * log_log)
    else:
        excess = complexity.upper(MONTE_CARLO_SHARE * delta) - complexity.value
        terms = 3.0 * confidence((1.0 - MONTE_CARLO_SHARE) * delta), 3.0 * log_log
    return RiskBound(
        name=f"Theorem 1 ({variant}, p = {p:g}, {loss} loss)",
        delta=delta,
        risk=float(loss_of(signed).mean()),
        complexity=factor * complexity.value,
        monte_carlo=factor * excess,
        confidence=terms[0],
        log_log=terms[1],
        norm=norm,
        n_voters=n,
        scale=1.0 / _slope(ensemble),
        rademacher=complexity,
    )


def scale_free_bound(
    model: Any, X: Any, y: Any, *, delta: float = 0.05, complexity: Complexity | None = None, draws: int = 1000,
    random_state: int | np.random.Generator | None = 0, n_jobs: int | None = None,
) -> RiskBound:  # fmt: skip
    """The L1 bound with the ramp loss at the best scale of the score, for a model of stumps for two classes.

    The labels do not change when the score is multiplied. Of the scales at which the L1 norm of the weights is
    1, 2, 4, ..., the one with the least bound is taken. For a small ensemble the bound can be below 1. The parameters
    are those of `risk_bound`.
    """
    _check_delta(delta)
    ensemble = _two_class_ensemble(model)
    signed, weight = _signed_scores(ensemble, X, y, n_jobs), _voter_weights(ensemble)
    m, norm = len(signed), float(np.abs(weight).sum())
    complexity = complexity or _complexity(ensemble, X, draws, random_state, n_jobs)
    _check_rows(complexity, m)
    ramp = LOSSES["ramp"][0]
    upper = complexity.upper(MONTE_CARLO_SHARE * delta)
    # R is at least 1 / sqrt(2 m), for the constant is a voter: with a norm above sqrt(m / 2) the bound is vacuous.
    norms = [2.0**k for k in range(max(1, 1 + math.floor(math.log2(m / 2.0) / 2.0)))]
    confidence = 3.0 * math.sqrt(math.log(len(norms) / ((1.0 - MONTE_CARLO_SHARE) * delta)) / (2.0 * m))
    risks = [float(ramp(signed * (target / (norm or 1.0))).mean()) for target in norms]
    best = int(np.argmin([risk + 2.0 * target * upper for risk, target in zip(risks, norms, strict=True)]))
    return RiskBound(
        name="Scale-free L1 bound (ramp loss)",
        delta=delta,
        risk=risks[best],
        complexity=2.0 * norms[best] * complexity.value,
        monte_carlo=2.0 * norms[best] * (upper - complexity.value),
        confidence=confidence,
        log_log=0.0,
        norm=norms[best],
        n_voters=len(weight),
        scale=norms[best] / (norm or 1.0) / _slope(ensemble),
        rademacher=complexity,
    )


@dataclass(frozen=True)
class Certificate:
    """All that can be promised of a model; each bound holds with probability 1 - delta by itself.

    Attributes
    ----------
    delta : float
    n_test, test_errors : int
        Test rows, and how many of them the model gets wrong.
    held_out : float or None
        `held_out_bound` of these; None without test rows.
    bounds : tuple of RiskBound
        From the training rows: scale-free, then, if the model was fitted to the squared loss, Theorem 1 with p = 1.
        Empty for more than two classes, and for a model with rules.
    n_rules : int
        Rules of the model: the complexity of stumps does not cover them.
    """

    delta: float
    n_test: int
    test_errors: int
    held_out: float | None
    bounds: tuple[RiskBound, ...]
    n_rules: int = 0

    def __str__(self) -> str:
        if self.held_out is None:
            first = "Held-out bound: give rows that played no part in training; it is the bound that helps"
        else:
            first = (
                f"Held-out bound (Clopper-Pearson): error at most {self.held_out:.3f} with probability "
                f"{1 - self.delta:g}\n  {self.test_errors} errors on {self.n_test} test rows"
            )
        none = (
            "The bounds from the training rows are for stumps"
            if self.n_rules
            else ("The bounds from the training rows are for two classes")
        )
        return "\n".join([first, *(map(str, self.bounds) if self.bounds else [none])])

    def as_dict(self) -> dict[str, Any]:
        """Every figure, as JSON can hold it."""
        return {**asdict(self), "bounds": [bound.as_dict() for bound in self.bounds]}


def certify(
    model: Any, X: Any, y: Any, X_test: Any = None, y_test: Any = None, *, delta: float = 0.05, draws: int = 1000,
    random_state: int | np.random.Generator | None = 0, n_jobs: int | None = None,
) -> Certificate:  # fmt: skip
    """Every bound that a classifier can have.

    The parameters that are not described here are those of `risk_bound`.

    Parameters
    ----------
    model : fitted classifier or Ensemble
    X, y
        The training rows.
    X_test, y_test : optional
        Rows that played no part in training, nor in the choice of a parameter or of the number of rounds.
    """
    _check_delta(delta)
    ensemble = _classifier_ensemble(model)
    n_test, errors, held_out = 0, 0, None
    if (X_test is None) != (y_test is None):
        raise ValueError("give both X_test and y_test, or neither")
    if X_test is not None:
        predicted = ensemble.predict(X_test, n_jobs=n_jobs)
        wrong = predicted != _known_labels(ensemble, y_test, len(predicted), "_test")
        n_test, errors = len(wrong), int(np.count_nonzero(wrong))
        held_out = held_out_bound(errors, n_test, delta)
    bounds: tuple[RiskBound, ...] = ()
    if ensemble.weight.ndim == 1 and not ensemble.n_rules:
        complexity = _complexity(ensemble, X, draws, random_state, n_jobs)
        bounds = (scale_free_bound(ensemble, X, y, delta=delta, complexity=complexity, n_jobs=n_jobs),)
        if ensemble.loss == "squared":
            bounds += (risk_bound(ensemble, X, y, delta=delta, complexity=complexity, n_jobs=n_jobs),)
    return Certificate(delta, n_test, errors, held_out, bounds, ensemble.n_rules)


def theory_lambda(penalty: str | None, complexity: float, fit: Callable[[float], np.ndarray] | None = None) -> float:
    """The strength of a penalty that makes it the complexity term of Theorem 1, for labels -1 and +1.

    Parameters
    ----------
    penalty : {"l1", "l2"}
        l1: 4 R. l2: the fixed point of lambda = 4 R sqrt(n) / norm, with the number n of voters and the norm of
        the weights that this lambda leads to.
    complexity : float
        R, such as `Complexity.value`.
    fit : callable, for l2
        From lambda to the weights.

    Warns
    -----
    UserWarning
        Always: the bound is loose, and its lambda far too large to predict well.
    """
    if penalty == "l1":
        strength = 4.0 * complexity
    elif penalty == "l2" and fit is not None:
        strength = _fixed_point(complexity, fit)
    else:
        raise ValueError(f"reg_lambda='theory' is for the penalties 'l1' and 'l2', not for penalty={penalty!r}")
    warnings.warn(
        f"reg_lambda='theory' is {strength:.3g}: the least bound on the error, not the least error. The bound is "
        "loose, so that a much smaller lambda nearly always predicts better; use 'auto' or cross-validation for that",
        stacklevel=2,
    )
    return strength


def _fixed_point(complexity: float, fit: Callable[[float], np.ndarray]) -> float:
    def too_large(strength: float) -> bool:
        weight = fit(strength)
        n = np.count_nonzero(weight)
        return bool(strength * np.linalg.norm(weight) > 4.0 * complexity * math.sqrt(n))

    high = 1.0
    while not too_large(high):
        high *= LAMBDA_STEP
        if high > MOST_LAMBDA:
            raise ValueError(
                "there is no reg_lambda='theory' for the l2 penalty on these rows: the complexity term outweighs "
                "whatever voters gain, and the least bound is that of no voters at all; use 'auto' or a number"
            )
    low = high / LAMBDA_STEP
    while low > LEAST_LAMBDA and too_large(low):
        low, high = low / LAMBDA_STEP, low
    while high / low > LAMBDA_PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return high


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} must lie between 0 and 1")


def _check_rows(complexity: Complexity, m: int) -> None:
    if complexity.n_examples != m:
        raise ValueError(f"the complexity is of {complexity.n_examples} rows, but X has {m}; take that of X")


def _classifier_ensemble(model: Any) -> Ensemble:
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"{type(model).__name__} is neither an Ensemble nor a fitted estimator of this package")
    if ensemble.classes is None:
        raise ValueError("the bounds are on the error of a classifier; this model is a regression")
    return ensemble


def _two_class_ensemble(model: Any) -> Ensemble:
    ensemble = _classifier_ensemble(model)
    if ensemble.weight.ndim != 1:
        raise ValueError(
            f"the model has {ensemble.n_outputs} classes and this bound is for two; held_out_bound is for any number"
        )
    if ensemble.n_rules:
        raise ValueError(
            f"the model has {ensemble.n_rules} rules and this bound is for stumps, whose complexity does not cover "
            "them; use held_out_bound, which is for any model"
        )
    return ensemble


def _slope(ensemble: Ensemble) -> float:
    return float(np.ravel(ensemble.slope)[0])


def _voter_weights(ensemble: Ensemble) -> np.ndarray:
    """The weight of every voter, the constant among them, that has any; without the slope of a link."""
    weight = np.append(ensemble.weight, ensemble.intercept) / _slope(ensemble)
    return weight[weight != 0]


def _known_labels(ensemble: Ensemble, y: Any, n_rows: int, suffix: str = "") -> np.ndarray:
    """One label of the model's classes for each row."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y{suffix} has shape {labels.shape}; it must hold one label for each row")
    if len(labels) != n_rows:
        raise ValueError(f"X{suffix} has {n_rows} rows and y{suffix} has {len(labels)}; give one label for every row")
    assert ensemble.classes is not None
    known = np.zeros(n_rows, dtype=bool)
    for label in ensemble.classes:
        known |= labels == label
    if not known.all():
        unknown = labels[~known].tolist()[0]
        raise ValueError(
            f"y{suffix} holds {unknown!r}, which is none of the model's classes {ensemble.classes.tolist()}"
        )
    return labels


def _signed_scores(ensemble: Ensemble, X: Any, y: Any, n_jobs: int | None) -> np.ndarray:
    """y F(x) of every row, of the score without the slope of a link."""
    score = ensemble.decision_function(X, n_jobs=n_jobs) / _slope(ensemble)
    labels = _known_labels(ensemble, y, len(score))
    assert ensemble.classes is not None
    return np.where(labels == ensemble.classes[1], score, -score)


def _complexity(ensemble: Ensemble, X: Any, draws: int, random_state: Any, n_jobs: int | None) -> Complexity:
    # By the values of X, not by the model's levels: which rare values share one depends on the sample.
    names, levels = ensemble.feature_names, sorted(ensemble.categories)
    columns = levels if names is None or not hasattr(X, "columns") else [names[f] for f in levels]
    return rademacher_complexity(X, draws=draws, random_state=random_state, categorical_features=columns, n_jobs=n_jobs)
