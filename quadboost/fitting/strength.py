"""The strength of an l2 penalty, the same for all outputs: of stumps by what moments say, of rules also by a law."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from ..boosting.reweight import MOST_TOGETHER, gram_of, times_each
from ..boosting.strength import Strengths
from ..boosting.trace import Known, ridge_by_gcv, ridge_of_grown
from ..moments.moments import Moments
from .limits import penalty_factor
from .measured import Measured, Options, solves_at_once

LEAST_R2, MOST_R2 = 0.02, 0.99  # that a strength is chosen by
FEW, MANY = 60.0, 10_000.0  # real targets, and examples under another loss: half of the way to the least estimate


def ridge_of_all(measured: Measured, options: Options, *, of_labels: bool) -> Strengths | None:
    """The strength that cross-validation by moments chooses; None where it is not to be chosen here.

    That takes products with the Gram matrix: of few voters all of it is known in the end, and for more the rows must be
    there. The others have a formula.
    """
    moments, fit_intercept = measured.moments, bool(options.fit_intercept)
    is_free = options.penalty == "l2" and options.mode == "corrective" and options.reg_lambda == "auto"
    if not is_free or moments.n_voters == 0:
        return None
    n_examples = measured.rows.n_examples
    if measured.voters.trees:
        return _ridge_of_rules(measured, moments, fit_intercept, 0.0 if of_labels else FEW)
    if solves_at_once(measured, options):
        products, _ = measured.products(fit_intercept)
        return ridge_by_gcv(products.gram_times, moments, fit_intercept, n_examples)
    if moments.n_voters > MOST_TOGETHER:
        return None
    with moments.gram.lease() as columns:
        gram = gram_of(moments, columns, np.arange(moments.n_voters), fit_intercept)
        return ridge_by_gcv(partial(times_each, gram), moments, fit_intercept, n_examples)


def _ridge_of_rules(measured: Measured, moments: Moments, fit_intercept: bool, few: float) -> Strengths:
    """The same of rules: from the law towards the least estimate, half of the way for so few examples.

    `moments` are of what rules are to explain.
    """
    known, grown, n_examples = _known(measured, fit_intercept), measured.grown, measured.rows.n_examples
    # Trees of several outputs are grown to combinations of them, which the estimate does not see. And where they
    # explain nothing on other rows, it takes for an effect what they found by chance.
    if moments.n_outputs > 1 or (grown is not None and grown.r2 <= LEAST_R2):
        return Strengths(known.strength)
    products, _ = measured.products(fit_intercept)
    found = ridge_of_grown(products.gram_times, moments, fit_intercept, n_examples, known)
    trust = n_examples / (n_examples + few)
    return replace(found, chosen=found.chosen**trust * known.strength ** (1.0 - trust))


def ridge_under_loss(measured: Measured, options: Options, pulls: Moments) -> float:
    """The strength for rules under another loss, in units of its curvature; `pulls` are moments of its first pull.

    The likeliest weights are larger than those of least squares, and chance moves them more: the fewer the examples,
    the nearer it stays to the law.
    """
    return _ridge_of_rules(measured, pulls, bool(options.fit_intercept), MANY).chosen


def law_of_rules(measured: Measured, options: Options) -> float:
    """What is expected of the strength of an l2 penalty on rules, in the units of the risk.

    Were weights drawn at random, so that scores vary by as much as they explain, the best ridge would be the variance
    of what is left over that of a weight: trace(G) / m * (1 - r2) / r2, with G the Gram matrix of centred voters, each
    divided by its factor.
    """
    return _known(measured, bool(options.fit_intercept)).strength


def _known(measured: Measured, fit_intercept: bool) -> Known:
    assert measured.grown is not None
    r2 = min(max(measured.grown.r2, LEAST_R2), MOST_R2)
    eta, factor = measured.moments.centred(fit_intercept)[1], penalty_factor(measured.voters, measured.moments, "l2")
    if factor is None:
        factor = np.ones(len(eta))
    trace = math.fsum(np.maximum(eta, 0.0) / (factor * factor))
    return Known(trace / measured.rows.n_examples * (1.0 - r2) / r2, 1.0 - r2, factor)
