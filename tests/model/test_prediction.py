"""Prediction in a service: every layout without a copy, one row at a time, many threads, flat memory."""

import threading
import tracemalloc

import numpy as np
import pytest

from quadboost import Ensemble
from quadboost.voters.bins import bin_index

D = 7


def plain_sum(ensemble, X):
    """The score by its definition."""
    scores = np.full(len(X), ensemble.intercept)
    for feature, threshold, weight in zip(ensemble.feature, ensemble.threshold, ensemble.weight, strict=True):
        scores += weight * np.where(np.isnan(X[:, feature]), 0.0, np.where(X[:, feature] > threshold, 1.0, -1.0))
    return scores


def ensemble_of(thresholds, seed=0):
    """Voters at the given thresholds of every feature."""
    feature = np.repeat(np.arange(D), len(thresholds))
    # Multiples of 1/64 that are not large: every sum of them is exact, in whatever order.
    weight = np.random.default_rng(seed).integers(-1000, 1000, size=len(feature)) / 64.0
    return Ensemble(feature, np.tile(thresholds, D), weight, 0.25, n_features=D)


THRESHOLDS = {
    "one": np.array([0.1]),
    "few": np.array([-1.0, 0.0, 1e-300, 2.0]),
    "many": np.unique(np.random.default_rng(1).normal(size=300)),
    "heavy-tailed": np.unique(np.exp(5 * np.random.default_rng(1).normal(size=300))),
    "both signs": np.unique(np.random.default_rng(1).standard_cauchy(size=300)),
    "crowded": np.unique(np.concatenate([1.0 + np.arange(200) * 2.0**-52, [1e300, -1e300]])),
    "the widest": np.array([-np.finfo(float).max, -1.0, 0.0, 1.0, np.finfo(float).max]),
    "the smallest": np.arange(-40, 40) * 5e-324,
    "very many": np.unique(np.random.default_rng(1).normal(size=5000)),
    "nine of ten close": np.unique(np.concatenate([1e-9 * np.arange(180), np.arange(20.0)])),
}


def values_near(thresholds, m, seed=2):
    """Rows of values on thresholds, just beside them, between them, and of all that is special."""
    random = np.random.default_rng(seed)
    special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308]
    with np.errstate(over="ignore", invalid="ignore"):
        above, below = np.nextafter(thresholds, np.inf), np.nextafter(thresholds, -np.inf)
        between = thresholds[:-1] + (thresholds[1:] - thresholds[:-1]) * random.random(len(thresholds) - 1)
    near = np.concatenate([thresholds, above, below, between])
    return np.where(random.random((m, D)) < 0.1, random.choice(special, (m, D)), random.choice(near, (m, D)))


@pytest.mark.thinned(1)
@pytest.mark.parametrize("thresholds", THRESHOLDS.values(), ids=THRESHOLDS)
def test_a_score_is_the_sum_over_voters_also_on_a_threshold(thresholds):
    ensemble = ensemble_of(thresholds)
    X = values_near(thresholds, 1003)
    np.testing.assert_array_equal(ensemble.decision_function(X), plain_sum(ensemble, X))
    with np.errstate(over="ignore"):
        single = np.asfortranarray(X, dtype=np.float32)
    np.testing.assert_array_equal(ensemble.decision_function(single), plain_sum(ensemble, single.astype(np.float64)))


@pytest.mark.parametrize("thresholds", THRESHOLDS.values(), ids=THRESHOLDS)
def test_rows_one_by_one_score_as_in_a_batch(thresholds):
    """A few rows take the plain kernel, and many take vector instructions where the machine has them."""
    weight = np.random.default_rng(0).normal(size=(D * len(thresholds), 2))  # whose sums depend on their order
    feature = np.repeat(np.arange(D), len(thresholds))
    X = values_near(thresholds, 300)
    for weights, intercept in ((weight[:, 0], 0.1), (weight, [0.1, -0.1])):
        ensemble = Ensemble(feature, np.tile(thresholds, D), weights, intercept, n_features=D)
        one_by_one = np.concatenate([ensemble.decision_function(row) for row in X])
        np.testing.assert_array_equal(one_by_one, ensemble.decision_function(X))


def test_heavy_tails_take_no_more_than_a_few_steps():
    rules = {name: bin_index([cuts]).rule[0] for name, cuts in THRESHOLDS.items()}
    steps = {name: int(rule["n_steps"]) for name, rule in rules.items()}
    assert steps["one"] == 1
    assert max(steps["few"], steps["many"], steps["heavy-tailed"]) <= 2
    assert max(steps["both signs"], steps["very many"]) <= 5  # without buckets: 9 and 13
    assert rules["heavy-tailed"]["shift"] > 0 > rules["many"]["shift"]


def test_every_layout_gives_the_same_bits():
    ensemble = ensemble_of(THRESHOLDS["many"])
    X = np.random.default_rng(3).normal(size=(400, D))
    known = ensemble.decision_function(X)
    wide = np.zeros((800, 2 * D))
    wide[::2, ::2] = X
    for view in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1], np.ascontiguousarray(X[:, ::-1])[:, ::-1]):
        np.testing.assert_array_equal(ensemble.decision_function(view), known)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(
        ensemble.decision_function(single), ensemble.decision_function(single.astype(np.float64))
    )
    np.testing.assert_array_equal(np.concatenate([ensemble.decision_function(row) for row in X]), known)
    np.testing.assert_array_equal(ensemble.decision_function(X[37:300]), known[37:300])
    np.testing.assert_array_equal(ensemble.decision_function(X[5, :]), known[5:6])
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    np.testing.assert_array_equal(ensemble.decision_function(unaligned), known)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_layout_is_copied(dtype):
    ensemble = ensemble_of(THRESHOLDS["few"])
    X = np.random.default_rng(3).normal(size=(30_000, 2 * D)).astype(dtype)
    X[::7, 3] = np.nan
    ensemble.decision_function(X[:1, :D])
    for view in (X[:, :D], X[::2, ::2], X[100:-100, D:], np.asfortranarray(X[:, :D]), X[::-1, :D]):
        tracemalloc.start()
        scores = ensemble.decision_function(view)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < scores.nbytes + 10_000 < view.nbytes
    row = np.zeros(100_000, dtype=dtype)
    wide = Ensemble([5, 99_999], [0.0, 0.0], [1.0, 2.0], 0.0, n_features=len(row))
    wide.decision_function(row)
    tracemalloc.start()
    wide.decision_function(row)
    assert tracemalloc.get_traced_memory()[1] < 10_000
    tracemalloc.stop()


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_any_number_of_threads_gives_the_same_bits(n_jobs):
    ensemble = ensemble_of(THRESHOLDS["many"])
    X = np.random.default_rng(4).normal(size=(60_000, D))
    known = ensemble.decision_function(X, n_jobs=1)
    np.testing.assert_array_equal(ensemble.decision_function(X, n_jobs=n_jobs), known)


def test_a_small_batch_stays_on_one_thread(monkeypatch):
    asked = []
    monkeypatch.setattr("quadboost.model.ensemble.resolve_threads", lambda n_jobs: asked.append(n_jobs) or 2)
    ensemble = ensemble_of(THRESHOLDS["few"])
    ensemble.decision_function(np.zeros((1000, D)), n_jobs=2)
    assert asked == []
    ensemble.decision_function(np.zeros((100_000, D)), n_jobs=2)
    assert asked == [2]


def test_sixteen_threads_share_one_model():
    ensemble = ensemble_of(THRESHOLDS["many"])
    X = np.random.default_rng(5).normal(size=(300, D))
    known = ensemble_of(THRESHOLDS["many"]).decision_function(X)
    wrong = []

    def ask():
        for _ in range(50):
            if not np.array_equal(ensemble.decision_function(X), known):
                wrong.append(True)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_memory_stays_flat_over_a_hundred_thousand_calls(run_python):
    grown = run_python(
        """
import resource
import numpy as np
from quadboost import Ensemble

ensemble = Ensemble([0, 1], [0.0, 1.0], [1.0, -0.5], 0.1, n_features=2, classes=np.array(["no", "yes"]))
row = np.array([[0.5, 2.0]])
peaks = []
for _ in range(2):
    for _ in range(50_000):
        ensemble.predict(row)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] - peaks[0])
"""
    )
    assert int(grown) < 1024  # KiB


def test_several_outputs_are_those_of_single_ones():
    rng = np.random.default_rng(6)
    feature, threshold = np.repeat(np.arange(D), 5), np.tile(np.arange(5.0), D)
    weight, intercept = rng.normal(size=(len(feature), 3)), rng.normal(size=3)
    X = rng.normal(scale=3, size=(200, D))
    together = Ensemble(feature, threshold, weight, intercept, n_features=D).decision_function(X)
    for output in range(3):
        single = Ensemble(feature, threshold, weight[:, output], intercept[output], n_features=D)
        np.testing.assert_array_equal(together[:, output], single.decision_function(X))


LEVELS = {
    "numbers": [[1.0], [2.5], [-3]],
    "neighbours": [[1.0], [float(np.nextafter(1.0, 2.0))], [float(np.nextafter(1.0, 0.0))]],
    "pooled": [[0.0], [5e-324, -5e-324, 7]],
    "text beside numbers": [["a", 4], ["b"]],
    "no double": [[2**53 + 1], [2**53]],
    "the widest": [[-np.finfo(float).max], [np.finfo(float).max]],
    "none": [],
}


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:Column 1 holds no value that this model was trained on")
def test_categories_in_a_matrix_score_as_their_levels(levels, dtype):
    random = np.random.default_rng(8)
    n = len(levels)
    feature, kind = np.array([0, *[1] * n, 1]), np.array([0, *[1] * n, 2])
    weight = random.normal(size=(n + 2, 2))
    ensemble = Ensemble(
        feature, [0.5, *range(n), 0.0], weight, [0.1, 0.2], kind=kind, n_features=2, categories={1: levels}
    )
    numbers = np.array([value for level in levels for value in level if not isinstance(value, str)] + [1.0], float)
    with np.errstate(over="ignore"):
        near = np.concatenate([numbers, np.nextafter(numbers, np.inf), np.nextafter(numbers, -np.inf)])
        near = np.concatenate([near, [np.nan, np.inf, -np.inf, -0.0, 0.5]])
        X = np.column_stack([random.normal(size=600), random.choice(near, 600)]).astype(dtype)
    level_of = {value: level for level, values in enumerate(levels) for value in values}
    known = np.empty((600, 2))
    for row, (x, value) in enumerate(X.tolist()):
        votes = [1.0 if x > 0.5 else -1.0]
        missing = value != value
        votes += [0.0 if missing else 1.0 if level_of.get(value) == level else -1.0 for level in range(n)]
        known[row] = [0.1, 0.2] + np.array([*votes, 1.0 if missing else -1.0]) @ weight
    np.testing.assert_allclose(ensemble.decision_function(X), known, rtol=0, atol=1e-13)
    # An array of objects is looked up value by value.
    np.testing.assert_array_equal(ensemble.decision_function(X), ensemble.decision_function(X.astype(object)))


@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_numbers_in_place_of_text_are_refused(dtype):
    ensemble = Ensemble([0], [0.0], [1.0], 0.0, kind=[1], n_features=2, categories={0: [["7"]]})
    for X in (np.full((3, 2), 7, dtype), np.full((1, 2), 7, dtype)):
        with pytest.raises(ValueError, match=r"Column 0 holds numbers, such as 7.*trained on text there, such as '7'"):
            ensemble.decision_function(X)
    missing = np.array([[np.nan, 7.0]])
    assert ensemble.decision_function(missing).tolist() == [0.0]


def test_a_matrix_with_categories_is_not_copied():
    ensemble = Ensemble([0, 1], [0.0, 1.0], [1.0, 2.0], 0.0, kind=[1, 0], n_features=8, categories={0: [[3.0], [4.0]]})
    X = np.zeros((30_000, 8))
    ensemble.decision_function(X[:1])
    tracemalloc.start()
    scores = ensemble.decision_function(X)
    assert tracemalloc.get_traced_memory()[1] < scores.nbytes + 10_000
    tracemalloc.stop()
