"""Packages that few need: imported when they are, or a sentence says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(name: str, purpose: str, remedy: str) -> Any:
    """The module of this name; where its package is missing: "{purpose} {package}, ...; pip install {remedy}"."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{purpose} {package}, which is not installed; pip install {remedy}") from error
