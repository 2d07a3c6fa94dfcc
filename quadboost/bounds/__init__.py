"""What can honestly be promised of a model: Rademacher complexity and risk bounds."""

from .complexity import Complexity, rademacher_complexity
from .risk import (
    Certificate,
    RiskBound,
    certify,
    held_out_bound,
    risk_bound,
    scale_free_bound,
    theory_lambda,
)

__all__ = [
    "Certificate",
    "Complexity",
    "RiskBound",
    "certify",
    "held_out_bound",
    "rademacher_complexity",
    "risk_bound",
    "scale_free_bound",
    "theory_lambda",
]
