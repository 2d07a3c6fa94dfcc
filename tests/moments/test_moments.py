"""Moments are sums over rows: they add, subtract, and are what their names say."""

from __future__ import annotations

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, outputs, targets

from quadboost import Moments, boost, moments_from_matrix
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

SUMS = ("total_weight", "voter_sum", "voter_square", "target_sum", "target_square", "product_sum")


def assert_same_bits(found, known):
    for name in SUMS:
        np.testing.assert_array_equal(getattr(found, name), getattr(known, name), err_msg=name)
    for voter in range(known.n_voters):
        np.testing.assert_array_equal(found.gram.column(voter), known.gram.column(voter))


def assert_close(found, known):
    for name in SUMS:
        np.testing.assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-12, atol=1e-10, err_msg=name)
    for voter in range(known.n_voters):
        np.testing.assert_allclose(found.gram.column(voter), known.gram.column(voter), rtol=1e-12, atol=1e-10)


def whole_and_parts(y_of, weight=None, thresholds=9):
    """Moments of a table and of three parts of it, with the voters of the whole."""
    X = mixed_table(300)
    y = y_of(X)
    stumps = candidate_voters(X, weight, thresholds=thresholds, n_levels=N_LEVELS)

    def moments(rows):
        return column_moments(stumps, stumps.code(X[rows]), y[rows], None if weight is None else weight[rows])

    parts = [slice(0, 70), slice(70, 71), slice(71, 300)]
    return moments(slice(None)), [moments(rows) for rows in parts]


def two_targets(X):
    return np.column_stack([targets(X), 10 * np.nan_to_num(X[:, 1]) - 3])


def real_targets(X):
    return np.random.default_rng(5).normal(size=len(X))


@pytest.mark.parametrize("thresholds", [9, "all"])
@pytest.mark.parametrize("y_of", [targets, two_targets])
def test_parts_add_up_to_the_whole_exactly(y_of, thresholds):
    whole, (a, b, c) = whole_and_parts(y_of, thresholds=thresholds)
    assert_same_bits(a + b + c, whole)
    assert_same_bits(c + (a + b), whole)


@pytest.mark.parametrize("thresholds", [9, "all"])
@pytest.mark.parametrize("y_of", [targets, two_targets])
def test_the_whole_minus_a_part_is_the_rest_exactly(y_of, thresholds):
    whole, (a, b, c) = whole_and_parts(y_of, thresholds=thresholds)
    assert_same_bits(whole - c, a + b)
    assert_same_bits(whole - a - b, c)


@pytest.mark.parametrize("weight", [None, np.random.default_rng(3).uniform(0.1, 3, size=300)], ids=["real", "weighted"])
def test_real_targets_and_weights_add_and_subtract_up_to_rounding(weight):
    whole, (a, b, c) = whole_and_parts(real_targets, weight)
    assert_close(a + b + c, whole)
    assert_close(whole - c, a + b)


def test_a_fit_on_the_sum_of_parts_is_the_fit_on_the_whole_bit_for_bit():
    whole, (a, b, c) = whole_and_parts(targets)
    options = {
        "penalty": "l1",
        "reg_lambda": 0.01,
        "fit_intercept": True,
        "reweight_every": 5,
        "max_rounds": 500,
    }
    known = boost(whole, **options)
    assert known.n_rounds > 20
    for moments in (a + b + c, whole - b + b):
        np.testing.assert_array_equal(boost(moments, **options).weight, known.weight)


def test_sums_do_not_depend_on_the_order_of_rows():
    X, weight = mixed_table(300), np.random.default_rng(3).uniform(0.1, 3, size=300)
    y = real_targets(X)
    order = np.random.default_rng(4).permutation(300)

    def moments(rows):
        stumps = candidate_voters(X[rows], weight[rows], thresholds=9, n_levels=N_LEVELS)
        return column_moments(stumps, stumps.code(X[rows]), y[rows], weight[rows])

    assert_same_bits(moments(order), moments(np.arange(300)))


def test_margin_and_eta_are_means_over_the_rows():
    X, weight = mixed_table(300), np.random.default_rng(3).uniform(0.1, 3, size=300)
    y = two_targets(X)
    stumps = candidate_voters(X, weight, thresholds=5, n_levels=N_LEVELS)
    moments = column_moments(stumps, stumps.code(X), y, weight)
    H, p = outputs(stumps, X), weight / weight.sum()
    assert (moments.n_voters, moments.n_outputs) == (H.shape[1], 2)
    np.testing.assert_allclose(moments.margin, H.T @ (p[:, None] * y), rtol=0, atol=1e-13)
    np.testing.assert_allclose(moments.eta, p @ H**2, rtol=0, atol=1e-13)


def test_the_booster_cannot_tell_stumps_from_a_matrix_of_their_outputs():
    X = mixed_table(300)
    y = targets(X)
    stumps = candidate_voters(X, thresholds=9, n_levels=N_LEVELS)
    options = {"penalty": "l2", "reg_lambda": 0.1, "fit_intercept": True, "max_rounds": 200, "tol": 1e-3}
    from_stumps = boost(column_moments(stumps, stumps.code(X), y), **options)
    from_matrix = boost(moments_from_matrix(outputs(stumps, X), y), **options)
    np.testing.assert_array_equal(from_stumps.history["voter"], from_matrix.history["voter"])
    np.testing.assert_allclose(from_stumps.weight, from_matrix.weight, rtol=0, atol=1e-13)


# --- voters given by their outputs --------------------------------------------------------------------------

H = np.random.default_rng(0).normal(size=(20, 3))
Y = np.random.default_rng(1).normal(size=20)


@pytest.mark.parametrize(
    "form",
    [
        lambda H: H.tolist(),
        np.asfortranarray,
        lambda H: np.repeat(H, 2, axis=1)[:, ::2],
        lambda H: H.astype(object),
        lambda H: H.astype(">f8"),
    ],
)
def test_a_matrix_in_any_form_gives_the_same_moments(form):
    assert_same_bits(moments_from_matrix(form(H), Y.tolist()), moments_from_matrix(H, Y))


def test_several_targets_of_a_matrix_are_those_of_each():
    both = moments_from_matrix(H, np.column_stack([Y, Y**2]))
    for output, y in enumerate((Y, Y**2)):
        one = moments_from_matrix(H, y)
        np.testing.assert_array_equal(both.margin[:, output], one.margin[:, 0])
        options = {"penalty": "l1", "reg_lambda": 0.01}
        np.testing.assert_allclose(boost(both, output=output, **options).weight, boost(one, **options).weight)


def test_rows_of_weight_zero_do_not_count():
    weight = np.where(np.arange(20) < 5, 0.0, 2.0)
    some, others = moments_from_matrix(H, Y, weight), moments_from_matrix(H[5:], Y[5:])
    np.testing.assert_allclose(some.margin, others.margin)
    np.testing.assert_allclose(some.gram.column(1), 2 * others.gram.column(1))


def with_entry(array, value):
    array = array.copy()
    array.flat[3] = value
    return array


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((H[:, 0], Y), r"H has shape \(20,\); it must be \(examples, voters\)"),
        ((H[:0], Y[:0]), "at least one of each"),
        ((H[:, :0], Y), "at least one of each"),
        ((H, Y[:-1]), r"y has shape \(19,\); it must have one entry for each of the 20 rows"),
        ((H, np.float64(1)), "y has shape"),
        ((with_entry(H, np.nan), Y), "H holds NaN or infinity"),
        ((with_entry(H, np.inf), Y), "H holds NaN or infinity"),
        ((H, with_entry(Y, np.nan)), "y holds NaN or infinity"),
        ((H, with_entry(Y, -np.inf)), "y holds NaN or infinity"),
        ((H, Y, np.ones(19)), "one non-negative number for each row"),
        ((H, Y, with_entry(np.ones(20), -1)), "one non-negative number for each row"),
        ((H, Y, with_entry(np.ones(20), np.nan)), "one non-negative number for each row"),
        ((H, Y, with_entry(np.ones(20), np.inf)), "sample_weight holds NaN or infinity"),
        ((H, Y, np.zeros(20)), "not all of them zero"),
        ((H, np.empty((20, 0))), "y has shape"),
    ],
)
def test_a_matrix_that_means_nothing_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        moments_from_matrix(*arguments)


# --- what does not combine ----------------------------------------------------------------------------------


def test_moments_of_other_voters_or_outputs_do_not_combine():
    for other in (moments_from_matrix(H[:, :2], Y), moments_from_matrix(H, np.column_stack([Y, Y]))):
        for combine in (Moments.__add__, Moments.__sub__):
            with pytest.raises(ValueError, match="3 voters and 1 outputs do not combine with moments of"):
                combine(moments_from_matrix(H, Y), other)


def test_subtracting_all_rows_is_refused():
    with pytest.raises(ValueError, match="not a proper part of the rows"):
        moments_from_matrix(H, Y) - moments_from_matrix(H, Y)


def test_only_moments_combine_with_moments():
    with pytest.raises(TypeError):
        moments_from_matrix(H, Y) + 1


def test_moments_of_other_voters_or_other_rows_do_not_combine():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.random.default_rng(1).normal(size=200)
    known, other = candidate_voters(X, thresholds=5), candidate_voters(X[:50], thresholds=5)
    whole = column_moments(known, known.code(X[:100]), y[:100])
    with pytest.raises(ValueError, match="moments of different voters"):
        whole + column_moments(other, other.code(X[100:]), y[100:])
    with pytest.raises(ValueError, match="not a proper part of the rows"):
        whole - column_moments(known, known.code(X), y)


def test_sum_adds_moments_up():
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.random.default_rng(1).choice([-1.0, 1.0], size=90)
    stumps = candidate_voters(X, thresholds=5)
    parts = [column_moments(stumps, stumps.code(X[i::3]), y[i::3]) for i in range(3)]
    whole = column_moments(stumps, stumps.code(X), y)
    np.testing.assert_array_equal(sum(parts).product_sum, whole.product_sum)


def test_voters_whose_square_overflows_are_refused():
    with pytest.raises(ValueError, match="rescale that voter"):
        moments_from_matrix(np.full((4, 1), 1e200), np.ones(4))
