"""What `estimate_memory` says against what a fit takes."""

import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest

from quadboost import QuadBoostClassifier, QuadBoostRegressor, estimate_memory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from measure_memory import KINDS, LARGE, matters, measure

MOST = 2.5  # times the peak of a fit


def table(m, d, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


def is_quick(kind):
    if "n_trees" in kind.options:
        return kind.rows <= 3_000
    if kind.options.get("loss", "squared") != "squared":
        return False
    return kind.rows * kind.features <= 200_000 and kind.options.get("max_rounds", 100_000) <= 3_000


def assert_near(kind):
    ((_, peak, said),) = measure([kind])
    assert peak <= said
    if matters(kind):
        assert said <= MOST * peak


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if is_quick(kind)], ids=str)
def test_a_fit_takes_no_more_than_is_said_and_a_good_part_of_it(kind):
    assert_near(kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS + LARGE if not is_quick(kind)], ids=str)
def test_so_does_a_longer_fit(kind):
    assert_near(kind)


def peak_of(model, X, y):
    model(max_rounds=1).fit(X[:200], y[:200])  # what is imported late
    tracemalloc.start()
    try:
        model().fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("m", "n_text", "n_levels"),
    [(10_000, 1, 150), (10_000, 6, 150), (20_000, 2, 150), pytest.param(20_000, 6, 600, marks=pytest.mark.slow)],
)
def test_levels_that_some_rows_do_not_show_are_counted(m, n_text, n_levels):
    values = table(m, 6)
    y = (values.sum(axis=1) > 0).astype(int)
    codes = np.floor(values[:, :n_text] * n_levels / 8).astype(int)
    text = {f"text {j}": np.array([f"level {code}" for code in codes[:, j]], dtype=object) for j in range(n_text)}
    X = pandas.DataFrame(text | {f"number {j}": values[:, j] for j in range(n_text, 6)})
    assert peak_of(partial(QuadBoostClassifier, n_jobs=1), X, y) <= estimate_memory(X, y)


@pytest.mark.parametrize(("m", "d"), [(500, 5), (1_500, 10)])
def test_strengths_of_an_l2_penalty_that_are_tried_take_memory_too(m, d):
    X, options = table(m, d), {"penalty": "l2", "thresholds": "all"}
    said = estimate_memory(X, X.sum(axis=1), regression=True, **options)
    assert peak_of(partial(QuadBoostRegressor, n_jobs=1, **options), X, X.sum(axis=1)) <= said


def test_labels_and_targets_only_say_how_many_outputs_there_are():
    X = table(2_000, 5)
    few, alike = np.where(X[:, :2].sum(axis=1) > 0, "yes", "no"), np.where(X.sum(axis=1) > 0, "yes", "no")
    assert estimate_memory(X, few) == estimate_memory(X, alike) == estimate_memory(X)
    classes = np.digitize(X[:, 0], [-1, 0, 1])
    assert estimate_memory(X, classes) == estimate_memory(X, n_outputs=4) > estimate_memory(X)
    assert estimate_memory(X, X[:, :2]) == estimate_memory(X, n_outputs=2, regression=True)


def test_more_trees_and_larger_ones_take_more():
    X = table(2_000, 5)
    sizes = [
        estimate_memory(X, n_trees=n, max_leaves=leaves) for n, leaves in ((5, 8), (10, 8), (10, 31))
    ]  # few enough to explain
    assert sizes == sorted(set(sizes))
    assert estimate_memory(X, n_trees=200, penalty="l1") > estimate_memory(X, n_trees=200)  # Gram columns
    assert estimate_memory(X, n_trees=0) == estimate_memory(X)


def test_it_is_told_at_once_whatever_the_number_of_rows():
    X = np.broadcast_to(table(1, 30), (1_000_000_000, 30))  # takes no memory
    assert estimate_memory(X) > 30 * len(X)


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
def test_a_process_grows_by_no_more_than_is_said_and_by_a_good_part_of_it(m, d, score, options, run_python):
    said, grown = map(int, run_python(FIT.format(m=m, d=d, score=score, options=options)).split())
    assert grown <= said <= MOST * grown


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
    estimate_memory(X[:100])  # what is imported late
    tracemalloc.start()
    said = estimate_memory(X, penalty="l2")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert said > 20 * peak


def test_a_table_of_which_nothing_can_be_learnt_has_an_estimate_too():
    X = np.zeros((100, 3))
    assert 0 < estimate_memory(X) < 1 << 23
    assert 0 < estimate_memory(X.tolist(), ["a", "b"] * 50, penalty=None, validation_fraction=0.2) < 1 << 23


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="thresholds=0"):
        estimate_memory(np.zeros((3, 3)), thresholds=0)
    with pytest.raises(TypeError, match="max_round"):
        estimate_memory(np.zeros((3, 3)), max_round=5)
    with pytest.raises(TypeError, match=r"QuadBoostRegressor has no cv, and .* is for one fit"):
        estimate_memory(np.zeros((3, 3)), regression=True, cv=5)


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
