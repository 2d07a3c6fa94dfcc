"""A run can be cut anywhere, and goes on only as it was."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from moments_of_parts import WEIGHTS, PartedTable
from weighted_problem import WeightedProblem, assert_same_run

from quadboost import boost
from quadboost.boosting import rounds, schedule
from quadboost.boosting.penalties import L1
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters


@pytest.fixture(scope="module")
def problem():
    return WeightedProblem()


# --- a run can be cut anywhere ------------------------------------------------------------------------------

RUNS = {
    "l1": {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": None},
    "solve now and then": {"penalty": "l1", "reg_lambda": 0.003, "tol": 1e-10},
    "l2, solve now and then": {"penalty": "l2", "reg_lambda": 0.01, "tol": 1e-10},
    "vanilla forward": {"mode": "forward", "fit_intercept": True},
    "sweeps": {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": 6, "reweight_sweeps": 2},
    "solve": {"penalty": "l1", "reg_lambda": 0.003, "reweight_every": 6, "reweight_sweeps": "solve"},
    "forward with sweeps": {"penalty": "l1", "reg_lambda": 0.003, "mode": "forward", "reweight_every": 5},
    "linf": {"penalty": "linf", "alpha_max": 0.05, "fit_intercept": True},
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("validated", [False, True], ids=["no validation", "validation"])
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_a_resumed_run_is_the_run_at_once_bit_for_bit(problem, run, validated, monkeypatch):
    for module in (rounds, schedule):
        monkeypatch.setattr(module, "REFRESH_EVERY", 25)
    options = {**run, "validation": problem.validation if validated else None, "patience": 15}
    known = boost(problem.moments, max_rounds=120, **options)
    progress = None
    for max_rounds in (1, 6, 7, 24, 25, 50, 53, 120):
        found = boost(WeightedProblem().moments, max_rounds=max_rounds, resume=progress, **options)
        progress = found.progress
    assert_same_run(found, known)


def test_resuming_what_has_converged_changes_nothing(problem):
    known = boost(problem.moments, L1(0.05))
    assert known.stop_reason == "converged"
    assert_same_run(boost(problem.moments, L1(0.05), resume=known.progress), known)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_resuming_for_no_more_rounds_changes_nothing(problem, run):
    known = boost(problem.moments, max_rounds=30, **run)  # where there are sweeps, they have just been made
    found = boost(problem.moments, max_rounds=30, resume=known.progress, **run)
    assert_same_run(found, known)
    assert len(found.trace.sweeps) == len(known.trace.sweeps)


# --- what is no longer the same run -------------------------------------------------------------------------

BEFORE = {"penalty": "l1", "reg_lambda": 0.003, "fit_intercept": True, "reweight_every": 6, "tol": 1e-9}


def other_moments(problem, rows=slice(None), y=None, weight=None):
    y, weight = problem.y if y is None else y, problem.weight if weight is None else weight
    return column_moments(problem.stumps, problem.codes[rows], y[rows], weight[rows])


@pytest.mark.parametrize(
    "change",
    [{"rows": slice(299)}, {"y": "opposite"}, {"y": "one other"}, {"weight": "heavier"}],
    ids=["a row less", "opposite targets", "one other target", "other weights"],
)
def test_other_rows_targets_or_weights_are_refused(problem, change):
    y, weight = problem.y.copy(), problem.weight.copy()
    if change == {"y": "opposite"}:
        change = {"y": -y}
    elif "y" in change:
        y[17] *= -1
        change = {"y": y}
    elif "weight" in change:
        weight[17] *= 2
        change = {"weight": weight}
    known = boost(problem.moments, max_rounds=20, **BEFORE)
    with pytest.raises(ValueError, match="cannot go on from the earlier run, which was on other rows, weights or targ"):
        boost(other_moments(problem, **change), max_rounds=30, resume=known.progress, **BEFORE)


def shuffled_columns(seed=0):
    """A table, and the same with every column shuffled within each class: only the Gram matrix is another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)) + rng.normal(size=(200, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    Z = X.copy()
    for label in (-1, 1):
        rows = np.flatnonzero(y == label)
        for column in Z.T:
            column[rows] = column[rng.permutation(rows)]
    stumps = candidate_voters(X, thresholds=10)
    return [column_moments(stumps, stumps.code(table), y) for table in (X, Z)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("where", ["training", "validation"])
def test_rows_with_the_same_sums_but_another_gram_matrix_are_refused(where, seed):
    known, other = shuffled_columns(seed)
    assert known.fingerprint == other.fingerprint, "so the sums do not tell them apart"
    if where == "training":
        progress = boost(known, max_rounds=10, **BEFORE).progress
        arguments = {"moments": other}
    else:
        progress = boost(known, max_rounds=10, validation=known, **BEFORE).progress
        arguments = {"moments": known, "validation": other}
    with pytest.raises(ValueError, match="cannot go on from the earlier run"):
        boost(**arguments, max_rounds=30, resume=progress, **BEFORE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"penalty": "l2"}, r"had penalty=L1\(lam=0.003\), and it is now L2\(lam=0.003\)"),
        ({"reg_lambda": 0.004}, r"had penalty=L1\(lam=0.003\), and it is now L1\(lam=0.004\)"),
        ({"penalty": None}, r"had penalty=L1\(lam=0.003\), and it is now NoPenalty\(\)"),
        ({"mode": "forward"}, "had mode=corrective, and it is now forward"),
        ({"tol": 1e-8}, "had tol=1e-09, and it is now 1e-08"),
        ({"fit_intercept": False}, "had fit_intercept=True, and it is now False"),
        ({"reweight_every": 7}, "had reweight_every=6, and it is now 7"),
        ({"reweight_every": None}, "had reweight_every=6, and it is now None"),
        ({"reweight_sweeps": 2}, "had reweight_sweeps=1, and it is now 2"),
        ({"reweight_sweeps": "solve"}, "had reweight_sweeps=1, and it is now solve"),
        ({"max_rounds": 19}, "had 20 rounds already, and max_rounds=19"),
    ],
)
def test_other_arguments_are_refused_by_name(problem, change, message):
    known = boost(problem.moments, max_rounds=20, **BEFORE)
    with pytest.raises(ValueError, match=f"cannot go on from the earlier run, which {message}; start anew"):
        boost(problem.moments, resume=known.progress, **{**BEFORE, "max_rounds": 30, **change})


def test_reweighting_where_there_was_none_is_refused(problem):
    """Also where only one of the runs has sweeps."""
    without = {**BEFORE, "reweight_every": None}
    known = boost(problem.moments, max_rounds=20, **without)
    with pytest.raises(ValueError, match="which had reweight_every=None, and it is now 6"):
        boost(problem.moments, resume=known.progress, max_rounds=30, **BEFORE)


def test_another_output_is_refused(problem):
    both = column_moments(problem.stumps, problem.codes, np.column_stack([problem.y, -problem.y]), problem.weight)
    known = boost(both, max_rounds=20, **BEFORE)
    with pytest.raises(ValueError, match="had output=0, and it is now 1"):
        boost(both, resume=known.progress, max_rounds=30, output=1, **BEFORE)


def test_an_added_a_removed_and_another_validation_set_are_refused(problem):
    options = {**BEFORE, "max_rounds": 30}
    without = boost(problem.moments, max_rounds=20, **BEFORE).progress
    validated = boost(problem.moments, max_rounds=20, validation=problem.validation, **BEFORE).progress
    with pytest.raises(ValueError, match="which had no validation set, and this has one"):
        boost(problem.moments, resume=without, validation=problem.validation, **options)
    with pytest.raises(ValueError, match="which had a validation set, and this has none"):
        boost(problem.moments, resume=validated, **options)
    with pytest.raises(ValueError, match="had another validation set"):
        boost(problem.moments, resume=validated, validation=problem.moments, **options)
    with pytest.raises(ValueError, match="had patience=50, and it is now 20"):
        boost(problem.moments, resume=validated, validation=problem.validation, patience=20, **options)


def test_what_has_no_effect_may_change(problem):
    """Patience without validation rows, sweeps without re-weighting, and what only says when to look."""
    options = {**BEFORE, "reweight_every": None}
    known = boost(problem.moments, max_rounds=40, **options)
    first = boost(problem.moments, max_rounds=20, **options)
    found = boost(
        problem.moments, max_rounds=40, resume=first.progress, patience=3, reweight_sweeps=2, max_seconds=1e6,
        callback=lambda *_: False, callback_every=7, **options,
    )  # fmt: skip
    assert_same_run(found, known)


@pytest.mark.thinned(11)
@pytest.mark.parametrize("seed", range(20))
def test_any_run_goes_on_as_one_long_run(seed):
    """Random problems, cut at random, from a pickle."""
    rng = np.random.default_rng(seed)
    table = PartedTable.random(rng.choice(["labels", "real", "far"]), rng.choice([*WEIGHTS]), seed=seed)
    moments, validation = table.moments(table.parts[1]), table.moments(table.parts[2])
    name = rng.choice(["l1", "l2", "linf", "none"])
    options = {
        "penalty": None if name == "none" else str(name),
        "reg_lambda": float(rng.choice([0.001, 0.05])),
        "mode": str(rng.choice(["corrective", "forward"])),
        "fit_intercept": bool(rng.integers(2)),
        "reweight_every": [None, 3, 10, "auto"][rng.integers(4)],
        "validation": validation if rng.integers(2) else None,
        "patience": 20,
    }
    known = boost(moments, max_rounds=180, **options)
    progress = None
    for max_rounds in [*np.unique(rng.integers(1, 180, size=4)).tolist(), 180]:
        found = boost(moments, max_rounds=max_rounds, resume=progress, **options)
        progress = pickle.loads(pickle.dumps(found.progress))
    assert_same_run(found, known)
