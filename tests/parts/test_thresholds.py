"""The voters of rows in parts are those of all rows at once, to the last bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadboost.data.exact import Extent
from quadboost.parts import thresholds as module
from quadboost.parts.source import InMemory
from quadboost.parts.thresholds import Matrix, voters_of_parts
from quadboost.voters.thresholds import candidate_voters

KINDS = {
    "normal": lambda rng, m: rng.normal(size=m),
    "wide": lambda rng, m: np.exp(100 * rng.normal(size=m)) * rng.choice([-1.0, 1.0], m),
    "ties": lambda rng, m: np.round(rng.normal(size=m), 2),
    "whole": lambda rng, m: rng.geometric(1 / 200, m).astype(float),
    "zeros": lambda rng, m: np.where(rng.random(m) < 0.9, rng.choice([0.0, -0.0], m), rng.normal(size=m)),
    "heaps": lambda rng, m: np.where(rng.random(m) < 0.5, rng.integers(0, 30, m), 30 * rng.random(m)),
    "near": lambda rng, m: np.where(rng.random(m) < 0.5, rng.normal(size=m), 5 + 1e-12 * rng.normal(size=m)),
    "two": lambda rng, m: rng.choice([-0.0, 1.0], m),
    "constant": lambda rng, m: np.full(m, 7.0),
    "absent": lambda rng, m: np.full(m, np.nan),
    "levels": lambda rng, m: rng.integers(-1, 4, m).astype(float),
}
N_LEVELS = {len(KINDS) - 1: 4}


class Observed(InMemory):
    """Sends questions and answers through pickle, as if to others, and counts passes and the bytes of answers."""

    def __init__(self, parts):
        super().__init__(parts)
        object.__setattr__(self, "sizes", [])

    def reduce(self, question, add):
        answers = [pickle.dumps(pickle.loads(pickle.dumps(question))(part)) for part in self.parts]
        self.sizes.append(max(map(len, answers)))
        return InMemory([*map(pickle.loads, answers)]).reduce(lambda answer: answer, add)


def table(seed, m, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = np.column_stack([make(rng, m) for make in KINDS.values()])
    X[rng.random(X.shape) < rng.choice([0.0, 0.1], X.shape[1])] = np.nan
    return np.clip(X, -3e38, 3e38).astype(dtype)


def in_parts(X, weight, n_parts, seed):
    """Parts of any size; some are empty."""
    at = np.sort(np.random.default_rng(seed).integers(0, len(X) + 1, n_parts - 1))
    weights = [None] * n_parts if weight is None else np.split(weight, at)
    return Observed([*map(Matrix, np.split(X, at), weights)])


def assert_same(X, weight, n_parts=5, seed=0, **options):
    matrices = in_parts(X, weight, n_parts, seed)
    options = {"thresholds": "auto", "spacing": "quantile", "n_levels": {}} | options
    found = voters_of_parts(matrices, Extent.of(len(X), weight), n_features=X.shape[1], **options)
    assert found.fingerprint == candidate_voters(X, weight, **options).fingerprint
    return matrices


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 2_000),
    n_parts=st.integers(1, 9),
    weights=st.sampled_from(["none", "whole", "real", "extreme"]),
    thresholds=st.sampled_from([1, 2, 9, 63, 255, "auto", "all"]),
    spacing=st.sampled_from(["quantile", "quantile", "quantile", "uniform"]),
    sampled=st.sampled_from([1, 2, 1 << 16]),
    most=st.sampled_from([4, 256]),
)
def test_voters_of_parts_are_those_of_all_rows(dtype, seed, m, n_parts, weights, thresholds, spacing, sampled, most):
    rng = np.random.default_rng(seed)
    weight = {
        "none": None,
        "whole": rng.integers(0, 5, m) + 1.0,
        "real": rng.exponential(size=m),
        "extreme": np.exp(30 * rng.normal(size=m)),
    }[weights]
    options = {"thresholds": thresholds, "spacing": spacing, "n_levels": N_LEVELS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SAMPLED_OF_ATOM", sampled)
        patch.setattr(module, "ATOMS_OF_BIN", 2)
        patch.setattr(module, "MOST_OF_BIN", most)
        assert_same(table(seed, m, dtype), weight, n_parts, seed, **options)


def test_answers_are_small_and_passes_few_however_many_rows_there_are():
    X = table(0, 100_000)[:, :-1]
    few, many = (assert_same(X[:m], None, thresholds=63).sizes for m in (20_000, 100_000))
    assert max(len(few), len(many)) <= 6
    assert max(*few, *many) < X.shape[1] * 64 * 8 * max(3 * module.MOST_OF_BIN, 16 * module.SAMPLED_OF_ATOM)


def test_few_rows_and_few_values_take_few_passes():
    X = np.random.default_rng(0).integers(0, 3_000, (80_000, 2)).astype(float)
    assert len(assert_same(X, None).sizes) == 2
    assert len(assert_same(X[:60_000], None).sizes) == 1
    assert len(assert_same(np.random.default_rng(0).normal(size=(80_000, 1)), None, spacing="uniform").sizes) == 1


def test_how_parts_are_divided_hardly_changes_the_passes():
    X = np.random.default_rng(0).normal(size=(150_000, 1))
    passes = [len(assert_same(np.sort(X, axis=0), None, n_parts).sizes) for n_parts in (1, 2, 30)]
    assert max(passes) <= 4


@given(values=st.lists(st.floats(width=32) | st.integers(-3, 3).map(float), max_size=600), seed=st.integers(0, 99))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_values_in_ranges_are_found(values, seed, dtype):
    column = np.array(values, dtype=dtype)
    finite = np.unique(column[np.isfinite(column)]).astype(float)
    ends = np.random.default_rng(seed).choice(finite, len(finite) // 2 * 2, replace=False) if len(finite) else finite
    low, high = np.sort(ends).reshape(-1, 2).T
    inside = [value for value in column if ((low <= value) & (value <= high)).any()]
    taker = module._counter(module.Asked((low, high), None))()
    taker.add(column, None, np.empty(len(column), np.int64))
    np.testing.assert_array_equal(taker.answer().values, inside)


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("m", [80_000, 5])
@pytest.mark.parametrize("at", [0, 12_345])
def test_infinity_is_refused_also_where_a_sample_is_cut_by_it(infinity, m, at):
    X = np.random.default_rng(0).normal(size=(m, 1))
    X[at % m : at % m + m // 3] = infinity
    with pytest.raises(ValueError, match=f"feature 0 holds {infinity}; replace infinity"):
        voters_of_parts(in_parts(X, None, 3, 0), Extent.of(m, None), "auto", "quantile", 1, {})


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("spacing", ["quantile", "uniform"])
def test_infinity_in_one_part_is_refused_by_feature_and_value(infinity, spacing):
    X = np.array([[0, 1], [1, infinity], [np.nan, np.nan], [2, 2]])
    with pytest.raises(ValueError, match=f"feature 1 holds {infinity}; replace infinity"):
        voters_of_parts(in_parts(X, None, 3, 0), Extent.of(4, None), "auto", spacing, 2, {})
