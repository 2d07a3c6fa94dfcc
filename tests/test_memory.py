"""What `estimate_memory` says against what a fit takes."""

import numpy as np
import pytest

import quadboost

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
def test_the_estimate_is_within_a_quarter_of_what_a_fit_takes(m, d, score, options, run_python):
    said, taken = map(int, run_python(FIT.format(m=m, d=d, score=score, options=options)).split())
    assert 0.75 * taken < said < 1.25 * taken


def test_more_rows_features_outputs_and_rounds_need_more():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    least = quadboost.estimate_memory(X, max_rounds=100)
    assert quadboost.estimate_memory(np.vstack([X, X]), max_rounds=100) > least
    assert quadboost.estimate_memory(np.hstack([X, X]), max_rounds=100) > least
    assert quadboost.estimate_memory(X, max_rounds=100, n_outputs=10) > least
    assert quadboost.estimate_memory(X, max_rounds=1000) > least
    assert quadboost.estimate_memory(X, max_rounds=100, thresholds="all") > least
    assert quadboost.estimate_memory((1e6 * X).astype(int), max_rounds=100) >= least + X.nbytes  # made real numbers


def test_the_memory_for_gram_columns_is_bounded():
    X = np.random.default_rng(0).normal(size=(1000, 200))
    assert quadboost.estimate_memory(X, cache_bytes=1 << 20) < quadboost.estimate_memory(X) / 5


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="thresholds=0"):
        quadboost.estimate_memory(np.zeros((3, 3)), thresholds=0)
