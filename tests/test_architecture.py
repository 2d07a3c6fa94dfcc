"""How the package is built: who may import whom, and that every module has its tests."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "quadboost"

pytestmark = pytest.mark.skipif(not PACKAGE.exists(), reason="the source is not here: an installed wheel is tested")
MOST_LINES = 500

# Each package, and those that it imports from: always some that stand above it. Of the package itself anything goes.
IMPORTS = {
    "common": "",
    "kernels": "",
    "_core": "kernels",
    "data": "common",
    "voters": "common kernels data",
    "moments": "common kernels _core data voters",
    "boosting": "common _core data moments",
    "model": "common kernels data voters",
    "fitting": "common kernels _core data voters moments boosting model",
    "parts": "common kernels data voters moments boosting model fitting",
    "choosing": "common _core data voters moments boosting model fitting",
    "bounds": "common kernels data voters model",
    "estimators": "common data voters moments boosting model fitting parts choosing",
    "export": "common data model estimators",
    "explain": "common kernels voters model export",
    "dask": "model parts estimators",
    "commands": "common data parts model bounds estimators export explain",
}

# Imports inside functions that go the other way: what few fits need, and what only tells of others.
LAZY = {
    ("model.explained", "explain"),  # what a model says of itself
    ("fitting.training", "bounds"),  # reg_lambda="theory"
    ("fitting.memory", "estimators"),  # their defaults
}

# Who may import what else is not part of Python or numpy. What is not needed to load a model and predict is not
# imported there, and what is optional not before it is used.
OTHERS = {
    "sklearn": "data.examples export.preparation estimators.base estimators.plain estimators.watching estimators.cv "
    "commands.train commands.train_data dask.estimators",
    "scipy": "bounds.risk",
    "joblib": "bounds.complexity",
    "h5py": "model.checked_file",
    "tqdm": "common.progress",
    "matplotlib": "choosing.plots explain.plots",
    "pandas": "explain.terms",  # a frame, where asked for
    "shap": "explain.terms",
    "pyarrow": "commands.predict commands.recognise commands.report commands.tables commands.train_table "
    "commands.write_table parts.arrow parts.files",
    "onnx": "export.onnx export.graph",
    "onnxruntime": "export.onnx",
    "skl2onnx": "export.pipelines export.preparation",
    "openpyxl": "export.scorecard",
    "dask": "dask.source dask.collections dask.lazy dask.estimators",
    "distributed": "dask.source",
    "typing_extensions": "estimators.base estimators.plain estimators.cv dask.estimators",  # for types only
}

OPTIONAL = (
    "tqdm",
    "matplotlib",
    "h5py",
    "onnxruntime",
    "skl2onnx",
    "openpyxl",
    "dask",
    "distributed",
    "scipy",
    "joblib",
)

# Tests of modules that have no test file in the mirrored place: kernels are tested through the Python that calls them.
TESTED_BY = {
    "_core": "boosting/test_rounds.py",
    "kernels.bins": "voters/test_columns.py",
    "kernels.quantiles": "voters/test_quantiles.py",
    "kernels.sums": "moments/test_sums.py",
    "kernels.trees": "voters/test_trees.py",
    "kernels.gram": "moments/test_gram.py",
    "kernels.store": "moments/test_gram.py",
    "kernels.voters": "voters/test_columns.py",
    "kernels.patterns": "model/test_patterns.py",
}
UNTESTED = ("__init__", "_version")

VAGUE = ("own", "given", "less")  # names that could mean anything


class Import(NamedTuple):
    module: str  # without "quadboost."
    name: str  # the same, if it is of the package
    is_lazy: bool

    @property
    def is_own(self) -> bool:
        return self.name.startswith("quadboost")

    @property
    def target(self) -> str:
        """The package that it is of."""
        return self.name.split(".")[1 if self.is_own and "." in self.name else 0]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports_of_python(path: Path) -> Iterator[Import]:
    """Also those inside functions (lazy) and for types only."""
    tree = TREES[path]
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lazy = {node for function in functions for node in ast.walk(function)}
    here = ("quadboost", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            is_package = node.level > 0 and stem == "quadboost"
            names = [f"{stem}.{alias.name}" for alias in node.names] if is_package else [stem]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "import_dask", "needed")):
            names = [one.value for one in node.args[:1] if isinstance(one, ast.Constant)]
        for name in names:
            yield Import(name_of(path), name, node in lazy)


def imports_of_cython(path: Path) -> Iterator[Import]:
    for name in re.findall(r"^ *(?:from|cimport|import) ([\w.]+)", path.read_text(), re.MULTILINE):
        if name.startswith("quadboost"):
            yield Import(name_of(path), name, False)


PYTHON = sorted(path for path in PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in PYTHON}
CYTHON = sorted(path for ending in ("pyx", "pxd") for path in PACKAGE.rglob(f"*.{ending}"))
ALL = [found for path in PYTHON for found in imports_of_python(path)]
ALL += [found for path in CYTHON for found in imports_of_cython(path)]


def between_packages() -> dict[tuple[str, str], list[Import]]:
    """Imports from one package by another; quadboost itself only says where its names are."""
    found: dict[tuple[str, str], list[Import]] = {}
    for one in ALL:
        package = one.module.split(".")[0]
        if one.is_own and package not in UNTESTED and one.target not in (package, "_version"):
            found.setdefault((package, one.target), []).append(one)
    return found


def test_imports_are_found():
    """Or the tests below would pass whatever there is."""
    assert Import("voters.columns", "quadboost.kernels.bins", False) in ALL
    assert Import("moments.gram", "quadboost.common", False) in ALL
    assert Import("fitting.training", "quadboost.bounds", True) in ALL
    assert Import("_core", "quadboost.kernels.store", False) in ALL
    assert Import("estimators.plain", "typing_extensions", False) in ALL


def test_packages_import_only_those_that_they_may():
    wrong = [
        f"{one.module} imports {one.name}"
        for (package, target), found in between_packages().items()
        for one in found
        if target not in IMPORTS[package].split() and not (one.is_lazy and (one.module, target) in LAZY)
    ]
    assert wrong == []


def test_the_table_allows_nothing_that_nobody_needs():
    allowed = {(package, target) for package, targets in IMPORTS.items() for target in targets.split()}
    assert allowed - between_packages().keys() == set()
    assert LAZY - {(one.module, one.target) for one in ALL if one.is_lazy} == set()


def test_packages_import_only_those_above_them_in_the_table():
    order = list(IMPORTS)
    assert [(p, t) for p, targets in IMPORTS.items() for t in targets.split() if order.index(t) >= order.index(p)] == []
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == {*order} - {"_core"}


def test_other_libraries_are_imported_only_where_the_table_says():
    found: dict[str, set[str]] = {}
    for one in ALL:
        if not one.is_own and one.target not in ("numpy", *sys.stdlib_module_names):
            found.setdefault(one.target, set()).add(one.module)
    assert found == {library: set(modules.split()) for library, modules in OTHERS.items()}


def test_what_is_optional_is_imported_when_it_is_used():
    early = {(one.module, one.target) for one in ALL if not (one.is_lazy or one.is_own) and one.target in OPTIONAL}
    assert early == set()


def test_a_name_says_what_a_thing_is():
    names = [
        (path, node.lineno, getattr(node, "id", None) or getattr(node, "arg", None))
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    assert len(names) > 10_000  # or this would pass whatever there is
    assert [f"{name_of(path)}, line {line}: {name}" for path, line, name in names if name in VAGUE] == []


COMMENTS = {  # and strings, of languages that `ast` does not read
    "pyx": r'""".*?"""|"[^"\n]*"|#[^\n]*',
    "pxd": r'""".*?"""|"[^"\n]*"|#[^\n]*',
    "h": r"/\*.*?\*/",
    "js": r'"[^"\n]*"|//[^\n]*',
}


@pytest.mark.parametrize("ending", COMMENTS)
def test_a_name_says_what_a_thing_is_in_other_languages_too(ending):
    paths = list(PACKAGE.rglob(f"*.{ending}"))
    assert paths
    for path in paths:
        code = re.sub(COMMENTS[ending], "", path.read_text(), flags=re.DOTALL)
        assert not {*VAGUE} & {*re.findall(r"\w+", code)}, path.name


def modules() -> list[str]:
    names = {name_of(path) for path in PYTHON} | {name_of(path) for path in CYTHON if path.suffix == ".pyx"}
    return sorted(name for name in names if name.split(".")[-1] not in UNTESTED)


@pytest.mark.parametrize("module", modules())
def test_every_module_has_a_test_file_of_its_name(module):
    *folders, name = module.split(".")
    path = TESTS / TESTED_BY.get(module, "/".join([*folders, f"test_{name}.py"]))
    assert path.exists(), f"{module} has no {path.relative_to(TESTS)}"
    assert re.search(r"^ *(async )?def test_", path.read_text(), re.MULTILINE)


def test_the_table_of_tests_elsewhere_names_modules_that_there_are():
    assert set(TESTED_BY) <= set(modules())


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_file_is_long(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES
