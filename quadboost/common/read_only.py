"""Dicts that cannot be changed: other values were computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


class ReadOnly(dict[Any, Any]):
    """A dict that cannot be changed, nor the dicts in it. JSON, pickle and copies take it as any other dict."""

    def __init__(self, values: Mapping[Any, Any] | None = None) -> None:
        super().__init__(
            {key: ReadOnly(value) if isinstance(value, dict) else value for key, value in (values or {}).items()}
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this dict is read-only; change a copy, dict(...), and make a new model of it by replace")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[Any, Any]]]:
        return ReadOnly, (dict(self),)
