"""Names that are written once."""

from quadboost.common.names import LOSSES, METRICS
from quadboost.estimators.watching import FOR_LABELS, FOR_TARGETS
from quadboost.model import links


def test_a_model_can_have_every_loss_that_a_fit_can_and_no_other():
    assert tuple(links.LOSSES) == LOSSES


def test_a_command_knows_the_metrics_of_fits():
    assert {"classification": tuple(FOR_LABELS), "regression": tuple(FOR_TARGETS)} == METRICS
