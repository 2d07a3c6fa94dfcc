"""Samples of rows by what they are."""

import numpy as np
import pytest

from quadboost.data.sampling import at_most, mixed, row_keys

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


def test_bags_of_several_trees_are_independent():
    keys = row_keys(CODES, Y)
    bags = np.array([mixed(keys, number) >> np.uint64(63) for number in range(20)]).astype(float)
    assert np.abs(np.corrcoef(bags) - np.eye(20)).max() < 0.1


@pytest.mark.parametrize("most", [1, 2, 37, 1_999, 2_000, 1e9])
def test_a_sample_has_no_more_rows_than_it_may_and_as_many_as_it_can(most):
    assert np.count_nonzero(at_most(row_keys(CODES, Y), None, most)) == min(most, 2_000)


@pytest.mark.parametrize("most", [5, 100, 2_500])
def test_a_whole_weight_is_sampled_as_a_repetition(most):
    repeats, keys = RNG.integers(1, 4, size=2_000), row_keys(CODES, Y)
    kept = at_most(keys, repeats.astype(float), most)
    np.testing.assert_array_equal(at_most(np.repeat(keys, repeats), None, most), np.repeat(kept, repeats))
    assert most - 3 < repeats[kept].sum() <= most


def test_a_row_that_is_more_than_a_sample_may_hold_is_the_only_one():
    kept = at_most(row_keys(CODES, Y), np.full(2_000, 50.0), 10)
    assert np.count_nonzero(kept) == 1
