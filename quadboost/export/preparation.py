"""The steps of a pipeline before one of our estimators: as nodes of ONNX, by skl2onnx, and rows to test them with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..common.packages import needed
from .additive import N_EXAMPLES, UNSEEN, Additive, Examples
from .graph import Graph, input_names

ML_OPSET = 3  # skl2onnx knows none above
# What the steps say may differ so much from what they say in Python, as a part of the largest value.
ROUNDING = {"float64": 1e-9, "float32": 1e-4}


def import_skl2onnx() -> Any:
    return needed("skl2onnx", "converting a pipeline needs", "'quadboost[onnx]'")


def split(pipeline: Any) -> tuple[list[Any], Any]:
    """The steps that do anything before the last one, and the last one."""
    *before, last = _steps(pipeline)
    return before, last


def _steps(pipeline: Any) -> Iterator[Any]:
    for _, step in pipeline.steps:
        if hasattr(step, "steps"):
            yield from _steps(step)
        elif step is not None and not (isinstance(step, str) and step == "passthrough"):
            yield step


class Preparation:
    """Fitted steps, and rows as they take them; missing values and levels never seen are put into these."""

    def __init__(self, steps: list[Any], X: Any) -> None:
        self.steps, self.X = steps, X

    def added_to(self, graph: Graph) -> tuple[list[Any], list[str]]:
        """Add the nodes of the steps to a graph; return its inputs, and the name of the matrix that the steps make."""
        made = self._converted(graph.opsets)
        new = input_names([one.name for one in made.graph.input])
        for node in made.graph.node:
            node.input[:] = [new.get(name, name) for name in node.input]
        for one in made.graph.input:
            one.name = new[one.name]
        graph.nodes.extend(made.graph.node)
        graph.initializers.extend(made.graph.initializer)
        graph.opsets |= {one.domain: one.version for one in made.opset_import if one.domain not in graph.opsets}
        (output,) = made.graph.output
        same = output.type.tensor_type.elem_type in (graph.element, graph.string)
        name = new.get(output.name, output.name)
        return list(made.graph.input), [name if same else graph.add("Cast", name, to=graph.element)]

    def _converted(self, opsets: dict[str, int]) -> Any:
        to_onnx = import_skl2onnx().to_onnx
        from sklearn.pipeline import make_pipeline

        try:
            return to_onnx(make_pipeline(*self.steps), self.X[:1], target_opset=dict(opsets))
        except Exception as error:  # of many kinds
            first = str(error).strip().split("\n")[0]
            raise ValueError(f"skl2onnx cannot convert the steps before the model: {first:.200}") from error

    def examples(self, model: Additive) -> Examples:
        """Rows like those given, with each missing value and unseen level that the steps accept, and their scores.

        Only those whose score does not hang on the last digits of what the steps say.
        """
        rows_of_user = self._rows(self.X[:N_EXAMPLES])
        odd = self._accepted(model, rows_of_user[0], self._odd(rows_of_user[0]))
        rng, rows = np.random.default_rng(0), []
        for number in range(N_EXAMPLES):
            row = list(rows_of_user[number % len(rows_of_user)])
            if number >= len(rows_of_user):
                row = [v * rng.uniform(-2.0, 2.0) if isinstance(v, float) else v for v in row]
            for turn, (column, value) in enumerate(odd):
                if number == 1 + turn % (N_EXAMPLES - 1):
                    row[column] = value
            rows.append(row)
        rows = self._rows(self._table(rows))  # as the type holds them
        rows = [row for row in rows if self._matrix(model, [row]) is not None]
        matrix = self._matrix(model, rows)
        if matrix is None:
            raise ValueError("the steps before the model refuse the rows of X; give rows that they accept")
        scores = self._scores(model, matrix)
        most = np.nan_to_num(np.abs(matrix)).max(axis=0)
        nudge = ROUNDING[str(np.result_type(matrix))] * most
        stable = (
            (scores == self._scores(model, matrix - nudge)) & (scores == self._scores(model, matrix + nudge))
        ).all(axis=1)
        kept = np.flatnonzero(stable) if stable.any() else np.arange(len(rows))
        return Examples([rows[row] for row in kept.tolist()], scores[kept])

    def _scores(self, model: Additive, matrix: np.ndarray) -> np.ndarray:
        return model.ensemble.score_matrix(matrix).reshape(len(matrix), model.n_outputs)

    def _accepted(self, model: Additive, row: list[Any], odd: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """The odd values that the steps do not refuse."""
        rows = []
        for column, value in odd:
            rows.append(list(row))
            rows[-1][column] = value
        if self._matrix(model, rows) is not None:
            return odd
        return [one for one, row in zip(odd, rows, strict=True) if self._matrix(model, [row]) is not None]

    def _odd(self, row: list[Any]) -> list[tuple[int, Any]]:
        """Columns and what might be odd there. A missing text is not among it: no two steps take the same for one."""
        text = [(column, UNSEEN) for column, value in enumerate(row) if isinstance(value, str)]
        return text + [(column, None) for column, kind in enumerate(self._kinds) if kind == "f"]

    def _matrix(self, model: Additive, rows: list[list[Any]]) -> np.ndarray | None:
        """What the model gets of rows; None if a step refuses them."""
        table = self._table(rows)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                for step in self.steps:
                    table = step.transform(table)
                return model.ensemble.matrix_of(table)
        except Exception:  # of many kinds
            return None

    @property
    def _kinds(self) -> list[str]:
        """For each column, the kind of its type as numpy names it."""
        is_array = isinstance(self.X, np.ndarray)
        return [self.X.dtype.kind] * self.X.shape[1] if is_array else [kind.kind for kind in self.X.dtypes]

    def _rows(self, table: Any) -> list[list[Any]]:
        """Plain values, None where missing."""
        plain = table.tolist() if isinstance(table, np.ndarray) else table.astype(object).to_numpy().tolist()
        return [[None if v is None or v != v else v for v in row] for row in plain]

    def _table(self, rows: list[list[Any]]) -> Any:
        if isinstance(self.X, np.ndarray):
            return np.array(rows, dtype=self.X.dtype)
        table = type(self.X)(rows, columns=self.X.columns, dtype=object)
        return table.astype(dict(self.X.dtypes))
