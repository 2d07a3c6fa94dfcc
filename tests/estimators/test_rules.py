"""Fits with trees: what they learn, under every option, and that a model is the same wherever it is asked."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from comparing import assert_same_model
from comparing import score as score_of
from mixed_table import mixed_table
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import quadboost
from quadboost import QuadBoostClassifier, QuadBoostRegressor

M = 300
X = mixed_table(M)
RNG = np.random.default_rng(0)
SIGNAL = np.where(X[:, 0] > 0, 1.0, -1.0) * np.where(X[:, 1] > 1, 1.0, -1.0) + (X[:, 4] == 2) + 0.3 * RNG.normal(size=M)
TWO = np.where(SIGNAL > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [-0.8, 0.8])]
COUNTS = np.rint(np.exp(0.7 * SIGNAL))
BOTH = np.column_stack([SIGNAL, X[:, 0] * SIGNAL])
REPEATS = RNG.integers(1, 4, size=M)
SMALL = {"n_trees": 6, "max_leaves": 6, "thresholds": 10, "categorical_features": [4], "n_jobs": 1}
FITS = {
    "l2": {},
    "l1": {"penalty": "l1"},
    "few": {"max_voters": 5},
    "linf": {"penalty": "linf"},
    "none": {"penalty": None, "max_rounds": 60},
    "forward": {"mode": "forward"},
}
LOSSES = {
    "labels": (QuadBoostClassifier, TWO, {}),
    "classes": (QuadBoostClassifier, THREE, {}),
    "logistic": (QuadBoostClassifier, TWO, {"loss": "logistic"}),
    "softmax": (QuadBoostClassifier, THREE, {"loss": "logistic"}),
    "target": (QuadBoostRegressor, SIGNAL, {}),
    "targets": (QuadBoostRegressor, BOTH, {"standardize": True}),
    "poisson": (QuadBoostRegressor, COUNTS, {"loss": "poisson"}),
    "quantile": (QuadBoostRegressor, SIGNAL, {"loss": "quantile", "quantile": 0.8, "tol": 1e-2}),
    "huber": (QuadBoostRegressor, SIGNAL, {"loss": "huber"}),
}
each_fit = pytest.mark.parametrize("options", FITS.values(), ids=FITS)
each_loss = pytest.mark.parametrize("kind", LOSSES)


def fitted(kind="labels", Z=X, y=None, weight=None, **options):
    estimator, targets, arguments = LOSSES[kind]
    return estimator(**{**SMALL, **arguments, **options}).fit(Z, targets if y is None else y, weight)


def parity(m, n, seed=0):
    """Which labels need n features together."""
    Z = np.random.default_rng(seed).normal(size=(m, n + 2))
    return Z, (Z[:, :n] > 0).sum(axis=1) % 2


# --- what rules are for --------------------------------------------------------------------------------------


@pytest.mark.thinned(1)
@pytest.mark.parametrize("options", [{}, {"penalty": "l1"}, {"mode": "forward"}, {"loss": "logistic"}], ids=str)
def test_xor_is_learnt_where_stumps_are_at_chance(options):
    (Z, y), (other, known) = parity(1_200, 2), parity(2_000, 2, seed=1)
    model = QuadBoostClassifier(n_trees=30, max_leaves=8, thresholds=20, **options).fit(Z, y)
    assert model.score(other, known) > 0.95
    stumps = QuadBoostClassifier(thresholds=20).fit(Z, y)
    assert abs(stumps.score(other, known) - 0.5) < 0.05


@pytest.mark.parametrize("options", [{}, {"mode": "forward"}, {"loss": "logistic"}], ids=str)
def test_xor_of_two_columns_of_two_values_is_learnt(options):
    """Four different rows, and many of each."""
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, size=(1_000, 2)).astype(float)
    y = (Z[:, 0] != Z[:, 1]) ^ (rng.random(1_000) < 0.1)
    chance = QuadBoostClassifier(n_trees=30, **options).fit(Z, y).predict_proba([[0, 0], [0, 1], [1, 0], [1, 1]])[:, 1]
    np.testing.assert_allclose(chance, [0.1, 0.9, 0.9, 0.1], atol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mode": "forward"}], ids=str)
def test_the_parity_of_three_is_learnt(options):
    (Z, y), (other, known) = parity(4_000, 3), parity(2_000, 3, seed=1)
    assert QuadBoostClassifier(n_trees=100, **options).fit(Z, y).score(other, known) > 0.95


@pytest.mark.slow
def test_pairs_cannot_say_what_takes_three():
    (Z, y), (other, known) = parity(2_000, 3), parity(2_000, 3, seed=1)
    model = QuadBoostClassifier(n_trees=30, thresholds=20, max_conditions=2).fit(Z, y)
    assert abs(model.score(other, known) - 0.5) < 0.06
    assert max(len({condition.feature for condition in rule.conditions}) for rule in model.ensemble_.rules()) == 2


def test_no_trees_are_the_stumps_of_before():
    """Bit for bit, whatever is said of the trees that are not grown."""
    known = QuadBoostClassifier(thresholds=10, categorical_features=[4]).fit(X, TWO)
    given = {"max_leaves": 5, "max_conditions": 2, "growth_rows": 10, "random_state": 4, "penalty": "l1"}
    assert_same_model(fitted(n_trees=0, **given), known)
    assert known.ensemble_.trees.n_trees == known.ensemble_.n_rules == 0


# --- every option --------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@each_loss
@each_fit
def test_a_model_says_the_same_from_a_file_and_unpickled(kind, options, tmp_path):
    model = fitted(kind, **options)
    model.save(tmp_path / "model.h5")
    loaded, known = quadboost.load(tmp_path / "model.h5"), score_of(model, X)
    assert model.ensemble_.n_rules > 0
    for other in (type(model).from_ensemble(loaded), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(score_of(other, X), known)
    if kind in ("labels", "classes", "logistic", "softmax"):
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert np.mean(model.predict(X) == LOSSES[kind][1]) > 0.75
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal([loaded.predict(X[i : i + 1])[0] for i in range(5)], model.predict(X)[:5])


@pytest.mark.thinned(2)
@each_loss
@each_fit
def test_neither_threads_nor_the_order_of_rows_change_a_bit(kind, options):
    order, known = np.random.default_rng(0).permutation(M), fitted(kind, **options)
    assert_same_model(fitted(kind, X[order], LOSSES[kind][1][order], **options, n_jobs=2), known)


@pytest.mark.thinned(2)
@each_loss
@each_fit
def test_a_whole_weight_is_a_repetition_bit_for_bit(kind, options):
    y = LOSSES[kind][1]
    repeated = fitted(kind, X.repeat(REPEATS, axis=0), y.repeat(REPEATS, axis=0), growth_rows=350, **options)
    assert_same_model(fitted(kind, weight=REPEATS, growth_rows=350, **options), repeated)


@pytest.mark.thinned(2)
@each_fit
def test_weights_of_classes_count_as_weights_of_rows(options):
    found = fitted(class_weight={"yes": 2, "no": 1}, **options)
    known = fitted(weight=np.where(TWO == "yes", 2, 1), **options)
    assert np.mean(found.predict(X) == known.predict(X)) > 0.9
    assert np.mean(found.predict(X) == "yes") > np.mean(fitted(**options).predict(X) == "yes")


def test_balanced_classes_beside_whole_weights_are_repetitions():
    repeated = fitted(Z=X.repeat(REPEATS, axis=0), y=TWO.repeat(REPEATS), class_weight="balanced")
    found = fitted(weight=REPEATS, class_weight="balanced")
    np.testing.assert_array_equal(found.ensemble_.trees.threshold, repeated.ensemble_.trees.threshold)
    np.testing.assert_allclose(found.decision_function(X), repeated.decision_function(X), rtol=1e-3)


def test_another_seed_grows_other_trees():
    known, same, other = (fitted(random_state=seed) for seed in (1, 1, 2))
    assert_same_model(same, known)
    assert (
        known.ensemble_.trees.n_nodes != other.ensemble_.trees.n_nodes
        or (known.ensemble_.trees.threshold != other.ensemble_.trees.threshold).any()
    )
    fitted(random_state=np.random.RandomState(0))


def test_a_clone_fits_the_same():
    model = fitted(random_state=1)
    assert_same_model(clone(model).fit(X, TWO), model)


def test_text_and_missing_values_of_a_frame_are_split_by():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"town": rng.choice(["Rome", "Oslo", "Lima"], 900), "age": rng.integers(18, 80, 900).astype(float)}
    )
    frame.loc[rng.random(900) < 0.2, "age"] = np.nan
    y = (frame.town == "Rome") ^ (frame.age.isna() | (frame.age > 50))
    model = QuadBoostClassifier(n_trees=20, max_leaves=6).fit(frame, y)
    assert model.score(frame, y) > 0.98
    assert QuadBoostClassifier().fit(frame, y).score(frame, y) < 0.9
    said = str(model.ensemble_.rules()[:3])
    assert "town" in said
    assert "age" in said


def test_a_feature_that_takes_part_in_rules_alone_is_important():
    Z, y = parity(1_200, 2)
    share = QuadBoostClassifier(n_trees=20, max_leaves=8, thresholds=20).fit(Z, y).feature_importances_
    assert share.sum() == pytest.approx(1.0)
    assert share[:2].min() > 2 * share[2:].max()


# --- when it ends --------------------------------------------------------------------------------------------


@pytest.mark.thinned(8)
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("kind", ["labels", "classes", "target", "targets"])
def test_the_gap_is_as_small_as_asked_for(penalty, tol, kind):
    model = fitted(kind, penalty=penalty, tol=tol, fit_intercept=True)
    y = np.reshape(LOSSES[kind][1], (M, -1)) if kind.startswith("target") else None
    first = [1.0] * y.shape[1] if kind == "targets" else [y.var()] if kind == "target" else [1.0] * 3
    gaps = np.atleast_1d(model.dual_gap_)
    assert (gaps <= tol * np.array(first[: len(gaps)]) * (1 + 1e-9)).all()
    assert set(np.atleast_1d(model.stop_reason_)) == {"converged"}


def test_too_few_iterations_are_warned_of():
    with pytest.warns(Warning, match="max_rounds=2 was reached at a relative dual gap"):
        model = fitted(max_rounds=2)
    assert (model.stop_reason_, model.n_rounds_) == ("max_rounds", 2)


def noisy(m, seed):
    Z, y = parity(m, 2, seed)
    return Z, y ^ (np.random.default_rng(seed).random(m) < 0.3)


@pytest.mark.thinned(1)
@each_fit
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_validation_rows_choose_the_stage(options, loss):
    (Z, y), (other, known) = noisy(300, 0), noisy(300, 1)
    if options.get("penalty", "l2") == "l2" and "mode" not in options:
        options = {"reg_lambda": 1e-4}
    model = QuadBoostClassifier(**SMALL | {"n_trees": 25, "categorical_features": "auto", "loss": loss} | options)
    model.fit(Z, y, X_val=other, y_val=known)
    name = "validation_loss" if loss == "logistic" and "mode" not in options else "validation_risk"
    history = model.history_[name]
    if "mode" in options:
        assert model.n_rounds_ == 1 + np.argmin(history)
    elif loss == "squared":
        assert model.n_rounds_ == 1 + np.argmin(history)
        off = np.where(known, 1.0, -1.0)
        plain = clone(model).set_params(calibration=None).fit(Z, y, X_val=other, y_val=known)
        assert np.mean((off - plain.decision_function(other)) ** 2) == pytest.approx(history.min(), rel=1e-9)
    assert model.score(other, known) > 0.55


@pytest.mark.thinned(1)
@each_fit
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_metric_chooses_the_stage(options, loss):
    (Z, y), (other, known) = noisy(300, 0), noisy(300, 1)
    model = QuadBoostClassifier(**SMALL | {"n_trees": 25, "categorical_features": "auto", "loss": loss} | options)
    model.fit(Z, y, X_val=other, y_val=known, eval_metric="error")
    values = model.history_["validation_metric"]
    assert 1 - model.score(other, known) == pytest.approx(values.min())
    assert values.min() < 0.45


def test_a_metric_of_one_s_own_sees_predictions():
    def far(y, found):
        return float(np.abs(y - found).max())

    model = QuadBoostRegressor(**SMALL).fit(X, SIGNAL, X_val=X, y_val=SIGNAL, eval_metric=far)
    assert np.abs(SIGNAL - model.predict(X)).max() == pytest.approx(model.history_["validation_metric"].min())


@pytest.mark.parametrize("options", [{}, {"penalty": "l1", "reg_lambda": 0.01}, {"loss": "logistic"}], ids=str)
def test_callbacks_are_called_and_may_stop(options):
    seen = []
    fitted(**options, callbacks=[lambda *given: seen.append(given)], callback_every=1, tol=1e-8)
    assert [news[0] for news in seen] == list(range(1, len(seen) + 1))
    assert len(seen) > 2
    assert seen[-1][1] < seen[0][1]
    model = fitted(**options, callbacks=[lambda number, *_: number == 2], callback_every=1, tol=1e-8)
    assert model.stop_reason_ == "callback"


def test_every_step_of_solving_for_all_weights_is_told():
    seen = []
    model = fitted(callbacks=[lambda *given: seen.append(given)])
    assert len(seen) == model.n_rounds_


def test_time_ends_the_iterations():
    model = fitted(max_seconds=1e-9)
    assert (model.stop_reason_, model.n_rounds_) == ("max_seconds", 1)


@each_fit
def test_progress_is_shown(options, capsys):
    fitted(**options, verbose=2)
    captured = capsys.readouterr()
    assert captured.out == ""


@pytest.mark.parametrize("options", [{}, {"mode": "forward"}], ids=str)
@pytest.mark.parametrize("kind", ["labels", "classes", "target"])
def test_there_is_one_stage_where_there_are_no_rounds(kind, options):
    model = fitted(kind, **options)
    stages = list(model.staged_predict(X) if kind == "target" else model.staged_decision_function(X))
    assert len(stages) == 1
    np.testing.assert_allclose(stages[0], score_of(model, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{"penalty": "l1"}, {"loss": "logistic"}], ids=str)
def test_the_last_stage_is_the_model(options):
    model = fitted(**options)
    *_, last = model.staged_decision_function(X)
    np.testing.assert_allclose(last, model.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"mode": "forward"}, {"penalty": "l1"}], ids=str)
def test_part_of_the_rows_is_set_aside(options):
    model = fitted(validation_fraction=0.3, random_state=0, **options)
    assert "validation_risk" in model.history_
    assert model.ensemble_.info["validation_rows"] == 90


def test_the_sign_of_a_feature_holds_for_rules():
    Z = np.random.default_rng(0).normal(size=(500, 2))
    y = Z[:, 0] * (Z[:, 1] > 0) + 0.2 * np.random.default_rng(1).normal(size=500)
    for penalty in ("l1", "l2"):
        model = QuadBoostRegressor(penalty, n_trees=10, max_leaves=8, thresholds=15, monotonic_cst=[1, 0]).fit(Z, y)
        assert model.ensemble_.n_rules > 0
        for other in (-1.0, 1.0):
            line = np.column_stack([np.linspace(-3, 3, 200), np.full(200, other)])
            assert (np.diff(model.predict(line)) >= -1e-12).all()


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_trees": -1}, "n_trees=-1"),
        ({"n_trees": 1.5}, "n_trees=1.5"),
        ({"n_trees": "auto"}, "n_trees='auto'"),
        ({"n_trees": True}, "n_trees=True"),
        ({"n_trees": None}, "n_trees=None"),
        ({"max_leaves": 1}, "max_leaves=1"),
        ({"max_leaves": 255}, "max_leaves=255 is more than a code can hold; give at most 254"),
        ({"max_leaves": 2.0}, "max_leaves=2.0"),
        ({"max_conditions": 0}, "max_conditions=0"),
        ({"max_conditions": 1.5}, "max_conditions=1.5"),
        ({"growth_rows": 0}, "growth_rows=0"),
        ({"growth_rows": 1e4}, "growth_rows=10000.0"),
        ({"warm_start": True}, "warm_start is for stumps"),
        ({"reg_lambda": "theory"}, "reg_lambda='theory' is for stumps"),
        ({"random_state": -1}, "Seed must be between 0 and"),
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"max_voters": 0}, "max_voters=0"),
        ({"max_voters": 2.5}, "max_voters=2.5"),
        ({"max_voters": 3, "penalty": "l2"}, "max_voters=3 is for penalty='l1'"),
        ({"max_voters": 3, "mode": "forward"}, "max_voters=3 is for penalty='l1'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("estimator", [QuadBoostClassifier, QuadBoostRegressor])
def test_what_makes_no_sense_is_refused_in_one_sentence(estimator, given, said):
    with pytest.raises(ValueError, match="(?i)" + said.replace("(", r"\(")) as error:
        estimator(**SMALL | given).fit(X, (SIGNAL > 0).astype(int))
    assert "\n" not in str(error.value)


@pytest.mark.slow
@parametrize_with_checks([QuadBoostClassifier(n_trees=5), QuadBoostRegressor(n_trees=5)])
def test_scikit_learn_has_no_objection(estimator, check):
    check(estimator)
