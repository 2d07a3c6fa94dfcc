"""What `estimate_memory` says against what a fit takes."""

import tracemalloc

import numpy as np
import pytest

from quadboost import QuadBoostClassifier, QuadBoostRegressor, estimate_memory

A_QUARTER = 0.25
COLUMNS = [f"c{j}" for j in range(12)]


def table(m, d, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


def score_of(X, n_features):
    rng = np.random.default_rng(1)
    score = X[:, :n_features] @ rng.normal(size=X[:, :n_features].shape[1])
    return score + 0.5 * score.std() * rng.normal(size=len(X))


def labels(X, n_features=1000):
    return (score_of(X, n_features) > 0).astype(int)


def taken(estimator, X, y, sample_weight=None):
    """What numpy and Python had in memory at the peak of a fit: the same on every machine, whatever its allocator."""
    estimator.fit(X, y, sample_weight)  # what is made once
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        estimator.fit(X, y, sample_weight)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def frame(kind):
    X = table(12_000, 12)
    if kind == "pyarrow":
        pa = pytest.importorskip("pyarrow")
        return pa.table(dict(zip(COLUMNS, X.T, strict=True)))
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame(X, columns=COLUMNS)
    mixed["c1"] = pandas.Categorical.from_codes((np.abs(X[:, 1]) * 5).astype(int), [f"level {i}" for i in range(40)])
    mixed["c2"] = mixed["c2"] > 0
    mixed.loc[X[:, 4] > 1, "c3"] = np.nan
    return pytest.importorskip("polars").from_pandas(mixed) if kind == "polars" else mixed


@pytest.mark.parametrize(
    ("m", "d", "dtype", "n_features", "options"),
    [
        (2_000, 100, "f8", 1000, {"penalty": None, "max_rounds": 500}),
        (10_000, 20, "f4", 2, {}),
        (10_000, 20, "f8", 1000, {}),
        (10_000, 20, "i8", 5, {"penalty": "l2", "max_rounds": 2000}),
        (40_000, 10, "f8", 1000, {"max_rounds": 3000, "thresholds": 1000}),
        (5_000, 5, "f8", 1000, {"max_rounds": 1000, "thresholds": "all"}),
        (60_000, 5, "f8", 2, {"max_rounds": 10}),
        (40_000, 10, "f8", 1000, {"penalty": "linf", "thresholds": 10, "class_weight": "balanced"}),
        (30_000, 20, "f8", 1000, {"penalty": None, "validation_fraction": 0.3, "random_state": 0}),
        (20_000, 20, "f8", 1000, {"penalty": None, "max_rounds": 1000, "cache_bytes": 1 << 23}),
        (5_000, 200, "f8", 5, {"max_rounds": 3000}),
    ],
)
def test_with_y_the_estimate_is_within_a_quarter_of_what_a_fit_takes(m, d, dtype, n_features, options):
    X = table(m, d)
    y = labels(X, n_features)
    X = np.asfortranarray(1000 * X if dtype == "i8" else X, dtype=dtype)
    known = taken(QuadBoostClassifier(n_jobs=1, **options), X, y)
    assert estimate_memory(X, y, n_jobs=1, **options) == pytest.approx(known, rel=A_QUARTER)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_estimate_knows_which_frames_are_copied(kind):
    X, y = frame(kind), labels(table(12_000, 12))
    known = taken(QuadBoostClassifier(max_rounds=500, n_jobs=1), X, y)
    assert estimate_memory(X, y, max_rounds=500, n_jobs=1) == pytest.approx(known, rel=A_QUARTER)


def test_the_estimate_knows_of_weights_targets_and_classes():
    X = table(30_000, 8)
    score, weight = score_of(X, 8), np.random.default_rng(2).exponential(size=len(X))
    options = {"max_rounds": 500, "n_jobs": 1}
    known = taken(QuadBoostClassifier(**options), X, labels(X), weight)
    assert estimate_memory(X, labels(X), sample_weight=weight, **options) == pytest.approx(known, rel=A_QUARTER)
    classes = np.array(list("abcdefg"))[np.digitize(score, [-3, -2, -1, 0, 1, 2])]
    known = taken(QuadBoostClassifier(**options), X, classes)
    assert estimate_memory(X, classes, **options) == pytest.approx(known, rel=A_QUARTER)
    targets = np.column_stack([score, X[:, 0]])
    known = taken(QuadBoostRegressor(**options), X, targets)
    assert estimate_memory(X, targets, **options) == pytest.approx(known, rel=A_QUARTER)
    levels = np.round(score)
    known = taken(QuadBoostRegressor(**options), X, levels)
    assert estimate_memory(X, levels, regression=True, **options) == pytest.approx(known, rel=A_QUARTER)
    assert estimate_memory(X, levels, regression=False, **options) > 1.25 * known  # a score for each


@pytest.mark.parametrize(
    ("m", "d", "n_features", "options"),
    [
        (2_000, 50, 50, {"penalty": None, "max_rounds": 1000}),
        (20_000, 10, 2, {"penalty": "l2", "max_rounds": 2000}),
        (10_000, 20, 20, {"penalty": "linf", "max_rounds": 2000}),
        (10_000, 20, 20, {}),
        (60_000, 5, 2, {}),
    ],
)
def test_without_y_it_is_so_for_a_target_to_which_some_or_all_features_contribute(m, d, n_features, options):
    X = table(m, d)
    known = taken(QuadBoostClassifier(n_jobs=1, **options), X, labels(X, n_features))
    assert estimate_memory(X, n_jobs=1, **options) == pytest.approx(known, rel=A_QUARTER)


def test_without_y_the_answer_is_between_those_for_few_features_and_for_all():
    X = table(10_000, 30)
    few, alike = np.where(X[:, :2].sum(axis=1) > 0, "yes", "no"), np.where(X.sum(axis=1) > 0, "yes", "no")
    assert estimate_memory(X, few) < estimate_memory(X) < estimate_memory(X, alike)


FIT = """
import numpy as np
from quadboost import QuadBoostClassifier, estimate_memory

def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

rng = np.random.default_rng(0)
X = rng.normal(size=({m}, {d}))
score = {score}
y = (score + 0.5 * np.std(score) * rng.normal(size={m}) > 0).astype(int)
QuadBoostClassifier(max_rounds=5).fit(X[:500], y[:500])  # what is imported late
options = dict({options})
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before = kilobytes("VmRSS")
QuadBoostClassifier(random_state=0, **options).fit(X, y)
taken = 1024 * (kilobytes("VmHWM") - before)
print(estimate_memory(X, y, **options), taken)
"""
FEW, ALL = "X[:, 0] + np.sin(3 * X[:, 1])", "X.sum(axis=1)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "d", "score", "options"),
    [
        (1_000_000, 30, FEW, "penalty=None, max_rounds=1000"),
        (300_000, 30, ALL, "penalty='l1'"),
        (300_000, 30, FEW, "penalty='l1'"),
        (200_000, 20, ALL, "penalty='l1', validation_fraction=0.3"),
        (20_000, 300, ALL, "penalty='l1', max_rounds=1000"),
        (20_000, 5, ALL, "penalty='l1', thresholds='all'"),
    ],
)
def test_a_process_grows_by_no_more_than_a_quarter_beside_the_estimate(m, d, score, options, run_python):
    said, grown = map(int, run_python(FIT.format(m=m, d=d, score=score, options=options)).split())
    assert said == pytest.approx(grown, rel=A_QUARTER)


def test_more_rows_features_outputs_and_rounds_need_more():
    X = table(2000, 5)
    least = estimate_memory(X, max_rounds=100)
    assert estimate_memory(np.vstack([X, X]), max_rounds=100) > least
    assert estimate_memory(np.hstack([X, X]), max_rounds=100) > least
    assert estimate_memory(X, max_rounds=100, n_outputs=10) > least
    assert estimate_memory(X, max_rounds=1000) > least
    assert estimate_memory(X, max_rounds=100, thresholds="all") > least


def test_the_memory_for_gram_columns_is_bounded():
    X = table(1000, 200)
    assert estimate_memory(X, max_rounds=1000, cache_bytes=1 << 20) < estimate_memory(X, max_rounds=1000) / 5


def test_the_estimate_takes_far_less_memory_than_the_fit():
    X = table(20_000, 60)
    y = labels(X)
    estimate_memory(X[:100], y[:100])  # what is imported late
    tracemalloc.start()
    said = estimate_memory(X, y, penalty="l2")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said > 2 * peak


def test_a_table_of_which_nothing_can_be_learnt_has_an_estimate_too():
    X = np.zeros((100, 3))
    assert 0 < estimate_memory(X) < 1 << 23
    assert 0 < estimate_memory(X.tolist(), ["a", "b"] * 50, penalty=None, validation_fraction=0.2) < 1 << 23


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="thresholds=0"):
        estimate_memory(np.zeros((3, 3)), thresholds=0)
    with pytest.raises(TypeError, match="max_round"):
        estimate_memory(np.zeros((3, 3)), max_round=5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": np.arange(3) % 2}, "X has 60 rows and y has 3"),
        ({"y": np.zeros(60)}, "only one class"),
        ({"y": np.full(60, np.inf), "regression": True}, "infinity"),
        ({"sample_weight": np.ones(3)}, "sample_weight has shape"),
        ({"sample_weight": -np.ones(60)}, "must not be negative"),
        ({"n_outputs": 0}, "n_outputs=0 must be"),
    ],
)
def test_what_a_fit_refuses_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        estimate_memory(np.random.default_rng(0).normal(size=(60, 2)), **given)
