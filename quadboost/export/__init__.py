"""Fitted models as programs for other systems, with the same bits as `decision_function`, and as a scorecard."""

from .c import to_c
from .javascript import to_javascript
from .onnx import to_onnx
from .scorecard import Scorecard, to_scorecard
from .sql import to_sql

__all__ = ["Scorecard", "to_c", "to_javascript", "to_onnx", "to_scorecard", "to_sql"]
