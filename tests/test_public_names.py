"""The public names of version 0.1, as data: what is in data/public-names.json must not go or change; more may come.

Written by `python tests/test_public_names.py`, for a release only.
"""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

PINNED = Path(__file__).parent / "data" / "public-names.json"
MODULES = ("quadboost", "quadboost.bounds", "quadboost.dask", "quadboost.export")


def parameters(thing: Any) -> list[str]:
    """Names in order; `*` before those by keyword alone, `=` after those that may be left out."""
    marks = {
        inspect.Parameter.KEYWORD_ONLY: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
        inspect.Parameter.VAR_POSITIONAL: "*",
    }
    found = [
        parameter for parameter in inspect.signature(thing).parameters.values() if parameter.name not in ("self", "cls")
    ]
    return [
        marks.get(parameter.kind, "") + parameter.name + ("=" if parameter.default is not parameter.empty else "")
        for parameter in found
    ]


def members(kind: type) -> dict[str, list[str] | None]:
    """Public methods with their parameters, and attributes; constructors only of what users make themselves."""
    found: dict[str, list[str] | None] = dict.fromkeys(getattr(kind, "__dataclass_fields__", ()))
    found |= dict.fromkeys(getattr(kind, "_fields", ()))
    found = {name: None for name in found if not name.startswith("_")}
    if kind.__name__.startswith(("QuadBoost", "DaskQuadBoost")) or kind.__name__ == "Ensemble":
        found["__init__"] = parameters(kind.__init__)
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("quadboost"):
            continue
        for name, member in vars(base).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
                found[name] = None if isinstance(member, property) else parameters(getattr(kind, name))
    return dict(sorted(found.items()))


def public_names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in map(import_module, MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                found[f"{module.__name__}.{name}"] = members(thing)
            else:
                found[f"{module.__name__}.{name}"] = parameters(thing) if callable(thing) else None
    return found


def changes(pinned: list[str] | None, now: list[str] | None) -> str:
    """What breaks code written for the pinned parameters; empty if nothing does."""
    if pinned is None or now is None:
        return "" if pinned == now else f"was {pinned}, is {now}"
    by_place, place_now = ([name.rstrip("=") for name in each if name[0] != "*"] for each in (pinned, now))
    if place_now[: len(by_place)] != by_place:
        return f"the arguments were {by_place}, are {place_now}"
    gone = [name for name in pinned if name not in now and f"{name}=" not in now]
    old = {name.rstrip("=") for name in pinned}
    forced = [name for name in now if name not in old and name[-1] != "=" and not name.startswith("**")]
    return f"gone: {gone}, must now be given: {forced}" if gone or forced else ""


def test_public_names_and_their_arguments_stay():
    now = public_names()
    broken = {}
    for name, pinned in json.loads(PINNED.read_text()).items():
        if name not in now:
            broken[name] = "gone"
        elif isinstance(pinned, dict):
            its = now[name]
            broken |= {
                f"{name}.{member}": "gone" if member not in its else words
                for member, known in pinned.items()
                if member not in its or (words := changes(known, its[member]))
            }
        elif words := changes(pinned, now[name]):
            broken[name] = words
    assert not broken


def test_the_reference_page_has_every_public_name():
    words = set(re.findall(r"\w+", (Path(__file__).parents[1] / "docs" / "api.md").read_text()))
    names = {name for module in map(import_module, MODULES) for name in module.__all__} - {"__version__"}
    assert names <= words, names - words


def described(thing: Any) -> list[list[str]]:
    """The arguments in the docstring, those that are described together in one list."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n\w+\n--|\Z)", inspect.getdoc(thing) or "", re.M | re.S)
    lines = re.findall(r"^[\w*].*", section[1], re.M) if section else []
    return [[name.strip(" *") for name in line.split(" : ")[0].split(",")] for line in lines]


def things() -> list[Any]:
    """Functions, classes and methods."""
    found = [getattr(module, name) for module in map(import_module, MODULES) for name in module.__all__]
    kinds = [thing for thing in found if inspect.isclass(thing)]
    names = [(kind, name) for kind in kinds for name in members(kind) if not name.startswith("_")]
    return [*filter(callable, found), *filter(inspect.isroutine, (getattr(kind, name, None) for kind, name in names))]


def test_docstrings_describe_the_arguments_that_there_are():
    for thing in things():
        named = [name for group in described(thing) for name in group]
        if not named:
            continue
        taken = {name: each.default for name, each in inspect.signature(thing).parameters.items() if name != "self"}
        assert set(named) <= set(taken), thing
        assert set(named) == set(taken) or re.search(r"are\s+those\s+of", inspect.getdoc(thing)), thing
        for group in described(thing):  # the page shows one default for all of them
            assert len({repr(taken[name]) for name in group}) == 1, (thing, group)


def test_what_breaks_code_is_found():
    assert changes(["X", "y=", "*n="], ["X", "y=", "z=", "*n=", "*more="]) == ""
    assert "gone" in changes(["X", "*n="], ["X"])
    assert changes(["X", "y"], ["X", "y="]) == ""
    assert "gone: ['y=']" in changes(["X", "y="], ["X", "y"])
    assert "must now be given" in changes(["X"], ["X", "*n"])
    assert "arguments were" in changes(["X", "y="], ["X", "z=", "y="])


if __name__ == "__main__":
    PINNED.write_text(json.dumps(public_names(), indent=1) + "\n")
