"""Bounds on the error: their terms, that they hold as often as they say, and what they refuse."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_iris

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor
from quadboost.bounds import (
    Complexity,
    certify,
    held_out_bound,
    rademacher_complexity,
    risk_bound,
    scale_free_bound,
    theory_lambda,
)
from quadboost.bounds.risk import LOSSES, MONTE_CARLO_SHARE


def voters_on_axes(weight, intercept=0.0):
    """An ensemble of one stump x_f > 0 for each weight."""
    n = len(weight)
    return Ensemble(np.arange(n), np.zeros(n), weight, intercept, n_features=n, classes=np.array([-1, 1]))


def noisy_rows(m, d, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    y = np.where(X[:, 0] + 0.5 * X[:, -1] > 0, 1, -1)
    return X, np.where(rng.random(m) < noise, -y, y)


EXACTLY = Complexity(0.05, 0.0, 0.05, n_examples=400, n_draws=1)  # no error of Monte Carlo


# --- the theory the bounds rest on --------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.5, 2, 4, np.inf])
@pytest.mark.parametrize("n", [1, 2])
def test_lemma_1_by_brute_force(n, p):
    """R of combinations of n voters with norm 1 is n**(1 - 1/p) times the R of the voters."""
    H = np.random.default_rng(1).choice([-1.0, 1.0], size=(3, 5))
    H = np.vstack([H, -H])  # symmetric
    angle = np.linspace(0, 2 * np.pi, 2001)[:, None]
    sphere = np.array([[1.0], [-1.0]]) if n == 1 else np.hstack([np.cos(angle), np.sin(angle)])
    sphere = sphere / np.linalg.norm(sphere, p, axis=1, keepdims=True)
    single, combined = [], []
    for signs in product([-1.0, 1.0], repeat=5):
        agreement = H @ np.array(signs) / 5
        single.append(agreement.max())
        combined.append(max((sphere @ agreement[list(chosen)]).max() for chosen in product(range(6), repeat=n)))
    assert np.mean(combined) == pytest.approx(n ** (1 - 1 / p) * np.mean(single), rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_above_the_zero_one_loss_and_lipschitz_when_clipped(loss):
    loss_of, lipschitz = LOSSES[loss]
    margin = np.linspace(-3, 4, 7001)
    assert (loss_of(margin) >= (margin <= 0)).all()
    slope = np.diff(np.minimum(loss_of(margin), 1.0)) / np.diff(margin)
    assert np.abs(slope).max() == pytest.approx(lipschitz, rel=1e-3)
    assert np.abs(slope).max() < lipschitz * (1 + 1e-9)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_failure_probabilities_add_up_to_at_most_delta(p):
    """Over all norms (between powers of two) and, unless p = 1, all numbers of voters."""
    m, delta = 400, 0.05
    X, y = np.ones((m, 12)), np.ones(m)
    failure = 0.0
    for n in [1] if p == 1 else range(1, 13):
        for k in range(1, 13):
            weight = np.full(n, 2.0 ** (k - 1))
            weight /= np.linalg.norm(np.ones(n), p)
            ensemble = Ensemble(np.arange(n), np.zeros(n), weight, 0.0, n_features=12, classes=np.array([-1, 1]))
            found = risk_bound(ensemble, X, y, delta=delta, p=p, complexity=EXACTLY)
            assert found.norm == pytest.approx(2.0 ** (k - 1))
            # McDiarmid, where one example changes the difference by no more than 3 / m.
            failure += np.exp(-2 * m * ((found.confidence + found.log_log) / 3) ** 2)
    assert failure <= (1 - MONTE_CARLO_SHARE) * delta
    if p == 1:
        assert failure > 0.5 * delta  # and are not given away


# --- terms ----------------------------------------------------------------------------------------------------


def test_every_term_of_theorem_1():
    X, y = noisy_rows(400, 3)
    weight = np.array([1.5, -0.5, 0.25])
    ensemble = voters_on_axes(weight, intercept=0.5)
    score = np.where(X > 0, 1, -1) @ weight + 0.5
    found = risk_bound(ensemble, X, y, p=2, complexity=EXACTLY)
    norm = np.sqrt(1.5**2 + 0.5**2 + 0.25**2 + 0.5**2)  # the intercept is the weight of a constant voter
    assert (found.n_voters, found.norm) == (4, pytest.approx(norm))
    assert found.risk == pytest.approx(np.mean((y - score) ** 2))
    assert found.complexity == pytest.approx(4 * 2 * np.sqrt(4) * norm * 0.05)
    assert found.monte_carlo == 0.0
    log = np.log(np.pi**2 * 5**2 / (6 * 0.95 * 0.05))
    assert found.confidence == pytest.approx(3 * np.sqrt(log / 800))
    assert found.log_log == pytest.approx(3 * np.sqrt(np.log(np.log2(2 * norm)) / 400))
    assert found.total == pytest.approx(found.risk + found.complexity + found.confidence + found.log_log, rel=1e-12)


def test_the_paper_s_formula_as_printed():
    X, y = noisy_rows(400, 3)
    found = risk_bound(voters_on_axes(np.array([1.5, -0.5, 0.25])), X, y, variant="paper", complexity=EXACTLY)
    assert found.complexity == pytest.approx(4 * 2 * 2.25 * 0.05)
    assert found.confidence == pytest.approx(np.sqrt(np.log(np.pi**2 * 4**2 / (6 * 0.05 / 2)) / 800))
    assert found.log_log == pytest.approx(3 * np.sqrt(np.log(np.log2(4.5)) / 400))


@pytest.mark.parametrize("variant", ["corrected", "paper"])
@pytest.mark.parametrize("norm", [1e-3, 0.4, 0.9, 1.0])
def test_norms_below_1_count_as_1(norm, variant):
    X, y = noisy_rows(400, 1)
    found = risk_bound(voters_on_axes(np.array([norm])), X, y, variant=variant, complexity=EXACTLY)
    assert (found.norm, found.log_log) == (norm, 0.0)
    assert found.complexity == pytest.approx(8 * 0.05)


def test_no_p_has_a_smaller_complexity_term_than_1():
    X, y = noisy_rows(400, 8)
    rng = np.random.default_rng(0)
    for _ in range(20):
        ensemble = voters_on_axes(rng.normal(size=8) * rng.choice([0.1, 1, 10]))
        terms = [risk_bound(ensemble, X, y, p=p, complexity=EXACTLY).complexity for p in (1, 1.5, 2, 5, np.inf)]
        assert min(terms) == terms[0]
        assert terms == sorted(terms)


def test_clipped_losses_are_smaller_and_the_ramp_halves_the_complexity():
    X, y = noisy_rows(400, 3)
    ensemble = voters_on_axes(np.array([1.5, -0.5, 0.25]))
    quadratic, clipped, ramp = (risk_bound(ensemble, X, y, loss=name, complexity=EXACTLY) for name in LOSSES)
    assert clipped.risk < quadratic.risk
    assert clipped.complexity == quadratic.complexity == 2 * ramp.complexity
    score = np.where(X > 0, 1, -1) @ ensemble.weight
    assert ramp.risk == pytest.approx(np.clip(1 - y * score, 0, 1).mean())


def test_the_estimate_of_the_complexity_is_charged_for_its_error():
    X, y = noisy_rows(400, 2)
    ensemble = voters_on_axes(np.array([0.5, 0.2]))
    few, many = (risk_bound(ensemble, X, y, draws=draws) for draws in (64, 6400))
    assert few.monte_carlo == pytest.approx(10 * many.monte_carlo)
    assert few.monte_carlo == pytest.approx(8 * np.sqrt(2 * np.log(1 / (0.05 * 0.05)) / (400 * 64)))


def test_scale_free_bound_takes_the_best_power_of_two():
    X, y = noisy_rows(400, 2)
    weight = np.array([0.3, 0.1])
    margin = y * (np.where(X > 0, 1, -1) @ weight)
    found = scale_free_bound(voters_on_axes(weight), X, y, complexity=EXACTLY)
    norms = np.array([1, 2, 4, 8])  # 16 is above sqrt(400 / 2)
    totals = [np.clip(1 - margin * norm / 0.4, 0, 1).mean() + 2 * norm * 0.05 for norm in norms]
    assert found.norm == norms[np.argmin(totals)]
    assert found.scale == pytest.approx(found.norm / 0.4)
    confidence = 3 * np.sqrt(np.log(4 / (0.95 * 0.05)) / 800)
    assert found.total == pytest.approx(min(totals) + confidence)
    assert found.confidence == pytest.approx(confidence)


def test_scale_free_bound_does_not_depend_on_the_scale():
    X, y = noisy_rows(400, 2)
    weight = np.array([0.3, 0.1])
    totals = [
        scale_free_bound(voters_on_axes(c * weight, 0.05 * c), X, y, complexity=EXACTLY).total
        for c in (1e-9, 1.0, 7.0, 1e9)
    ]
    assert totals == pytest.approx([totals[0]] * 4, rel=1e-12)


def test_an_empty_ensemble_has_vacuous_bounds():
    X, y = noisy_rows(400, 1)
    empty = Ensemble(np.empty(0), np.empty(0), np.empty(0), 0.0, n_features=1, classes=np.array([-1, 1]))
    for bound in certify(empty, X, y).bounds:
        assert bound.vacuous
        assert bound.risk == 1.0


def test_terms_for_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:285]
    model = QuadBoostClassifier(
        penalty=None, thresholds=10, spacing="uniform", fit_intercept=False, max_rounds=10, calibration=None
    )
    model.fit(X[rows], y[rows])
    found = risk_bound(model, X[rows], y[rows])
    assert found.rademacher.value == pytest.approx(0.172, abs=0.002)
    assert found.risk == pytest.approx(0.193, abs=0.001)
    assert found.complexity == pytest.approx(1.7, abs=0.05)
    assert found.vacuous
    stump = QuadBoostClassifier(penalty=None, fit_intercept=False, max_rounds=1, calibration=None).fit(X[rows], y[rows])
    assert scale_free_bound(stump, X[rows], y[rows]).total < 0.75


# --- coverage ---------------------------------------------------------------------------------------------------


@pytest.mark.thinned(2)
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_held_out_bound_covers_every_error_rate_and_is_sharp(n, delta):
    bounds = np.array([held_out_bound(errors, n, delta) for errors in range(n + 1)])
    rates = np.concatenate([np.linspace(0, 1, 1001), bounds[:-1] * (1 + 1e-9)])
    coverage = np.array([binom.pmf(np.arange(n + 1), n, rate)[bounds >= rate].sum() for rate in rates])
    assert coverage.min() >= 1 - delta - 1e-9
    assert coverage.min() == pytest.approx(1 - delta, abs=1e-6)


def test_held_out_bound_by_simulation():
    errors = np.random.default_rng(0).binomial(100, 0.2, size=4000)
    bounds = np.array([held_out_bound(k, 100) for k in range(101)])
    assert 0.01 < np.mean(bounds[errors] < 0.2) <= 0.05


def test_held_out_bound_without_errors_and_without_successes():
    assert held_out_bound(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert held_out_bound(7, 7) == 1.0


@pytest.mark.slow
def test_bounds_are_not_below_the_true_error_more_often_than_they_say():
    """Features with few values and known probabilities of the labels: the error of any model is known."""
    cells = np.array(list(product(range(4), repeat=3)), dtype=float)
    rng = np.random.default_rng(0)
    chance = np.clip(0.5 + 0.3 * np.sign(cells[:, 0] - 1.5) + 0.15 * np.sign(cells[:, 1] - 0.5), 0.05, 0.95)
    delta, m, below = 0.1, 1500, dict.fromkeys(["trained", "held out", "scale-free", "theorem"], 0)
    n_samples, informative = 60, 0
    for _ in range(n_samples):
        cell = rng.integers(0, len(cells), size=2 * m)
        X, y = cells[cell], rng.random(2 * m) < chance[cell]
        model = QuadBoostClassifier(penalty=None, max_rounds=6, fit_intercept=False).fit(X[:m], y[:m])
        found = certify(model, X[:m], y[:m], X[m:], y[m:], delta=delta, draws=64)
        truth = np.mean(np.where(model.predict(cells), 1 - chance, chance))
        below["trained"] += np.mean(model.predict(X[:m]) != y[:m]) < truth
        below["held out"] += found.held_out < truth
        below["scale-free"] += found.bounds[0].total < truth
        below["theorem"] += found.bounds[1].total < truth
        informative += found.bounds[0].total < 1
    assert below["trained"] > delta * n_samples  # the training error is no bound
    assert below["held out"] <= delta * n_samples + 2 * np.sqrt(delta * n_samples)  # sharp: 10 % and chance
    assert below["scale-free"] <= delta * n_samples
    assert below["theorem"] <= delta * n_samples
    assert informative == n_samples


# --- what users see -----------------------------------------------------------------------------------------------


def test_certificate_begins_with_the_bound_that_helps_and_says_what_is_vacuous():
    X, y = noisy_rows(600, 5)
    model = QuadBoostClassifier().fit(X[:400], y[:400])
    found = certify(model, X[:400], y[:400], X[400:], y[400:])
    assert found.held_out == held_out_bound(found.test_errors, 200)
    assert found.test_errors == np.sum(model.predict(X[400:]) != y[400:])
    lines = str(found).splitlines()
    assert lines[0] == f"Held-out bound (Clopper-Pearson): error at most {found.held_out:.3f} with probability 0.95"
    theorem = next(line for line in lines if line.startswith("Theorem 1 (corrected, p = 1, quadratic loss)"))
    assert theorem.endswith(f": vacuous, for a bound of {found.bounds[1].total:.3f} says nothing")
    assert json.loads(json.dumps(found.as_dict()))["bounds"][1]["vacuous"] is True
    assert "vacuous" not in str(risk_bound(voters_on_axes([0.9]), X[:, :1], y, loss="ramp"))


def test_certificate_without_test_rows_asks_for_them():
    X, y = noisy_rows(100, 2)
    found = certify(QuadBoostClassifier().fit(X, y), X, y)
    assert (found.held_out, found.n_test) == (None, 0)
    assert str(found).startswith("Held-out bound: give rows that played no part in training")


def test_more_than_two_classes_have_the_held_out_bound_alone():
    X, y = load_iris(return_X_y=True)
    model = QuadBoostClassifier().fit(X[::2], y[::2])
    found = certify(model, X[::2], y[::2], X[1::2], y[1::2])
    assert found.held_out == held_out_bound(found.test_errors, 75)
    assert found.bounds == ()
    assert "are for two classes" in str(found)
    for bound in (risk_bound, scale_free_bound):
        with pytest.raises(ValueError, match="3 classes and this bound is for two; held_out_bound is for any"):
            bound(model, X, y)


def test_an_estimator_and_its_ensemble_have_the_same_bounds():
    X, y = noisy_rows(200, 2)
    model = QuadBoostClassifier().fit(X, y)
    assert certify(model, X, y) == certify(model.ensemble_, X, y)


def test_frames_with_categories_and_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=300), "colour": rng.choice([*"abcdefgh", None], size=300)})
    frame.loc[rng.random(300) < 0.1, "size"] = np.nan
    y = np.where((frame["size"] > 0) | (frame["colour"] == "a"), "yes", "no")
    model = QuadBoostClassifier().fit(frame, y)
    found = risk_bound(model, frame, y)
    assert found.rademacher == rademacher_complexity(frame)
    assert risk_bound(model, frame[["colour", "size"]], y).total == pytest.approx(found.total, rel=1e-12)
    array = frame.to_numpy(dtype=object)
    by_array = QuadBoostClassifier(categorical_features=[1]).fit(array, y)
    assert risk_bound(by_array, array, y).total == pytest.approx(found.total, rel=1e-12)


@pytest.mark.slow
def test_importing_the_bounds_imports_no_scipy(run_python):
    code = (
        "import sys, quadboost.bounds; print([name for name in ('scipy', 'sklearn', 'pandas') if name in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


# --- lambdas of the theory ------------------------------------------------------------------------------------------


def test_theory_of_l1_is_four_times_the_complexity():
    with pytest.warns(UserWarning, match=r"reg_lambda='theory' is 0.48: the least bound .* much smaller lambda"):
        assert theory_lambda("l1", 0.12) == pytest.approx(0.48)


@pytest.mark.parametrize("complexity", [0.001, 0.03, 0.1])
def test_theory_of_l2_is_a_fixed_point_that_minimises_the_unsquared_penalty(complexity):
    rng = np.random.default_rng(0)
    H = rng.choice([-1.0, 1.0], size=(300, 4))
    y = np.sign(H @ [1.0, 0.8, 0.7, 0.6])
    G, mu = H.T @ H / 300, H.T @ y / 300

    def ridge(lam):
        return np.linalg.solve(G + lam * np.eye(4), mu)

    with pytest.warns(UserWarning, match="reg_lambda='theory'"):
        lam = theory_lambda("l2", complexity, ridge)
    weight = ridge(lam)
    assert lam == pytest.approx(4 * complexity * 2 / np.linalg.norm(weight), rel=2e-3)

    def objective(a):
        return a @ G @ a - 2 * a @ mu + 8 * complexity * 2 * np.linalg.norm(a)

    around = [objective(weight + 0.01 * step) for step in rng.normal(size=(200, 4))]
    assert objective(weight) < min(around)


def test_theory_of_l2_can_want_no_voters_at_all():
    with pytest.raises(ValueError, match=r"no reg_lambda='theory' for the l2 penalty .* use 'auto' or a number"):
        theory_lambda("l2", 0.3, lambda lam: np.array([0.5, 0.1]) / (1 + lam))


@pytest.mark.parametrize("penalty", [None, "linf"])
def test_theory_has_no_lambda_for_other_penalties(penalty):
    with pytest.raises(ValueError, match="for the penalties 'l1' and 'l2'"):
        theory_lambda(penalty, 0.1)


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "delta=0.0 must lie between 0 and 1"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"p": 0.5}, "p=0.5 must be at least 1"),
        ({"p": float("nan")}, "p=nan"),
        ({"variant": "best"}, "variant='best' is not known"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"complexity": Complexity(0.1, 0.0, 0.2, 30, 1)}, "complexity is of 30 rows, but X has 400"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(options, message):
    X, y = noisy_rows(400, 1)
    with pytest.raises(ValueError, match=message):
        risk_bound(voters_on_axes(np.array([0.5])), X, y, **options)


def test_labels_and_models_that_do_not_fit_are_refused():
    X, y = noisy_rows(400, 1)
    model = voters_on_axes(np.array([0.5]))
    with pytest.raises(ValueError, match=r"y holds 0, which is none of the model's classes \[-1, 1\]"):
        risk_bound(model, X, np.where(y > 0, 1, 0))
    with pytest.raises(ValueError, match="X has 400 rows and y has 399"):
        risk_bound(model, X, y[1:])
    with pytest.raises(ValueError, match=r"y has shape \(400, 1\)"):
        risk_bound(model, X, y[:, None])
    with pytest.raises(ValueError, match="this model is a regression"):
        certify(QuadBoostRegressor().fit(X, y), X, y)
    with pytest.raises(TypeError, match="QuadBoostClassifier is neither an Ensemble nor a fitted estimator"):
        risk_bound(QuadBoostClassifier(), X, y)


@pytest.mark.parametrize(("errors", "n", "delta"), [(-1, 5, 0.05), (6, 5, 0.05), (0, 0, 0.05), (1, 5, 2.0)])
def test_held_out_bound_refuses_impossible_counts(errors, n, delta):
    with pytest.raises(ValueError, match="must"):
        held_out_bound(errors, n, delta)


def test_test_rows_are_checked_as_training_rows_are():
    X, y = noisy_rows(200, 2)
    model = Ensemble([0], [0.0], [0.5], 0.0, n_features=2, classes=np.array([-1, 1]))
    for X_test, y_test, wrong in (
        (X, y[:1], "X_test has 200 rows and y_test has 1"),
        (X, y + 7, "y_test holds"),
        (X, y.astype(str), "y_test holds"),
        (None, y, "give both X_test and y_test"),
        (X, None, "give both X_test and y_test"),
    ):
        with pytest.raises(ValueError, match=wrong):
            certify(model, X, y, X_test, y_test)


# --- links and other losses ---------------------------------------------------------------------------------


def folded(model, slope, **arguments):
    """The model with a link of this slope folded in."""
    return model.replace(
        weight=slope * model.weight, intercept=slope * model.intercept, link="logit", slope=slope, **arguments
    )


@pytest.mark.parametrize("bound", [risk_bound, scale_free_bound])
def test_a_link_folded_in_changes_no_bound(bound):
    X, y = noisy_rows(400, 3)
    model = voters_on_axes([0.5, 0.0, 0.25], 0.125)
    known = bound(model, X, y, complexity=EXACTLY)
    found = bound(folded(model, 4.0), X, y, complexity=EXACTLY)
    assert found.scale == known.scale / 4.0
    assert {**found.as_dict(), "scale": 0} == {**known.as_dict(), "scale": 0}


def test_the_bound_of_a_calibrated_model_is_of_the_labels_that_it_gives():
    X, y = noisy_rows(400, 3)
    calibrated = folded(voters_on_axes([0.5, 0.0, 0.25]), 4.0).replace(intercept=1.5)
    same = voters_on_axes([0.5, 0.0, 0.25], 1.5 / 4.0)
    assert calibrated.predict(X).tolist() == same.predict(X).tolist()
    assert risk_bound(calibrated, X, y, complexity=EXACTLY).total == risk_bound(same, X, y, complexity=EXACTLY).total


@pytest.mark.parametrize("loss", ["quadratic", "clipped quadratic"])
def test_theorem_1_with_the_quadratic_loss_refuses_a_model_of_another_loss(loss):
    X, y = noisy_rows(400, 3)
    model = folded(voters_on_axes([0.5, 0.0, 0.25]), 1.0, loss="logistic")
    with pytest.raises(ValueError, match=f"fitted to the logistic loss, so its {loss} loss .* scale_free_bound"):
        risk_bound(model, X, y, complexity=EXACTLY, loss=loss)


def test_a_model_of_another_loss_has_the_bounds_of_its_sign():
    X, y = noisy_rows(400, 3)
    plain = voters_on_axes([0.5, 0.0, 0.25])
    model = folded(plain, 1.0, loss="logistic")
    assert risk_bound(model, X, y, complexity=EXACTLY, loss="ramp").total > 0
    certificate = certify(model, X, y, X, y)
    assert [bound.name for bound in certificate.bounds] == ["Scale-free L1 bound (ramp loss)"]
    assert certificate.bounds == certify(plain, X, y).bounds[:1]
    assert certificate.held_out == certify(plain, X, y, X, y).held_out
    assert "Theorem 1" not in str(certificate)
