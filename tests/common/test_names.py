"""Names that are written once."""

from quadboost.common.names import LOSSES
from quadboost.model import links


def test_a_model_can_have_every_loss_that_a_fit_can_and_no_other():
    assert tuple(links.LOSSES) == LOSSES
