"""How predictions follow from scores, and which losses, links and slopes a model can have."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadboost.model.links import LINKS, LOSSES, check_link, default_link

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e-17, 2.0**-45, 1.0, -1.0, 36.8, -745.2, 709.8, 1e16, 1e300, -1e300]
LARGEST = np.finfo(float).max
scores = st.floats(-40, 40) | st.floats(-1000, 1000) | st.sampled_from([*EXTREMES, LARGEST, -LARGEST])


def predictions(name, scores):
    return LINKS[name].predictions(np.array(scores, dtype=float))


def neighbours(values):
    """Ascending scores, among them many that differ in the last bit alone."""
    runs = []
    for value in values:
        numbers = [value]
        for _ in range(40):
            numbers.append(np.nextafter(numbers[-1], np.inf))
        runs.append(numbers)
    return np.unique(np.concatenate(runs))


ASCENDING = [
    np.sort(np.random.default_rng(0).normal(scale=8, size=10_000)),
    neighbours(np.random.default_rng(1).normal(scale=4, size=200)),
    neighbours([-1e300, -746, -709, -256, -1, -1e-15, 0, 1e-15, 2.0**-45, 1, 255.99999999999997, 708, 745, 1e300]),
    np.array([-LARGEST, -1e300, -708, 0, 5e-324, 708, 1e300, LARGEST]),
]


# ---- what each link is


def test_identity_is_the_score():
    values = np.array([[1.5, -2.0]])
    assert LINKS["identity"].predictions(values) is values


@given(st.lists(st.floats(-700, 700), min_size=1))
def test_log_is_exp_of_the_score(values):
    np.testing.assert_allclose(predictions("log", values), np.exp(values), rtol=1e-13)


def test_log_is_positive_and_finite():
    found = predictions("log", [-LARGEST, -1e300, -745.0, 745.0, 1e300, LARGEST])
    assert np.isfinite(found).all()
    assert (found > 0).all()


@given(st.floats(-700, 700))
def test_logit_is_precise_in_both_tails(score):
    first, second = predictions("logit", [score])[0]
    assert min(first, second) == pytest.approx(np.exp(-abs(score)) / (1 + np.exp(-abs(score))), rel=1e-13)
    assert (first <= second) == (score > 0) or first == second == 0.5


@given(scores)
def test_logit_turns_over_with_the_sign(score):
    first, second = predictions("logit", [score])[0]
    other_first, other_second = predictions("logit", [-score])[0]
    assert (first, second) == pytest.approx((other_second, other_first), rel=1e-13, abs=2e-16)


@given(st.lists(st.floats(-300, 300), min_size=3, max_size=6))
def test_softmax_is_the_softmax(values):
    share = np.exp(np.array(values) - max(values))
    np.testing.assert_allclose(predictions("softmax", [values])[0], share / share.sum(), rtol=1e-12)


def test_softmax_of_two_far_scores_has_a_finite_log():
    assert np.isfinite(np.log(predictions("softmax", [[1e300, -1e300, 0.0]]))).all()
    assert np.isfinite(np.log(predictions("logit", [1e300, -1e300]))).all()


# ---- what all of them promise


@given(st.lists(scores, min_size=1, max_size=5))
def test_two_probabilities_are_numbers_that_add_up_to_1_and_agree_with_the_sign(values):
    with np.errstate(all="raise"):
        found = predictions("logit", values)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_array_equal(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.argmax(axis=1), np.array(values) > 0)


@given(st.lists(scores, min_size=3, max_size=30))
def test_several_probabilities_are_numbers_that_add_up_to_1_and_agree_with_the_largest_score(values):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        found = predictions("softmax", [values])
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert found.argmax() == np.argmax(values)


@pytest.mark.parametrize("name", ["clipped", "logit", "softmax", "log", "identity"])
def test_extreme_scores_give_no_warning(name):
    values = np.array([*EXTREMES, LARGEST / 4, -LARGEST / 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LINKS[name].predictions(
            np.column_stack([values, values[::-1], values]) if name == "softmax" else values
        )
    assert np.isfinite(found).all()


@pytest.mark.parametrize("ascending", ASCENDING, ids=["random", "neighbours", "neighbours at the joints", "extremes"])
def test_nothing_falls_where_the_score_rises(ascending):
    assert (np.diff(predictions("log", ascending)) >= 0).all()
    for name in ("clipped", "logit"):
        found = predictions(name, ascending)
        assert (np.diff(found[:, 1]) >= 0).all()
        assert (np.diff(found[:, 0]) <= 0).all()
    for others in ([0.0, 0.5], [-3.0, -3.0], [1e-16, -700.0], [2.0**-46, 300.0], [0.25] * 150):
        rows = np.column_stack([np.tile(others, (len(ascending), 1)), ascending])
        assert (np.diff(LINKS["softmax"].predictions(rows)[:, -1]) >= 0).all()
        assert (np.diff(LINKS["softmax"].predictions(rows[:, ::-1])[:, 0]) >= 0).all()


@pytest.mark.parametrize("name", ["log", "logit", "softmax"])
def test_a_row_alone_has_the_bits_it_has_among_others(name):
    values = np.random.default_rng(2).normal(scale=5, size=(301, 7))
    values = values if name == "softmax" else values[:, 0]
    together = LINKS[name].predictions(values)
    for rows in (slice(0, 1), slice(7, 8), slice(300, 301), slice(3, 20)):
        np.testing.assert_array_equal(LINKS[name].predictions(values[rows]), together[rows])
    np.testing.assert_array_equal(LINKS[name].predictions(np.asfortranarray(values)), together)


@pytest.mark.parametrize("name", sorted(LINKS))
def test_scores_are_left_as_they_are_and_none_may_be_empty(name):
    values = np.array([[0.5, -1.0, 3.0]]) if name == "softmax" else np.array([0.5, -1.0, 3.0])
    values.flags.writeable = False
    LINKS[name].predictions(values)
    assert len(LINKS[name].predictions(values[:0])) == 0


# ---- what goes with what


def test_a_link_has_its_own_name():
    assert {name: link.name for name, link in LINKS.items()} == {name: name for name in LINKS}


@pytest.mark.parametrize(("n_classes", "link"), [(0, "identity"), (2, "clipped"), (3, "clipped")])
def test_models_without_a_link_have_the_one_they_always_had(n_classes, link):
    assert default_link(n_classes > 0) == link
    check_link("squared", link, np.ones(1), n_classes)


GOOD = {
    (loss, link, n_classes)
    for n_classes, links in {0: ("identity", "log"), 2: ("clipped", "logit"), 3: ("clipped", "softmax")}.items()
    for link in links
    for loss in LOSSES
    if loss == "squared"
    or (loss == "logistic" and link in ("logit", "softmax"))
    or (loss in ("huber", "quantile") and n_classes == 0)
    or (loss == "poisson" and link == "log")
}


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("link", sorted(LINKS))
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_losses_and_links_go_together_or_are_refused(loss, link, n_classes):
    if (loss, link, n_classes) in GOOD:
        check_link(loss, link, np.ones(1), n_classes)
    else:
        with pytest.raises(ValueError, match=rf"the link '{link}' .*, which can have: \w"):
            check_link(loss, link, np.ones(1), n_classes)


@pytest.mark.parametrize(
    ("loss", "link", "slope", "n_classes", "message"),
    [
        ("hinge", "identity", 1.0, 0, "the loss is 'hinge', not one of squared, logistic, huber, poisson, quantile"),
        ("squared", "probit", 1.0, 2, "the link is 'probit', not one of identity, log, clipped, logit, softmax"),
        (None, "identity", 1.0, 0, "the loss is None, not one of"),
        (["squared"], "identity", 1.0, 0, r"the loss is \['squared'\], not one of"),
        ("squared", {}, 1.0, 0, "the link is {}, not one of"),
        (
            "squared",
            "logit",
            1.0,
            3,
            "the link 'logit' is not one of a model of 3 classes, which can have: clipped, soft",
        ),
        ("squared", "softmax", 1.0, 2, "the link 'softmax' is not one of a model of 2 classes"),
        ("poisson", "log", 1.0, 2, "the link 'log' is not one of a model of 2 classes, which can have: clipped, logit"),
        (
            "squared",
            "logit",
            1.0,
            0,
            "the link 'logit' is not one of a model of targets, which can have: identity, log",
        ),
        ("logistic", "clipped", 1.0, 2, "'clipped' does not go with the loss 'logistic', which can have: logit, soft"),
        ("squared", "logit", 0.0, 2, "the slope is 0.0, not a finite number above 0"),
        ("squared", "logit", -1.0, 2, "the slope is -1.0, not a finite number above 0"),
        ("squared", "logit", np.nan, 2, "the slope is nan, not a finite number above 0"),
        ("squared", "logit", np.inf, 2, "the slope is inf, not a finite number above 0"),
        ("squared", "clipped", 2.0, 2, "the slope of the link 'clipped' is 2.0; it can only be 1"),
        ("squared", "identity", 0.5, 0, "the slope of the link 'identity' is 0.5; it can only be 1"),
    ],
)
def test_a_link_that_cannot_be_is_refused_in_one_sentence(loss, link, slope, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_link(loss, link, np.array([slope]), n_classes)


@pytest.mark.parametrize("n", [3, 100, 1001])
def test_shares_that_are_small_are_not_lost_in_a_sum_of_many(n):
    """Each alone would change the sum by less than half of its last bit."""
    near = np.append(0.0, np.full(n - 1, -36.75))
    for name, scores in (("softmax", near), ("clipped", np.exp(near) - 1.0)):
        found = predictions(name, [scores])[0]
        shares = np.exp(near) if name == "softmax" else scores + 1.0
        assert abs(found - shares / math.fsum(shares)).max() <= 5e-16


@pytest.mark.parametrize("name", ["softmax", "clipped"])
def test_the_layout_of_scores_in_memory_does_not_change_a_bit(name):
    rows = np.random.default_rng(0).normal(size=(50, 30))
    np.testing.assert_array_equal(predictions(name, rows), LINKS[name].predictions(np.asfortranarray(rows)))
