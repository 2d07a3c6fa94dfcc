"""A report of a model: one file of HTML that needs no network and no server."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from ..common.checks import file_name
from ..export.javascript import to_javascript
from ..export.scorecard import harmless, to_scorecard
from ..export.sql import to_sql
from ..model.ensemble import Ensemble
from ..model.whole_file import whole_file
from .quality_section import Figures, quality_section
from .sections import (
    MOST_SHAPES,
    constraints_section,
    data_section,
    figures_head,
    form_data,
    form_section,
    importance_section,
    model_section,
    rules_section,
    shapes_section,
    training_section,
    used_features,
)
from .svg import text_of
from .terms import TRAINING, Terms
from .words import feature_name, level_text, number_text, shortened

MOST_BYTES = 400_000  # of a page of 30 features; downloads have what is left of it
MOST_PLAIN = 1 << 15  # bytes of a download that is not compressed
ROOM_OF_FRAME = 12_000  # bytes of a page beside its sections and its script


def report(
    model: Any, X: Any, y: Any, path: str | os.PathLike[str] = "report.html", *, title: str | None = None
) -> str:
    """Write a report of a model, and of how good it is on some rows.

    Parameters
    ----------
    model : Ensemble or fitted estimator
    X, y : table and labels or targets
        Rows that the model has not seen in training.
    path : str or path
        Of the file, which appears whole or not at all.
    title : str, optional

    Returns
    -------
    str
        The path.
    """
    page = report_html(model, X, y, title=title).encode("utf-8")
    name = file_name(path)
    with whole_file(name) as file:
        file.write(page)
    return name


def report_html(model: Any, X: Any, y: Any, *, title: str | None = None) -> str:
    """The page."""
    ensemble = getattr(model, "ensemble_", model)
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"{model!r:.60} is no fitted QuadBoost model; give an Ensemble or a fitted estimator")
    matrix = ensemble.matrix_of(X) if len(X) else np.empty((0, ensemble.n_features))
    scores = ensemble.score_matrix(matrix) if len(matrix) else np.empty((0, *ensemble.weight.shape[1:]))
    quality, figures = quality_section(ensemble, scores, y)
    form, script = _form(ensemble, matrix)
    sections = {
        "Model": model_section(ensemble),
        "Data": f"<p>{len(matrix):,} rows that were not trained on.</p>{data_section(ensemble, matrix)}",
        "Training": training_section(ensemble),
        "Quality": f"<p>On {len(matrix):,} rows that the model has not seen.</p>{quality}",
        "Importance": importance_section(ensemble, matrix),
        "Shapes": shapes_section(ensemble),
        "Rules": rules_section(ensemble),
        "Constraints": constraints_section(ensemble),
        "Try a row": form,
    }
    room = (
        MOST_BYTES * max(1.0, min(ensemble.n_features, MOST_SHAPES) / 30)
        - len(script)
        - sum(map(len, sections.values()))
    )
    sections["Downloads"] = _downloads(ensemble, int(room) - ROOM_OF_FRAME)
    heading = title or f"A model of {ensemble.info.get('estimator', 'QuadBoost')}"
    return _page(shortened(str(heading), 200), _head(ensemble, matrix, figures), sections, script)


def _head(ensemble: Ensemble, matrix: np.ndarray, figures: Figures) -> str:
    rows = ensemble.info.get("rows")
    known = [(f"{rows:,}", "training rows")] if isinstance(rows, int) else []
    used = used_features(ensemble).size
    return figures_head([*known, (f"{len(matrix):,}", "rows held out"), (f"{used}", "features used"), *figures])


def _form(ensemble: Ensemble, matrix: np.ndarray) -> tuple[str, str]:
    """The form, and its script; where the model cannot be written as JavaScript, why."""
    try:
        program = to_javascript(ensemble)
    except ValueError as error:
        return f"<p>There is no form: {text_of(error)}</p>", ""
    terms = Terms.of(ensemble)
    means = [*terms.means[: len(terms.coding.tables)].tolist(), *_means_of_trees(ensemble, terms.reference == TRAINING)]
    data = form_data(ensemble, matrix, means, terms.base.tolist())
    data["start"] = "average training row" if terms.reference == TRAINING else "intercept"
    as_json = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    return form_section(ensemble, matrix, data), program + _asset("page.js").replace("PAGE", as_json, 1)


def _means_of_trees(ensemble: Ensemble, is_known: bool) -> list[list[float]]:
    """The mean of what each tree adds over the training rows; trees that add nothing are no terms."""
    trees, values = ensemble.trees, ensemble.leaf_values().reshape(ensemble.trees.n_nodes, ensemble.n_outputs)
    found = []
    for first, last in pairwise(trees.start.tolist()):
        of_tree = values[first:last]
        if of_tree.any():
            mass = ensemble.node_mass[first:last] if is_known else np.zeros(last - first)
            found.append((mass @ of_tree / mass[0] if is_known else mass @ of_tree).tolist())
    return found


def _downloads(ensemble: Ensemble, room: int) -> str:
    """Links that hold their content: no script, no network. What is long is compressed, what is too long left out."""
    makers: list[tuple[str, Callable[[], str], str]] = [
        ("shapes.csv", lambda: shapes_csv(ensemble), "the numbers behind the pictures"),
        ("model.sql", lambda: to_sql(ensemble, "my_table"), "the score in SQL, for DuckDB"),
    ]
    if ensemble.classes is not None and len(ensemble.classes) == 2:
        makers.insert(0, ("scorecard.csv", lambda: to_scorecard(ensemble).to_csv(), "points to add up"))
    items = []
    for name, make, words in makers:
        items.append(_link(name, make, words, room))
        room -= len(items[-1])
    return f"<ul>{''.join(items)}</ul><p>quadboost-export writes the model in other languages and dialects.</p>"


def _link(name: str, make: Callable[[], str], words: str, room: int) -> str:
    try:
        content = make().encode("utf-8")
    except ValueError as error:
        return f"<li>{text_of(name)}: not available, {text_of(error)}</li>"
    kind = "text/csv" if name.endswith(".csv") else "application/sql"
    if len(content) > MOST_PLAIN:
        name, kind, content = f"{name}.gz", "application/gzip", gzip.compress(content, mtime=0)
    link = f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
    if len(link) > room:
        return (
            f"<li>{text_of(name)}: too large for this page ({len(content) // 1024:,} kB); make it with quadboost</li>"
        )
    return f'<li><a download="{text_of(name)}" href="{link}">{text_of(name)}</a>: {text_of(words)}</li>'


def shapes_csv(ensemble: Ensemble) -> str:
    """Every bin of every shape function: a line each."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["feature", "bin", "output", "added to the score", "training weight", "standard error"])
    labels = (
        range(ensemble.n_outputs) if ensemble.classes is None or ensemble.n_outputs == 1 else ensemble.classes.tolist()
    )
    for shape in ensemble.shape_functions(bands=len(ensemble.bin_error) > 0):
        cuts = [number_text(cut) for cut in shape.thresholds.tolist()]
        if shape.levels is not None:
            bins = [*map(level_text, shape.levels), "never seen"]
        elif cuts:
            bins = [f"at most {cuts[0]}", *(f"above {a}, at most {b}" for a, b in pairwise(cuts))]
            bins.append(f"above {cuts[-1]}")
        else:
            bins = ["any value"]
        name = harmless(feature_name(ensemble, shape.feature))
        values = np.vstack([shape.values.reshape(-1, ensemble.n_outputs), np.reshape(shape.missing, (1, -1))])
        mass = [""] * len(values) if shape.mass is None else [*shape.mass.tolist(), shape.missing_mass]
        error = np.full(values.shape, np.nan)
        if shape.error is not None and shape.missing_error is not None:
            error = np.vstack([shape.error.reshape(-1, ensemble.n_outputs), np.reshape(shape.missing_error, (1, -1))])
        for i, name_of_bin in enumerate([*bins, "missing"]):
            for k, label in enumerate(labels):
                known = error[i, k] == error[i, k]
                line = [name, harmless(name_of_bin), harmless(str(label)), repr(float(values[i, k])), mass[i]]
                writer.writerow([*line, float(error[i, k]) if known else ""])
    return text.getvalue().encode("utf-8", "replace").decode("utf-8")


def _asset(name: str) -> str:
    return (files("quadboost.explain") / name).read_text("utf-8")


def _page(title: str, head: str, sections: dict[str, str], script: str) -> str:
    """All in one file. The policy allows this style and this script, and nothing else: no network, no other code."""
    style = _asset("page.css")
    allowed = {"style": style, "script": script}
    policy = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; " + "; ".join(
        f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
        for kind, text in allowed.items()
    )
    links = "".join(f'<a href="#{_anchor(name)}">{text_of(name)}</a>' for name in sections)
    body = "".join(
        f'<section id="{_anchor(name)}"><h2>{text_of(name)}</h2>{content}</section>'
        for name, content in sections.items()
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="referrer" content="no-referrer">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{text_of(title)}</title><style>{style}</style></head><body><header><h1>{text_of(title)}</h1>"
        f"<nav>{links}</nav></header><main>{head}{body}</main><script>{script}</script></body></html>\n"
    )


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
