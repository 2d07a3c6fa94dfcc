"""The whole algorithm, slowly: explicit voter outputs, scores from scratch in every round.

The tests compare the package with this module, so it imports nothing of the package, and
where it could be clever it is not. Means are weighted by ``weight`` normalised to sum 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

THRESHOLD, LEVEL, MISSING = 0, 1, 2

# Two voters whose decreases differ by less than this (relative to mean(y^2)) count as tied.
NEAR_TIE = 1e-10


# ---------------------------------------------------------------- thresholds


def distinct_masses(values: ArrayLike, weight: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Distinct values that are present and carry weight, ascending, and the mass of each."""
    values = np.asarray(values, dtype=np.float64)
    weight = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    counted = ~np.isnan(values) & (weight > 0)
    distinct, inverse = np.unique(values[counted], return_inverse=True)
    mass = np.zeros(len(distinct))
    np.add.at(mass, inverse, weight[counted])
    return distinct, mass


def midpoints(distinct: Floats) -> Floats:
    """Cuts between adjacent values: a <= t < b even where the midpoint rounds up to b."""
    low, high = distinct[:-1], distinct[1:]
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def thresholds_of(values: ArrayLike, weight: ArrayLike | None, k: int | None, spacing: str) -> Floats:
    """All midpoints (``k`` None, or no more than ``k`` of them), or ``k`` evenly spaced.

    Mass-aware quantiles leave a freedom of choice: see `check_quantile_thresholds`.
    """
    distinct, _ = distinct_masses(values, weight)
    if len(distinct) < 2:
        return np.empty(0)
    if k is not None and spacing == "uniform":
        return np.linspace(distinct[0], distinct[-1], k + 2)[1:-1]
    if k is None or len(distinct) - 1 <= k:
        return midpoints(distinct)
    raise ValueError("quantile thresholds are checked by their properties, not recomputed")


def check_quantile_thresholds(values: ArrayLike, weight: ArrayLike | None, k: int, cuts: ArrayLike) -> None:
    """Assert what mass-aware quantile thresholds promise.

    A value is heavy when its mass exceeds the fair bin mass, total / (k + 1). Heavy values
    stand alone if k cuts suffice for that. The heaviest bin of several values is at most twice
    as heavy as it must be: twice the larger of the fair bin mass (of the light values, where
    the heavy ones stand alone) and the smallest bound that any k cuts could meet.
    """
    distinct, mass = distinct_masses(values, weight)
    cuts = np.asarray(cuts, dtype=np.float64)
    assert len(cuts) <= k
    assert np.all(np.diff(cuts) > 0)
    if len(distinct) < 2:
        assert len(cuts) == 0
        return
    below = np.searchsorted(distinct, cuts, side="right") - 1
    assert np.all((below >= 0) & (below < len(distinct) - 1)), "a cut outside the values"
    assert len(np.unique(below)) == len(below), "two cuts in the same gap"
    np.testing.assert_allclose(cuts, midpoints(distinct)[below], rtol=1e-15, atol=0)
    if len(distinct) - 1 <= k:
        assert len(cuts) == len(distinct) - 1
        return

    bin_of_value = np.searchsorted(below, np.arange(len(distinct)), side="left")
    values_in_bin = np.bincount(bin_of_value, minlength=len(cuts) + 1)
    mass_of_bin = np.bincount(bin_of_value, weights=mass, minlength=len(cuts) + 1)
    heaviest = float(mass_of_bin[values_in_bin > 1].max(initial=0.0))
    alone = mass > mass.sum() / (k + 1) * (1 + 1e-9)
    if _cuts_needed(mass, alone, np.inf) > k:
        alone[:] = False
    assert np.all(values_in_bin[bin_of_value[alone]] == 1), "a heavy value shares its bin"
    fair = mass[~alone].sum() / (k + 1 - alone.sum())
    bound = 2 * max(fair, smallest_bin_bound(mass, alone, k))
    assert heaviest <= bound * (1 + 1e-9), f"a bin of several values has mass {heaviest}, not {bound}"


def smallest_bin_bound(mass: Floats, alone: NDArray[np.bool_], k: int) -> float:
    """Smallest mass that no bin of several values need exceed with ``k`` cuts."""
    low, high = 0.0, float(mass.sum())
    for _ in range(60):
        middle = (low + high) / 2
        if _cuts_needed(mass, alone, middle) <= k:
            high = middle
        else:
            low = middle
    return high


def _cuts_needed(mass: Floats, alone: NDArray[np.bool_], bound: float) -> int:
    """Cuts that leave some values alone and keep bins of several values within ``bound``."""
    cuts, filled = 0, float(mass[0])
    for i in range(1, len(mass)):
        if alone[i] or alone[i - 1] or filled + mass[i] > bound:
            cuts, filled = cuts + 1, float(mass[i])
        else:
            filled += float(mass[i])
    return cuts


# -------------------------------------------------------------------- voters


def is_missing(value: Any) -> bool:
    return value is None or value != value


def voter_matrix(
    X: Any,
    feature: Sequence[int],
    kind: Sequence[int],
    threshold: Sequence[float],
    categories: dict[int, list[list[Any]]] | None = None,
) -> Floats:
    """Outputs (m, K) in {-1, 0, +1} of threshold, level and missing voters."""
    X = np.asarray(X)
    H = np.empty((len(X), len(feature)))
    for j, (f, what, t) in enumerate(zip(feature, kind, threshold, strict=True)):
        for i, x in enumerate(X[:, f]):
            if what == MISSING:
                H[i, j] = 1 if is_missing(x) else -1
            elif is_missing(x):
                H[i, j] = 0
            elif what == LEVEL:
                assert categories is not None
                H[i, j] = 1 if x in categories[f][int(t)] else -1
            else:
                H[i, j] = 1 if x > t else -1
    return H


def all_stumps(X: Floats) -> tuple[list[int], list[int], list[float]]:
    """Feature, kind and threshold of every stump between distinct values of a numeric table."""
    stumps: list[tuple[int, int, float]] = []
    for f in range(X.shape[1]):
        stumps += [(f, THRESHOLD, t) for t in thresholds_of(X[:, f], None, None, "all")]
        missing = np.isnan(X[:, f])
        stumps += [(f, MISSING, 0.0)] if missing.any() and not missing.all() else []
    feature, kind, threshold = zip(*stumps, strict=True) if stumps else ((), (), ())
    return list(feature), list(kind), list(threshold)


# ----------------------------------------------------------------- penalties
# ``lam`` is the penalty's one number: lambda of l1 and l2, alpha_max of linf, unused by None.


def part_of_objective(penalty: str | None, x: float, z: float, eta: float, lam: float) -> float:
    """f(x): what one voter of weight x adds to the objective, the other voters fixed."""
    if penalty == "l1":
        return eta * x**2 - 2 * z * x + 2 * lam * abs(x)
    if penalty == "l2":
        return (eta + lam) * x**2 - 2 * z * x
    return eta * x**2 - 2 * z * x


def new_weight(penalty: str | None, z: float, eta: float, lam: float) -> float:
    """Minimiser of f. A voter that never votes (eta 0) gets no weight."""
    if eta <= 0:
        return 0.0
    if penalty is None:
        return z / eta
    if penalty == "l1":
        return float(np.sign(z)) * max(abs(z) - lam, 0.0) / eta
    if penalty == "l2":
        return z / (eta + lam)
    if penalty == "linf":
        return float(np.clip(z / eta, -lam, lam))
    raise ValueError(penalty)


def decrease_of_new_voter(penalty: str | None, z: float, eta: float, lam: float) -> float:
    """What the objective loses when a voter without weight is given its new weight."""
    if eta <= 0:
        return 0.0
    if penalty is None:
        return z**2 / eta
    if penalty == "l1":
        return max(abs(z) - lam, 0.0) ** 2 / eta
    if penalty == "l2":
        return z**2 / (eta + lam)
    if penalty == "linf":
        return z**2 / eta if abs(z / eta) <= lam else 2 * lam * abs(z) - lam**2 * eta
    raise ValueError(penalty)


def decrease_from(penalty: str | None, a: float, z: float, eta: float, lam: float) -> float:
    """What the objective loses when a voter's weight goes from ``a`` to its new weight."""
    w = new_weight(penalty, z, eta, lam)
    return part_of_objective(penalty, a, z, eta, lam) - part_of_objective(penalty, w, z, eta, lam)


def penalty_value(penalty: str | None, weights: ArrayLike, lam: float) -> float:
    """Penalty of the weights; under linf 0 within the bounds, as in the objective risk."""
    weights = np.asarray(weights, dtype=np.float64)
    if penalty == "l1":
        return 2 * lam * float(np.abs(weights).sum())
    if penalty == "l2":
        return lam * float((weights**2).sum())
    return 0.0


# ---------------------------------------------------------------------- data


@dataclass
class Rows:
    """Examples, their labels and normalised weights; centred on training rows if asked."""

    H: Floats
    y: Floats
    p: Floats
    voter_means: Floats
    y_mean: float

    def residual(self, a: Floats) -> Floats:
        return (self.y - self.y_mean) - (self.H - self.voter_means) @ a

    def risk(self, a: Floats) -> float:
        return float(self.p @ self.residual(a) ** 2)

    def edges(self, a: Floats) -> Floats:
        return (self.H - self.voter_means).T @ (self.p * self.residual(a))

    def etas(self) -> Floats:
        """Mean squares of the (centred) voters, exactly 0 for one that says nothing."""
        eta = self.p @ (self.H - self.voter_means) ** 2
        return np.where(eta > 1e-13 * (self.p @ self.H**2), eta, 0.0)


def _rows(H: ArrayLike, y: ArrayLike, weight: ArrayLike | None, centres: Any) -> Rows:
    H, y = np.asarray(H, dtype=np.float64), np.asarray(y, dtype=np.float64)
    p = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    p = p / p.sum()
    voter_means, y_mean = centres if centres is not None else (p @ H, float(p @ y))
    return Rows(H, y, p, voter_means, y_mean)


def training_rows(H: ArrayLike, y: ArrayLike, weight: ArrayLike | None, centre: bool) -> Rows:
    return _rows(H, y, weight, None if centre else (np.zeros(np.shape(H)[1]), 0.0))


# --------------------------------------------------------------------- boost


@dataclass
class ReferenceBoosted:
    """A fit. Row t of the history is round t + 1.

    It holds the voter, its edge when it was drawn, the weight it was given then (forward: the
    weight of the new copy), and the risks after the round, its sweeps included.
    """

    weight: Floats
    intercept: float
    edge: Floats
    risk: float
    objective: float
    n_rounds: int
    history: dict[str, Floats]
    weight_of_round: list[Floats]
    fragile: bool


@dataclass
class State:
    """An ensemble as it grows: nothing is kept from round to round but weights and records."""

    train: Rows
    valid: Rows | None
    penalty: str | None
    lam: float
    mode: str
    a: Floats = field(init=False)
    eta: Floats = field(init=False)
    copies: list[float] = field(default_factory=list)  # forward: each copy is penalised by itself
    rows: list[dict[str, float]] = field(default_factory=list)
    weight_of_round: list[Floats] = field(default_factory=list)
    validation_risks: list[float] = field(default_factory=list)  # from round 0, the intercept alone
    # A sweep met a weight that is 0 up to rounding: whether its voter is in the ensemble is chance.
    fragile: bool = False

    def __post_init__(self) -> None:
        self.a = np.zeros(self.train.H.shape[1])
        self.eta = self.train.etas()
        self.record()

    def record(self) -> None:
        self.weight_of_round.append(self.a.copy())
        if self.valid:
            self.validation_risks.append(self.valid.risk(self.a))

    def decreases(self) -> Floats:
        """What the objective loses by the update of each voter."""
        old = self.a if self.mode == "corrective" else np.zeros_like(self.a)
        z = self.train.edges(self.a) + self.eta * old
        terms = zip(old, z, self.eta, strict=True)
        return np.array([decrease_from(self.penalty, *term, self.lam) for term in terms])

    def no_better_since(self, patience: int, allowance: float) -> bool:
        """No round of the last ``patience`` was better than all before, by the allowance."""
        if len(self.validation_risks) <= patience:
            return False
        before, since = self.validation_risks[:-patience], self.validation_risks[-patience:]
        return min(since) >= min(before) + allowance

    def round(self, j: int, sweeps: int) -> None:
        """Update voter ``j``, then sweep over the ensemble."""
        edge = float(self.train.edges(self.a)[j])
        if self.mode == "corrective":
            given = new_weight(self.penalty, edge + self.eta[j] * self.a[j], self.eta[j], self.lam)
            self.a[j] = given
        else:
            given = new_weight(self.penalty, edge, self.eta[j], self.lam)
            self.a[j] += given
            self.copies.append(given)
        self.rows.append({"voter": j, "edge": edge, "weight": given})
        for _ in range(sweeps):
            self.sweep()
        risk = self.train.risk(self.a)
        self.rows[-1] |= {"risk": risk, "objective": risk + self.penalty_value()}
        self.record()
        if self.valid:
            self.rows[-1]["validation_risk"] = self.validation_risks[-1]

    def sweep(self) -> None:
        """Re-weight every voter of the ensemble once, in ascending order; copies become one."""
        drawn = self.a[[int(row["voter"]) for row in self.rows]]
        by_chance = (np.abs(drawn) < 1e-11) & ((drawn != 0) | (self.penalty != "l1"))
        self.fragile |= bool(by_chance.any())
        for j in np.flatnonzero(self.a):
            z = float(self.train.edges(self.a)[j] + self.eta[j] * self.a[j])
            self.a[j] = new_weight(self.penalty, z, self.eta[j], self.lam)
        self.copies = list(self.a)

    def penalty_value(self) -> float:
        return penalty_value(self.penalty, self.a if self.mode == "corrective" else self.copies, self.lam)

    def boosted(self, n_rounds: int) -> ReferenceBoosted:
        """The ensemble as it was after ``n_rounds``."""
        a = self.weight_of_round[n_rounds]
        risk = self.train.risk(a)
        names = ["voter", "edge", "weight", "risk", "objective"] + ["validation_risk"] * bool(self.valid)
        return ReferenceBoosted(
            weight=a,
            intercept=float(self.train.y_mean - self.train.voter_means @ a),
            edge=self.train.edges(a),
            risk=risk,
            objective=self.rows[n_rounds - 1]["objective"] if n_rounds else risk,
            n_rounds=n_rounds,
            history={name: np.array([row[name] for row in self.rows]) for name in names},
            weight_of_round=self.weight_of_round,
            fragile=self.fragile,
        )


def reference_boost(
    H: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    penalty: str | None = None,
    lam: float = 0.0,
    mode: str = "corrective",
    max_rounds: int = 10_000,
    tol: float = 1e-7,
    fit_intercept: bool = False,
    reweight_every: int | None = None,
    reweight_sweeps: int = 1,
    validation: tuple[ArrayLike, ArrayLike, ArrayLike | None] | None = None,
    patience: int = 50,
    follow: Sequence[int] | None = None,
    follow_best: int | None = None,
) -> ReferenceBoosted:
    """Boost over the columns of ``H``; with ``follow``, along a given sequence of voters.

    Rounding may break a near-tie either way, and after that the sequences part. So following
    checks that each given voter was as good as the best one up to `NEAR_TIE`, that the sequence
    ended where it had to, and that ``follow_best`` is a round of least validation risk.
    """
    train = training_rows(H, y, weight, fit_intercept)
    valid = _rows(*validation, (train.voter_means, train.y_mean)) if validation else None
    state = State(train, valid, penalty, lam, mode)
    stop_at = tol**2 * train.risk(state.a)
    slack = NEAR_TIE * float(train.p @ train.y**2)
    slack_valid = NEAR_TIE * max(state.validation_risks, default=0.0) + slack

    while (done := len(state.rows)) < max_rounds and len(state.a):
        decrease = state.decreases()
        j = int(np.argmax(decrease))
        if follow is None:
            if decrease[j] <= stop_at or state.no_better_since(patience, 0.0):
                break
        elif done == len(follow):
            assert decrease[j] <= stop_at + slack or state.no_better_since(patience, -slack_valid), (
                f"stopped after {done} rounds, but voter {j} decreases by {decrease[j]}"
            )
            break
        else:
            best, j = j, int(follow[done])
            assert not state.no_better_since(patience, slack_valid), f"round {done + 1} comes too late"
            assert decrease[j] >= max(decrease[best], stop_at) - slack, (
                f"round {done + 1} drew voter {j}, which decreases by {decrease[j]}; "
                f"voter {best} by {decrease[best]}, stop at {stop_at}"
            )
        is_sweep_due = reweight_every is not None and (done + 1) % reweight_every == 0
        state.round(j, reweight_sweeps if is_sweep_due else 0)

    assert follow is None or len(state.rows) == len(follow), "more rounds than max_rounds"
    risks = state.validation_risks
    n_rounds = int(np.argmin(risks)) if valid else len(state.rows)
    if valid and follow_best is not None:
        assert risks[follow_best] <= min(risks) + slack_valid, "another round was better"
        n_rounds = follow_best
    return state.boosted(n_rounds)


# ---------------------------------------------------------------- optimality


def l1_duality_gap(
    H: ArrayLike,
    y: ArrayLike,
    a: ArrayLike,
    lam: float,
    weight: ArrayLike | None = None,
    fit_intercept: bool = False,
) -> float:
    """Primal minus dual of min mean(r^2) + 2 lam sum|a|: an upper bound on P(a) - P*.

    With F = H a the Fenchel dual is max D(theta) = mean(2 theta y) - mean(theta^2) over
    |mean(h_j theta)| <= lam (and mean(theta) = 0 with an intercept, which the residual has).
    theta = s r is feasible for |s| <= lam / max|edge|; D is a parabola in s, with its top at
    mean(y r) / mean(r^2), clipped to that range.
    """
    rows = training_rows(H, y, weight, fit_intercept)
    a = np.asarray(a, dtype=np.float64)
    r = rows.residual(a)
    risk, yr = float(rows.p @ r**2), float(rows.p @ (r * (rows.y - rows.y_mean)))
    primal = risk + 2 * lam * float(np.abs(a).sum())
    if risk == 0:
        return primal
    largest = float(np.abs(rows.edges(a)).max(initial=0.0))
    reach = lam / largest if largest > 0 else np.inf
    s = float(np.clip(yr / risk, -reach, reach))
    return primal - (2 * s * yr - s**2 * risk)
