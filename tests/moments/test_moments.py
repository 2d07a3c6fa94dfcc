"""Moments are sums over rows: they add, subtract, and are what their names say."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mixed_table import N_LEVELS, mixed_table, outputs, targets
from moments_of_parts import TARGETS, WEIGHTS, PartedTable, assert_same_bits

from quadboost import Moments, boost, moments_from_matrix
from quadboost.moments.moments import column_moments
from quadboost.voters.thresholds import candidate_voters

each_target = pytest.mark.parametrize("target", TARGETS)
each_weight = pytest.mark.parametrize("weight", WEIGHTS)
RUN = {"penalty": "l1", "reg_lambda": 0.01, "fit_intercept": True, "reweight_every": 5, "max_rounds": 60}


def two_targets(X):
    return np.column_stack([targets(X), 10 * np.nan_to_num(X[:, 1]) - 3])


def real_targets(X):
    return np.random.default_rng(5).normal(size=len(X))


# --- parts --------------------------------------------------------------------------------------------------


@pytest.mark.thinned
@pytest.mark.parametrize("seed", range(3))
@each_weight
@each_target
def test_parts_add_up_to_the_whole_exactly(target, weight, seed):
    table = PartedTable.random(target, weight, seed=seed, thresholds=5 + 4 * seed)
    whole, scales = table.moments(), table.scales()
    parts = [table.moments(rows, scales=scales) for rows in table.parts]
    assert_same_bits(sum(parts), whole)
    order = np.random.default_rng(seed).permutation(len(parts))
    moved = [pickle.loads(pickle.dumps(parts[i])) for i in order]
    assert_same_bits(sum(moved[1:], moved[0]), whole)
    assert_same_bits(copy.deepcopy(parts[2] + parts[0] + (parts[3] + parts[1])), whole)


@pytest.mark.thinned(10)
@each_weight
@each_target
def test_the_whole_minus_a_part_is_the_rest_exactly(target, weight):
    table = PartedTable.random(target, weight, seed=7)
    scales = table.scales()
    whole = table.moments(scales=scales)
    a, b, c, empty = (table.moments(rows, scales=scales) for rows in table.parts)
    rest = np.setdiff1d(np.arange(300), table.parts[2])
    assert_same_bits(whole - c, a + b)
    assert_same_bits(whole - c, table.moments(rest, scales=scales))
    assert_same_bits(whole - a - b, c)
    assert_same_bits(whole - c + c - empty, whole)


@pytest.mark.thinned(9)
@each_weight
@each_target
def test_a_fit_on_the_sum_of_parts_is_the_fit_on_the_whole_bit_for_bit(target, weight):
    table = PartedTable.random(target, weight, seed=3)
    scales = table.scales()
    whole = table.moments()
    a, b, c, empty = (table.moments(rows, scales=scales) for rows in table.parts)
    for output in range(whole.n_outputs):
        known = boost(whole, output=output, **RUN)
        assert known.n_rounds > 20
        summed = empty + c + a + b
        for moments in (summed, summed - b + b, pickle.loads(pickle.dumps(summed)), copy.deepcopy(summed)):
            found = boost(moments, output=output, **RUN)
            np.testing.assert_array_equal(found.weight, known.weight)
            assert found.intercept == known.intercept


@pytest.mark.parametrize("n_parts", [60, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("target", "weight"), [("labels", "no weights"), ("far", "tiny")])
def test_very_many_parts_add_up_in_any_order(target, weight, n_parts):
    table = PartedTable.random(target, weight, m=1_500, n_parts=n_parts, seed=1)
    assert len(table.parts) == n_parts
    whole, scales = table.moments(), table.scales()
    parts = [table.moments(rows, scales=scales) for rows in table.parts]
    for order in (np.arange(n_parts), np.random.default_rng(0).permutation(n_parts)):
        found = sum(parts[i] for i in order)
        assert_same_bits(found, whole)
        np.testing.assert_array_equal(boost(found, **RUN).weight, boost(whole, **RUN).weight)
        assert len(found.gram.source._columns) == 1  # not a column of each part, which takes time and memory


@pytest.mark.parametrize("seed", range(5))
def test_labels_add_up_without_agreed_scales(seed):
    table = PartedTable.random("labels", "no weights", seed=seed)
    with_both = [np.concatenate(table.parts[:2]), table.parts[2]]
    whole = table.moments()
    parts = [table.moments(rows) for rows in with_both]
    assert_same_bits(parts[0] + parts[1], whole)
    assert_same_bits(whole - parts[1], parts[0])


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_one_class_add_up_without_agreed_scales(seed):
    table = PartedTable.random("labels", "no weights", seed=seed)
    whole = table.moments()
    one_class, b, c, _ = (table.moments(rows) if len(rows) else None for rows in table.parts)
    assert_same_bits(one_class + b + c, whole)
    assert_same_bits(whole - one_class, b + c)


def test_no_rows_add_nothing_without_agreed_scales():
    table = PartedTable.random("labels", "no weights")
    whole = table.moments()
    assert_same_bits(whole + table.moments(slice(0)), whole)


@pytest.mark.parametrize(
    ("target", "weight", "sign"),
    [("real", "no weights", "+"), ("real", "no weights", "-"), ("far", "no weights", "+"), ("labels", "real", "+")],
)
def test_real_targets_and_weights_that_agreed_on_nothing_are_refused(target, weight, sign):
    table = PartedTable.random(target, weight)
    whole = table.moments()
    a, b = table.moments(table.parts[1]), table.moments(table.parts[2])
    with pytest.raises(ValueError, match=r"different scales.* make them with the same scales, Scales.agree\(parts\)"):
        a + b if sign == "+" else whole - a


def test_a_sum_of_many_parts_has_the_memory_of_one():
    table = PartedTable.random("labels", "no weights", n_parts=40)
    parts = [table.moments(rows, scales=table.scales(), cache_bytes=1 << 20) for rows in table.parts]
    summed = sum(parts)
    assert summed.gram.cache_bytes + summed.gram.source.cache_bytes >= parts[0].gram.cache_bytes // 2


# --- copies, processes and threads --------------------------------------------------------------------------


@pytest.mark.thinned(12)
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "boosted"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda moments: pickle.loads(pickle.dumps(moments))])
@each_target
def test_copies_are_the_same_bits(target, copied, used):
    moments = PartedTable.random(target, "real").moments()
    if used:
        boost(moments, **RUN)
    assert_same_bits(copied(moments), moments)
    assert copied(moments).fingerprint == moments.fingerprint
    np.testing.assert_array_equal(boost(copied(moments), **RUN).weight, boost(moments, **RUN).weight)


IN_ANOTHER_PROCESS = """
import pickle
from quadboost import boost
with open("moments.pickle", "rb") as file:
    moments, options = pickle.load(file)
found = [boost(own, **options).weight for own in moments]
with open("weights.pickle", "wb") as file:
    pickle.dump(found, file)
"""


def test_moments_that_were_boosted_work_in_another_process(run_python, tmp_path):
    table = PartedTable.random("far", "real")
    scales = table.scales()
    whole = table.moments()
    parts = [table.moments(rows, scales=scales) for rows in table.parts]
    H = np.random.default_rng(0).normal(size=(50, 20))
    moments = [whole, sum(parts), moments_from_matrix(H, H[:, 0] ** 2)]
    known = [boost(some, **RUN).weight for some in moments]
    (tmp_path / "moments.pickle").write_bytes(pickle.dumps((moments, RUN)))
    run_python(IN_ANOTHER_PROCESS)
    found = pickle.loads((tmp_path / "weights.pickle").read_bytes())
    for weight, other in zip(found, known, strict=True):
        np.testing.assert_array_equal(weight, other)


@pytest.mark.thinned
@pytest.mark.parametrize("cache_bytes", [1, 20_000, 1 << 26])
@pytest.mark.parametrize("kind", ["rows", "sum of parts", "difference", "matrix"])
@each_weight
def test_threads_on_the_same_moments_get_the_weights_that_one_thread_gets(kind, weight, cache_bytes):
    table = PartedTable.random("real", weight)
    scales = table.scales()
    moments = table.moments(scales=scales, cache_bytes=cache_bytes)
    if kind == "sum of parts":
        moments = sum(table.moments(rows, scales=scales, cache_bytes=cache_bytes) for rows in table.parts)
    elif kind == "difference":
        moments = moments - table.moments(table.parts[1], scales=scales, cache_bytes=cache_bytes)
    elif kind == "matrix":
        H = outputs(table.voters, table.X)
        moments = moments_from_matrix(H, table.y, table.weight, cache_bytes=cache_bytes)
    strengths = np.geomspace(0.3, 0.001, 16)

    def weights(strength):
        return boost(moments, "l1", reg_lambda=strength, fit_intercept=True, max_rounds=60).weight

    known = [weights(strength) for strength in strengths]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(weights, strengths))
    for here, other in zip(found, known, strict=True):
        np.testing.assert_array_equal(here, other)


# --- what moments are ---------------------------------------------------------------------------------------


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
