"""The sections of a report that describe the model and its data, and the form that scores a row."""

from __future__ import annotations

from ast import literal_eval
from contextlib import suppress
from typing import Any

import numpy as np

from .._version import __version__
from ..model.ensemble import Ensemble
from ..model.file import ModelFileError, ModelRecord, digest_of
from ..model.links import LINKS
from .drawing import picture_of, score_unit
from .importance import importances, importances_by_feature
from .quality_section import Figures, table
from .svg import bars_svg, rect, shape_svg, spark_svg, svg, text_of
from .words import feature_name, level_text, number_text, shortened

MOST_FEATURES = 200  # in the table of the data, the list of importances and the form
MOST_SHAPES = 100  # drawn
MOST_RULES = 50  # listed
MOST_ROWS = 1000  # whose Shapley values are averaged
MOST_OPTIONS = 100  # levels in a list to choose from; more are typed
MOST_LETTERS = 300  # of a parameter
MOST_LITERAL = 100_000  # letters of constraints that are read


def used_features(ensemble: Ensemble) -> np.ndarray:
    """Features with a shape function, and features that trees ask for."""
    return np.unique(np.concatenate([ensemble.feature, ensemble.trees.feature[~ensemble.trees.is_leaf]]))


def digest(ensemble: Ensemble) -> str:
    try:
        return digest_of(ModelRecord.of(ensemble))
    except ModelFileError as error:
        return f"not known: {error}"


def model_section(ensemble: Ensemble) -> str:
    classes = [] if ensemble.classes is None else [shortened(str(label), 40) for label in ensemble.classes.tolist()]
    task = (
        f"classification: {', '.join(classes[:20])}{', ...' if len(classes) > 20 else ''}" if classes else "regression"
    )
    used = used_features(ensemble).size
    rules = f" and {ensemble.n_rules:,} rules of {ensemble.trees.n_trees:,} trees" if ensemble.n_rules else ""
    rows = [
        ("task", task),
        ("model", f"{len(ensemble.feature):,} steps{rules}, of {used:,} of {ensemble.n_features:,} features"),
        ("score", f"fitted to the {ensemble.loss} loss; {LINKS[ensemble.link].words}"),
        ("SHA-256 of its file", digest(ensemble)),
        ("made with", f"quadboost {ensemble.info.get('quadboost', 'of an unknown version')}"),
        ("report by", f"quadboost {__version__}"),
    ]
    return table(rows)


def training_section(ensemble: Ensemble) -> str:
    """What the fit left in `info`. A file may hold anything there."""
    info = {key: value for key, value in ensemble.info.items() if key not in ("feature_importances", "outputs")}
    groups = {key: info.pop(key) for key in list(info) if isinstance(info[key], dict)}
    parts = []
    if info:
        parts.append(table([(_words(key), _plain(value)) for key, value in info.items()]))
    if isinstance(chosen := groups.pop("cross_validation", None), dict):
        parts.append("<h3>Chosen by cross-validation</h3>")
        parts.append(table([(_words(key), _plain(value)) for key, value in chosen.items()]))
    for name, group in groups.items():
        rows = [(_words(key), _plain(value)) for key, value in group.items()]
        parts.append(f"<details><summary>{text_of(_words(name))}</summary>{table(rows)}</details>")
    return "".join(parts) or "<p>The model does not say how it was trained.</p>"


def _words(key: object) -> str:
    return shortened(str(key).replace("_", " "), 60)


def _plain(value: Any) -> str:
    if isinstance(value, bool | None):
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return shortened(", ".join(_plain(entry) for entry in value[:50]), MOST_LETTERS)
    if isinstance(value, dict):
        return shortened(", ".join(f"{_words(key)} {_plain(entry)}" for key, entry in value.items()), MOST_LETTERS)
    return shortened(str(value), MOST_LETTERS)


def data_section(ensemble: Ensemble, matrix: np.ndarray) -> str:
    """What is in each column of the rows of the report, in a table."""
    if not len(matrix):
        return "<p>There are no rows.</p>"
    used, drawn = set(used_features(ensemble).tolist()), set(ensemble.feature.tolist())
    shown = sorted(range(min(ensemble.n_features, matrix.shape[1])), key=lambda feature: feature not in used)
    rows = []
    for feature in sorted(shown[:MOST_FEATURES]):
        column = matrix[:, feature]
        known = column[~np.isnan(column)]
        missing = 100 * (1 - len(known) / len(column))
        kind, typical, counts = _column(ensemble, feature, known)
        name = text_of(shortened(feature_name(ensemble, feature), 60))
        name = f'<a href="#shape-{feature}">{name}</a>' if feature in drawn else name
        unused = "" if feature in used else ' <span class="faint">not used</span>'
        rows.append(
            f"<tr><th scope=row>{name}{unused}</th><td>{kind}</td><td class=number>{missing:.1f} %</td>"
            f"<td>{text_of(typical)}</td><td>{spark_svg(counts, 'distribution')}</td></tr>"
        )
    more = ensemble.n_features - len(rows)
    note = f"<p>{more:,} more features are not listed.</p>" if more > 0 else ""
    return (
        "<div class=wide><table class=data><thead><tr><th>feature<th>kind<th>missing"
        "<th>median (range), or most frequent"
        f"<th>distribution (root of the count)</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _column(ensemble: Ensemble, feature: int, known: np.ndarray) -> tuple[str, str, np.ndarray]:
    """Kind, typical value, and counts of a column without missing values."""
    levels = ensemble.categories.get(feature)
    if levels is not None:
        of_level = np.bincount(known[known >= 0].astype(np.intp), minlength=len(levels))
        typical = shortened(level_text(levels[int(of_level.argmax())]), 40) if of_level.any() else "-"
        return f"category, {len(levels):,} levels", typical, np.sort(of_level)[::-1][:30]
    if not len(known):
        return "number", "-", np.zeros(1)
    middle = float(np.quantile(known, 0.5, method="nearest"))  # one of the values: they may be infinite
    low, high = float(known.min()), float(known.max())
    ends = np.quantile(known, [0.005, 0.995], method="nearest")
    with np.errstate(over="ignore", invalid="ignore"):
        width = ends[1] - ends[0]
    counts: np.ndarray = np.zeros(1)
    if np.isfinite(width):  # not by np.histogram, which refuses neighbours and large constants
        share = (np.clip(known, *ends) - ends[0]) / width if width > 0 else np.full(len(known), 0.5)
        counts = np.bincount(np.minimum(30 * share, 29).astype(np.intp), minlength=30)
    middle_text, low_text, high_text = (number_text(number, 4) for number in (middle, low, high))
    return "number", f"{middle_text} ({low_text} to {high_text})", counts


def importance_section(ensemble: Ensemble, matrix: np.ndarray) -> str:
    """Bars; on the training rows where the model has counted them, else of the range."""
    kind = "mean_abs" if len(ensemble.bin_mass) else "range"
    some = matrix[:: max(1, len(matrix) // MOST_ROWS)] if ensemble.n_rules else matrix[:0]
    found = importances_by_feature(ensemble, some) if len(some) else importances(ensemble, kind)
    if not found:
        return "<p>No feature matters: the model says the same of every row.</p>"
    shown = found[:40]
    picture = bars_svg([term.term for term in shown], [term.importance for term in shown], "importance of each feature")
    what = (
        "Mean absolute contribution over the training rows"
        if kind == "mean_abs"
        else "Largest less smallest value: the model has no counts of its training rows"
    )
    if len(some):
        what = f"Mean absolute Shapley value over {len(some):,} of the rows, rules split between their features"
    unit = score_unit(ensemble) if ensemble.n_outputs == 1 else "score, all outputs together"
    rest = f" {len(found) - len(shown):,} more are not shown." if len(found) > len(shown) else ""
    words = text_of(f"{what}, in units of the score ({unit}).{rest}")
    return f"<figure><div class=wide>{picture}</div><figcaption>{words}</figcaption></figure>"


def shapes_section(ensemble: Ensemble) -> str:
    """Every shape function, the most important first."""
    bands = len(ensemble.bin_error) > 0
    shapes = {feature_name(ensemble, shape.feature): shape for shape in ensemble.shape_functions(bands=bands)}
    kind = "mean_abs" if len(ensemble.bin_mass) else "range"
    order = [shapes[term.term] for term in importances(ensemble, kind) if term.term in shapes]
    several = ensemble.n_outputs > 1
    rules = ", of the rules below" if ensemble.n_rules else ""
    unit = "" if several else f" ({score_unit(ensemble)})"
    words = [f"The score{unit} is the sum of these pictures{rules} and a constant."]
    if len(ensemble.bin_mass):
        words.append("Zero is the average training row; the grey strip shows where the training rows are.")
    else:
        words.append("The model has no counts of its training rows: the pictures are as they are, without their mean.")
    words.append(
        "Bands: one standard error to either side, by the jackknife over the folds of the cross-validation."
        if bands
        else "There are no bands: they come with cross-validation."
    )
    words.append("A picture shows what the model does with a feature, not what would happen if somebody changed it.")
    cards = []
    for shape in order[:MOST_SHAPES]:
        name = feature_name(ensemble, shape.feature)
        outputs = [_strongest_output(shape.values)] if several else [0]
        pictures = ""
        for output in outputs:
            picture = picture_of(ensemble, shape, output)
            pictures += shape_svg(picture, f"what {name} adds to the score")
            if several:
                pictures += f"<p class=faint>{text_of(score_unit(ensemble, output))}</p>"
            if picture.n_left_out:
                pictures += f"<p class=faint>{picture.n_left_out:,} rarer levels are in the downloads.</p>"
        cards.append(f'<figure id="shape-{shape.feature}"><h3>{text_of(shortened(name, 60))}</h3>{pictures}</figure>')
    if several:
        words.append("Of several scores, the one that a feature moves most is drawn.")
    more = len(order) - MOST_SHAPES
    if more > 0:
        words.append(f"{more:,} less important features are not drawn.")
    return f'<p>{text_of(" ".join(words))}</p><div class="cards">{"".join(cards)}</div>'


def constraints_section(ensemble: Ensemble) -> str:
    """The constraints of the fit; of a model without rules, also which features it rises or falls with."""
    asked = _asked_for(ensemble)
    words = "".join(f"<p>Asked for: {text_of(sentence)}.</p>" for sentence in asked) or "<p>None were asked for.</p>"
    if ensemble.n_rules:
        return words
    found: dict[str, list[str]] = {"rises": [], "falls": []}
    for shape in ensemble.shape_functions():
        steps = np.diff(shape.values, axis=0)
        if shape.levels is None and len(steps):
            for way, sign in (("rises", 1), ("falls", -1)):
                if (sign * steps >= 0).all():
                    found[way].append(shortened(feature_name(ensemble, shape.feature), 40))
    for way, names in found.items():
        if names:
            listed = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
            words += (
                f"<p>The score never {'falls' if way == 'rises' else 'rises'} as these grow: {text_of(listed)}.</p>"
            )
    return words


def _asked_for(ensemble: Ensemble) -> list[str]:
    """The constraints in words. A file tells them as text, or as a list by feature; it may hold anything."""
    parameters = ensemble.info.get("parameters")
    found = []
    for key, name in (("monotonic_cst", "monotone in"), ("interaction_cst", "rules may only join features within")):
        asked = parameters.get(key) if isinstance(parameters, dict) else None
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            asked = literal_eval(asked) if isinstance(asked, str) and len(asked) < MOST_LITERAL else asked
        if isinstance(asked, list) and key == "monotonic_cst" and len(asked) == ensemble.n_features:
            asked = {feature_name(ensemble, feature): sign for feature, sign in enumerate(asked)}
        if isinstance(asked, dict):
            for way, sign in (("never falls", 1), ("never rises", -1)):
                if names := [str(name) for name, its in asked.items() if its == sign]:
                    found.append(shortened(f"the score {way} as these grow: {', '.join(names)}", MOST_LETTERS))
        elif asked:
            found.append(f"{name} {_plain(asked)}")
    return found


def rules_section(ensemble: Ensemble) -> str:
    """The most important rules, with what each adds where it holds."""
    rules = list(ensemble.rules())
    if not rules:
        return "<p>The model has no rules: each feature adds its own part, whatever the others are.</p>"
    most = max(float(np.abs(rule.weight).max()) for rule in rules) or 1.0
    rows = []
    for rule in rules[:MOST_RULES]:
        weight = np.atleast_1d(rule.weight)
        output = int(np.abs(weight).argmax())
        value = 2.0 * float(weight[output])
        wide = 120 * abs(value) / (2 * most)
        bar = svg(124, 12, [rect(2, 1, wide, 10, "up" if value > 0 else "down")], f"{value:+.3g}")
        of = f" <span class=faint>{text_of(score_unit(ensemble, output))}</span>" if len(weight) > 1 else ""
        share = "unknown" if rule.support != rule.support else f"{100 * rule.support:.1f} %"
        words = " <b>and</b> ".join(text_of(shortened(condition.words, 120)) for condition in rule.conditions)
        cells = f"<td class=number>{value:+.3g}{of}</td><td>{bar}</td><td class=number>{share}</td><td>{words}</td>"
        rows.append(f"<tr>{cells}</tr>")
    more = len(rules) - len(rows)
    note = f"<p>{more:,} less important rules are not listed.</p>" if more > 0 else ""
    return (
        f"<p>{len(rules):,} rules. What a rule adds where it holds, compared with where it does not, and the share of "
        "the training rows for which it holds.</p><div class=wide><table class=data><thead><tr><th>adds<th>"
        f"<th>holds for<th>where</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def _strongest_output(values: np.ndarray) -> int:
    return int(np.ptp(values, axis=0).argmax())


def form_section(ensemble: Ensemble, matrix: np.ndarray, form: dict[str, Any]) -> str:
    """A field for each feature in use; the script fills in the rest."""
    if not form["features"]:
        return "<p>There is nothing to try: the model says the same of every row.</p>"
    fields = []
    for feature in form["features"]:
        name = text_of(shortened(feature_name(ensemble, feature), 40))
        levels = ensemble.categories.get(feature)
        if levels is not None and form["options"][str(feature)]:
            n = 0
            options = []
            for level in levels:
                options += [
                    f"<option value={n + i}>{text_of(shortened(str(v), 60))}</option>" for i, v in enumerate(level)
                ]
                n += len(level)
            control = (
                f'<select id="f{feature}" data-feature="{feature}"><option value="">missing</option>{"".join(options)}'
                '<option value="-1">never seen</option></select>'
            )
        else:
            hint = "" if levels is None else ' placeholder="missing"'
            mode = ' inputmode="decimal" placeholder="missing"' if levels is None else hint
            control = (
                f'<input type=text id="f{feature}" data-feature="{feature}" autocomplete=off spellcheck=false{mode}>'
            )
        fields.append(f'<div><label for="f{feature}">{name}</label>{control}</div>')
    buttons = "".join(f'<button type=button data-row="{i}">row {i + 1}</button>' for i in range(len(form["rows"])))
    return (
        "<noscript><p>This form needs JavaScript; all else on this page does not.</p></noscript>"
        f'<form id="form" class="script" autocomplete=off><div class=buttons>{buttons}</div>'
        f"<div class=fields>{''.join(fields)}</div></form>"
        '<div class="script" aria-live="polite"><p class=outcome id=outcome></p><p id=problem role=alert></p></div>'
        '<div id="waterfall" class="script"></div><p id=unit class="script faint"></p>'
        '<div class="script"><h3>What would have to change</h3><p class=faint>One feature at a time, all others as '
        "they are. The model's answer, not advice: a change need not be possible, nor cause anything.</p>"
        "<table class=figures><tbody id=changes></tbody></table></div>"
    )


def form_data(ensemble: Ensemble, matrix: np.ndarray, means: list[list[float]], base: list[float]) -> dict[str, Any]:
    """What the script of the page needs beside the model: some rows, and the mean of every term."""
    used = used_features(ensemble).tolist()[:MOST_FEATURES]
    n_values = {f: sum(map(len, levels)) for f, levels in ensemble.categories.items()}
    rows = []
    for row in _some_rows(matrix):
        rows.append([_field(ensemble, feature, float(row[feature])) for feature in range(ensemble.n_features)])
    return {
        "features": used,
        "rows": rows,
        "means": means,
        "base": base,
        "options": {str(f): n_values[f] <= MOST_OPTIONS for f in used if f in n_values},
        "units": [score_unit(ensemble, output) for output in range(ensemble.n_outputs)],
        "classes": None if ensemble.classes is None else [shortened(str(c), 40) for c in ensemble.classes.tolist()],
        "names": {str(feature): shortened(feature_name(ensemble, feature), 40) for feature in used},
    }


def _some_rows(matrix: np.ndarray, n: int = 6) -> np.ndarray:
    """A few rows, spread over all."""
    return matrix[np.unique(np.linspace(0, len(matrix) - 1, n).round().astype(int))] if len(matrix) else matrix


def _field(ensemble: Ensemble, feature: int, value: float) -> str | int:
    """What stands in the field: text that JavaScript reads as the same number, or the place of a value of a level."""
    if value != value:
        return ""
    levels = ensemble.categories.get(feature)
    if levels is None:
        return repr(value).removesuffix(".0")
    if not 0 <= value < len(levels):
        return -1
    return sum(map(len, levels[: int(value)]))


def figures_head(figures: Figures) -> str:
    cells = "".join(f"<div><b>{text_of(value)}</b><span>{text_of(name)}</span></div>" for value, name in figures)
    return f"<div class=head>{cells}</div>"
