"""Samples of rows by what they are."""

import numpy as np
import pytest

from quadboost.data.sampling import at_most, copies_before, half, mixed, n_different, row_keys

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 200, size=(2_000, 3)).astype(np.uint8)
Y = RNG.normal(size=(2_000, 2))


def test_equal_rows_have_equal_keys_and_others_do_not():
    keys = row_keys(CODES, Y)
    assert len(np.unique(keys)) == 2_000
    order = RNG.permutation(2_000)
    np.testing.assert_array_equal(row_keys(CODES[order], Y[order]), keys[order])
    np.testing.assert_array_equal(row_keys(np.repeat(CODES, 2, axis=0), np.repeat(Y, 2, axis=0)), np.repeat(keys, 2))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_keys_do_not_depend_on_the_bytes_of_a_code(dtype):
    np.testing.assert_array_equal(row_keys(CODES.astype(dtype), Y), row_keys(CODES, Y))


def test_a_target_of_minus_zero_is_zero():
    zeros = np.zeros((3, 1))
    np.testing.assert_array_equal(row_keys(CODES[:3], -zeros), row_keys(CODES[:3], zeros))


@pytest.mark.parametrize("other", [{"seed": 1}, {"y": None}, {"y": Y[:, :1]}, {"y": Y[:, ::-1]}], ids=str)
def test_keys_depend_on_the_seed_and_on_every_target(other):
    keys = row_keys(CODES, **{"y": Y, "seed": 0} | other)
    assert np.count_nonzero(keys == row_keys(CODES, Y, 0)) <= 1


@pytest.mark.parametrize("salt", [0, 1, 77])
def test_every_bit_of_a_key_is_as_good_as_a_coin(salt):
    keys = mixed(np.arange(4_000, dtype=np.uint64), salt)  # the worst: numbers in a row
    bits = (keys[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.05
    assert np.abs(np.corrcoef(bits.T) - np.eye(64)).max() < 0.1


ONES = np.ones(2_000, dtype=np.int64)
SOME = RNG.integers(1, 4, size=2_000)


def bag(keys, copies, number=0):
    return half(keys, copies, copies_before(keys, copies), number)


def test_halves_are_independent():
    keys = row_keys(CODES, Y)
    bags = np.array([bag(keys, ONES, number) for number in range(20)]).astype(float)
    assert set(np.unique(bags)) == {0.0, 1.0}
    assert np.abs(np.corrcoef(bags) - np.eye(20)).max() < 0.1


@pytest.mark.parametrize("most", [1, 2, 37, 1_999, 2_000, 1e9])
def test_a_sample_has_no_more_rows_than_it_may_and_as_many_as_it_can(most):
    assert at_most(row_keys(CODES, Y), ONES, most).sum() in (min(most, 2_000), min(most, 2_000) - 1)


@pytest.mark.parametrize("most", [5, 100, 2_500])
def test_a_whole_weight_is_sampled_as_a_repetition(most):
    keys = row_keys(CODES, Y)
    kept = at_most(keys, SOME, most)
    assert ((kept >= 0) & (kept <= SOME)).all()
    rows = np.arange(2_000).repeat(SOME)
    repeated = at_most(keys[rows], np.ones(len(rows), dtype=np.int64), most)
    np.testing.assert_array_equal(np.bincount(rows, repeated, 2_000), kept)


def test_half_of_a_whole_weight_is_half_of_the_repetitions():
    keys = row_keys(CODES, Y)
    rows = np.arange(2_000).repeat(SOME)
    for number in range(3):
        known = bag(keys, SOME, number)
        assert (np.abs(2 * known - SOME) <= 1).all()
        repeated = bag(keys[rows], np.ones(len(rows), dtype=np.int64), number)
        np.testing.assert_array_equal(np.bincount(rows, repeated, 2_000), known)


def test_of_few_different_rows_a_sample_has_all_in_their_shares():
    """Not some of them whole, and others not at all."""
    keys = row_keys(RNG.integers(0, 2, size=(2_000, 2)).astype(np.uint8))
    number = np.unique(keys, return_inverse=True)[1]
    share = np.bincount(number) / 2_000
    for sample in (at_most(keys, ONES, 200), bag(keys, ONES)):
        np.testing.assert_allclose(np.bincount(number, sample) / sample.sum(), share, atol=0.01)


def test_equal_rows_are_in_one_half_unless_asked_for():
    keys = row_keys(CODES, Y)
    found = half(keys, SOME, None, 0)
    assert ((found == 0) | (found == SOME)).all()
    assert 0.4 < np.mean(found > 0) < 0.6


def test_the_number_of_different_rows_is_that_of_equal_shares():
    keys = np.array([7, 3, 7, 0], dtype=np.uint64)
    assert n_different(keys, np.array([1, 2, 1, 2])) == 3
    assert n_different(keys, np.array([1, 1, 1, 1000])) < 1.01
    assert n_different(row_keys(CODES, Y), 100 * ONES) == 2_000


def test_copies_before_a_row_are_those_of_equal_rows():
    keys = np.array([7, 3, 7, 7, 0, 3], dtype=np.uint64)
    assert copies_before(keys, np.array([2, 1, 3, 1, 5, 1])).tolist() == [0, 0, 2, 5, 0, 1]
