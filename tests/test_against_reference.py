"""Rounds on moments give what rounds on explicit scores give: every penalty, mode, sweep and stop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import (
    all_stumps,
    check_quantile_thresholds,
    reference_boost,
    thresholds_of,
    voter_matrix,
)

import quadboost
from quadboost.data.exact import Scales
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

# Numbers that no mean of small integers hits: how a tie with lambda itself is broken is not promised.
NUMBERS = {
    None: [0.0],
    "l1": [0.0, 0.01234567, 0.1234567, 0.7654321],
    "l2": [0.0, 0.1234567, 2.345678],
    "linf": [0.01234567, 0.1234567, 1.234567],
}
LABELS = [
    st.sampled_from([-1.0, 1.0]),
    st.integers(-3, 3).map(float),
    st.integers(-(2**20), 2**20).map(lambda i: i / 2**19),
    st.just(1.0),
]
# No weights, counts (with rows that do not count), or any positive numbers.
WEIGHTS = [None, st.integers(0, 3).map(float), st.floats(0.125, 2, width=32)]
# Duplicates, opposites, constants and zeros are common among few values; a voter whose outputs are all
# tiny has a huge weight, and is no test of anything but floating point.
OUTPUTS = [st.sampled_from([-1.0, 0.0, 1.0]), st.integers(-16, 16).map(lambda i: i / 8)]


def at_two_lengths(few, many):
    """A test of random data on a few examples, and one of the same name "at length", which is slow, on many."""

    def decorate(body):
        def test(n_examples):
            return settings(max_examples=n_examples, deadline=None)(given(data=st.data())(body))

        body.__globals__[f"{body.__name__}_at_length"] = pytest.mark.slow(test(many))
        return test(few)

    return decorate


def every_rule(body):
    for mark in (
        pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"]),
        pytest.mark.parametrize("mode", ["forward", "corrective"]),
        pytest.mark.parametrize("penalty", list(NUMBERS)),
    ):
        body = mark(body)
    return at_two_lengths(3, 40)(body)


@st.composite
def labelled(draw, m):
    """Labels and weights of m examples."""
    y = draw(arrays(float, m, elements=draw(st.sampled_from(LABELS))))
    elements = draw(st.sampled_from(WEIGHTS))
    weight = None if elements is None else draw(arrays(float, m, elements=elements))
    assume(weight is None or weight.sum() > 0)
    return y, weight


@st.composite
def voters(draw, n_voters):
    """Outputs of voters on some examples, with labels and weights."""
    m = draw(st.integers(1, 9))
    H = draw(arrays(float, (m, n_voters), elements=draw(st.sampled_from(OUTPUTS))))
    return H, *draw(labelled(m))


@st.composite
def loops(draw):
    """When to sweep and when to stop."""
    return {
        "max_rounds": draw(st.sampled_from([1, 5, 30])),
        "reweight_every": draw(st.sampled_from([None, 1, 3])),
        "reweight_sweeps": draw(st.sampled_from([1, 2])),
        "patience": draw(st.sampled_from([1, 3])),
    }


def penalty_options(penalty, lam):
    return {"penalty": penalty, "alpha_max" if penalty == "linf" else "reg_lambda": lam}


def assert_same(found, H, y, weight, **options):
    """The result and its history are the reference's along the same voters."""
    known = reference_boost(H, y, weight, **options, follow=found.history["voter"], follow_best=found.n_rounds)
    assume(not known.fragile)
    close = {"rtol": 1e-8, "atol": 1e-9}
    assert found.history.keys() == known.history.keys()
    for name, column in known.history.items():
        np.testing.assert_allclose(found.history[name], column, err_msg=name, **close)
    for name in ("weight", "edge", "intercept", "risk", "objective"):
        np.testing.assert_allclose(getattr(found, name), getattr(known, name), err_msg=name, **close)


@pytest.mark.thinned(6)
@every_rule
def test_any_voters(penalty, mode, fit_intercept, data):
    n_voters = data.draw(st.integers(1, 8))
    H, y, weight = data.draw(voters(n_voters))
    lam = data.draw(st.sampled_from(NUMBERS[penalty]))
    options = {"mode": mode, "fit_intercept": fit_intercept, **data.draw(loops())}
    moments = quadboost.moments_from_matrix(H, y, weight)
    found = quadboost.boost(moments, **penalty_options(penalty, lam), **options)
    assert_same(found, H, y, weight, penalty=penalty, lam=lam, **options)


@pytest.mark.thinned(6)
@every_rule
def test_any_voters_with_validation_rows(penalty, mode, fit_intercept, data):
    n_voters = data.draw(st.integers(1, 8))
    H, y, weight = data.draw(voters(n_voters))
    held_out = data.draw(voters(n_voters))
    lam = data.draw(st.sampled_from(NUMBERS[penalty]))
    options = {"mode": mode, "fit_intercept": fit_intercept, **data.draw(loops())}
    found = quadboost.boost(
        quadboost.moments_from_matrix(H, y, weight),
        **penalty_options(penalty, lam),
        **options,
        validation=quadboost.moments_from_matrix(*held_out),
    )
    assert_same(found, H, y, weight, penalty=penalty, lam=lam, **options, validation=held_out)


# ---------------------------------------------------------------- stumps of a table

VALUES = [0.0, 1.0, 2.0, 3.5, np.nan]
N_LEVELS = 3  # of the last feature, the categories of which are numbered 0, 1, 2; -1 is one never seen


@st.composite
def tables(draw, n_features, levels):
    """Ties, constants and missing values; labels and positive weights."""
    m = draw(st.integers(1, 12))
    X = draw(arrays(float, (m, n_features), elements=st.sampled_from(VALUES)))
    category = draw(arrays(float, (m, 1), elements=st.sampled_from(levels)))
    y, weight = draw(labelled(m))
    return np.hstack([X, category]), y, None if weight is None else weight + 0.5


def outputs(stumps, X):
    categories = {X.shape[1] - 1: [[float(level)] for level in range(N_LEVELS)]}
    return voter_matrix(X, *stumps.describe(np.arange(stumps.n_voters)), categories)


@at_two_lengths(40, 300)
def test_moments_of_stumps_are_those_of_their_outputs(data):
    X, y, weight = data.draw(tables(data.draw(st.integers(1, 3)), [0.0, 1.0, 2.0, np.nan]))
    stumps = candidate_voters(X, weight, thresholds="all", n_levels={X.shape[1] - 1: N_LEVELS})
    feature, kind, threshold = stumps.describe(np.arange(stumps.n_voters))
    real = feature < X.shape[1] - 1
    assert [feature[real].tolist(), kind[real].tolist(), threshold[real].tolist()] == list(all_stumps(X[:, :-1]))
    assume(stumps.n_voters > 0)

    H = outputs(stumps, X)
    w = np.ones(len(y)) if weight is None else weight
    cache_bytes = data.draw(st.sampled_from([1, 200, 1 << 20]))
    moments = column_moments(stumps, stumps.code(X), y, weight, cache_bytes=cache_bytes)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(moments.total_weight, w.sum(), **close)
    np.testing.assert_allclose(moments.voter_sum, w @ H, **close)
    np.testing.assert_allclose(moments.voter_square, w @ H**2, **close)
    centred = y - moments.origin[0]
    np.testing.assert_allclose(moments.product_sum[:, 0], (w * centred) @ H, **close)
    np.testing.assert_allclose(moments.target_sum[0], w @ centred, **close)
    np.testing.assert_allclose(moments.target_square[0], w @ centred**2, **close)
    np.testing.assert_allclose(moments.margin[:, 0], (w * y) @ H / w.sum(), **close)
    np.testing.assert_allclose(moments.target_mean[0], w @ y / w.sum(), **close)
    gram = H.T @ (w[:, None] * H)
    # A column may be made from columns that are known already: ask in any order, again and again.
    for j in data.draw(st.lists(st.integers(0, stumps.n_voters - 1), max_size=20)):
        np.testing.assert_allclose(moments.gram.column(j), gram[j], **close)


@pytest.mark.thinned(5)
@every_rule
def test_stumps_of_a_table(penalty, mode, fit_intercept, data):
    n_features = data.draw(st.integers(1, 3))
    X, y, weight = data.draw(tables(n_features, [0.0, 1.0, 2.0, np.nan]))
    held_out = data.draw(st.none() | tables(n_features, [-1.0, 0.0, 1.0, 2.0, np.nan]))
    lam = data.draw(st.sampled_from(NUMBERS[penalty]))
    options = {"mode": mode, "fit_intercept": fit_intercept, **data.draw(loops())}
    cache_bytes = data.draw(st.sampled_from([1, 200, 1 << 20]))
    stumps = candidate_voters(X, weight, thresholds="all", n_levels={n_features: N_LEVELS})
    assume(stumps.n_voters > 0)

    def moments(X, y, weight):
        return column_moments(stumps, stumps.code(X), y, weight, cache_bytes=cache_bytes)

    found = quadboost.boost(
        moments(X, y, weight),
        **penalty_options(penalty, lam),
        **options,
        validation=held_out and moments(*held_out),
    )
    validation = held_out and (outputs(stumps, held_out[0]), *held_out[1:])
    assert_same(found, outputs(stumps, X), y, weight, penalty=penalty, lam=lam, **options, validation=validation)


@pytest.mark.thinned(4)
@every_rule
def test_moments_of_parts_add_up_and_subtract(penalty, mode, fit_intercept, data):
    n_features = data.draw(st.integers(1, 3))
    parts = [data.draw(tables(n_features, [0.0, 1.0, 2.0, np.nan])) for _ in range(2)]
    weighted = all(weight is not None for _, _, weight in parts)
    parts = [(X, y, weight if weighted else None) for X, y, weight in parts]
    X, y = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    weight = np.concatenate([part[2] for part in parts]) if weighted else None
    lam = data.draw(st.sampled_from(NUMBERS[penalty]))
    options = {"mode": mode, "fit_intercept": fit_intercept, "max_rounds": 10}
    stumps = candidate_voters(X, weight, thresholds="all", n_levels={n_features: N_LEVELS})
    assume(stumps.n_voters > 0)
    scales = Scales.agree([(y[:, None], weight) for _, y, weight in parts])
    first, second = (column_moments(stumps, stumps.code(X), y, weight, scales=scales) for X, y, weight in parts)

    for moments, rows in ((first + second, (X, y, weight)), (first + second - first, parts[1])):
        found = quadboost.boost(moments, **penalty_options(penalty, lam), **options)
        assert_same(found, outputs(stumps, rows[0]), *rows[1:], penalty=penalty, lam=lam, **options)


@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e12, 1e18])
def test_the_scale_of_the_weights_does_not_matter(scale):
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(50, 3)), rng.normal(size=50), rng.uniform(0.5, 2, size=50)

    def weights_of_voters(weight):
        stumps = candidate_voters(X, weight, thresholds=7)
        moments = column_moments(stumps, stumps.code(X), y, weight)
        return quadboost.boost(moments, max_rounds=20, fit_intercept=True).weight

    np.testing.assert_allclose(weights_of_voters(scale * weight), weights_of_voters(weight), rtol=0, atol=1e-10)


@pytest.mark.thinned(11)
@pytest.mark.parametrize("reweight_every", [None, 4], ids=["no sweeps", "sweeps"])
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("mode", ["forward", "corrective"])
@pytest.mark.parametrize("penalty", list(NUMBERS))
def test_scores_of_a_classifier_after_every_round(penalty, mode, fit_intercept, reweight_every):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, size=(90, 3)).astype(float)
    score = X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=90)
    label = np.where(score > 1, "yes", "no")
    X[rng.random(X.shape) < 0.1] = np.nan
    train, held_out, new = np.split(np.arange(90), [50, 70])
    lam = NUMBERS[penalty][-2] if penalty else 0.0
    options = {"mode": mode, "fit_intercept": fit_intercept, "reweight_every": reweight_every, "patience": 10}
    classifier = quadboost.QuadBoostClassifier(
        **penalty_options(penalty, lam), **options, thresholds="all", max_rounds=60, calibration=None
    ).fit(X[train], label[train], X_val=X[held_out], y_val=label[held_out])

    H = voter_matrix(X, *all_stumps(X[train]))
    y = np.where(label == "yes", 1.0, -1.0)
    known = reference_boost(
        H[train],
        y[train],
        penalty=penalty,
        lam=lam,
        **options,
        max_rounds=60,
        validation=(H[held_out], y[held_out], None),
        follow=classifier.history_["voter"],
        follow_best=classifier.n_rounds_,
    )
    centre = (H[train].mean(axis=0), y[train].mean()) if fit_intercept else (0.0, 0.0)
    stages = list(classifier.staged_decision_function(X[new]))
    assert len(stages) == classifier.n_rounds_ > 0
    for a, stage in zip(known.weight_of_round[1:], stages, strict=False):
        np.testing.assert_allclose(stage, centre[1] + (H[new] - centre[0]) @ a, rtol=0, atol=1e-9)
    scores = classifier.decision_function(X[new])
    np.testing.assert_allclose(scores, stages[-1], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X[new]), np.where(scores > 0, "yes", "no"))


# ---------------------------------------------------------------- thresholds


@st.composite
def columns(draw):
    """A feature's values, some of them heavy, and weights."""
    values = draw(arrays(float, st.integers(1, 60), elements=st.integers(-20, 20).map(float)))
    repeats = draw(arrays(int, len(values), elements=st.sampled_from([1, 1, 1, 1, 5, 40])))
    missing = draw(st.integers(0, 3))
    values = np.concatenate([np.repeat(values, repeats), np.full(missing, np.nan)])
    weight = draw(st.none() | arrays(float, len(values), elements=st.floats(0.125, 8, width=32)))
    return values, weight


@at_two_lengths(60, 500)
def test_quantile_thresholds_give_heavy_values_a_bin_of_their_own(data):
    values, weight = data.draw(columns())
    k = data.draw(st.integers(1, 30))
    stumps = candidate_voters(values[:, None], weight, thresholds=k)
    check_quantile_thresholds(values, weight, k, stumps.cuts[0])


def test_heavy_values_between_rare_ones_share_the_thresholds_evenly():
    """Every whole number is heavy, and there are not enough cuts to leave them all alone."""
    values = np.concatenate([np.repeat(np.arange(60.0), 100), np.arange(59) + 0.5])
    cuts = candidate_voters(values[:, None], thresholds=63).cuts[0]
    check_quantile_thresholds(values, None, 63, cuts)


@pytest.mark.slow
@at_two_lengths(40, 300)
def test_midpoints_and_evenly_spaced_thresholds(data):
    values, weight = data.draw(columns())
    k, spacing = data.draw(st.sampled_from([(1, "uniform"), (7, "uniform"), ("all", "quantile"), ("all", "uniform")]))
    stumps = candidate_voters(values[:, None], weight, thresholds=k, spacing=spacing)
    known = thresholds_of(values, weight, None if k == "all" else k, spacing)
    np.testing.assert_allclose(stumps.cuts[0], known, rtol=1e-14, atol=1e-14)


def test_a_midpoint_that_rounds_up_is_replaced_by_the_lower_value():
    low = 1.0
    values = np.array([low, np.nextafter(low, 2), np.nextafter(np.nextafter(low, 2), 2), 1e308, 1.7e308])
    cuts = candidate_voters(values[:, None], thresholds="all").cuts[0]
    assert np.all((values[:-1] <= cuts) & (cuts < values[1:]))
