"""Fitted models as programs for other systems, with the same bits as `decision_function`, and as a scorecard."""

from .sql import to_sql

__all__ = ["to_sql"]
