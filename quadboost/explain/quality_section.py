"""The section of a report that says how good the model is on rows that it has not seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model.ensemble import Ensemble
from .quality import Calibration, calibration, label_numbers, log_loss, r2, roc, wilson
from .svg import histogram_svg, scatter_svg, square_svg, text_of
from .words import shortened

MOST_POINTS = 400  # of a curve
MOST_DOTS = 800  # of a cloud
MOST_CLASSES = 12  # in a table of classes
MOST_TARGETS = 4

Figures = list[tuple[str, str]]  # value and name, for the head of the page


def quality_section(ensemble: Ensemble, scores: np.ndarray, y: Any) -> tuple[str, Figures]:
    """The section, and its main figures."""
    if not len(scores):
        return "<p>There are no rows to judge by.</p>", []
    if ensemble.classes is None:
        return _targets(ensemble, scores, y)
    label = label_numbers(y, ensemble.classes, len(scores))
    probabilities = ensemble.probabilities_of(scores)
    if len(ensemble.classes) == 2:
        return _two_classes(ensemble, np.ravel(scores), probabilities, label)
    return _classes(ensemble, scores, probabilities, label)


def card(picture: str, words: str) -> str:
    return f"<figure>{picture}<figcaption>{text_of(words)}</figcaption></figure>"


def _interval(share: float, count: int) -> str:
    low, high = wilson(np.array(share), np.array(float(count)))
    return f"{100 * share:.2f} % ({100 * float(low):.1f} to {100 * float(high):.1f})"


def _two_classes(
    ensemble: Ensemble, scores: np.ndarray, probabilities: np.ndarray, label: np.ndarray
) -> tuple[str, Figures]:
    assert ensemble.classes is not None
    first, second = (shortened(str(name), 24) for name in ensemble.classes.tolist())
    is_second = label == 1
    accuracy = float(((scores > 0) == is_second).mean())
    loss, brier = log_loss(probabilities, label), float(((probabilities[:, 1] - is_second) ** 2).mean())
    figures = [(f"{100 * accuracy:.1f} %", "accuracy"), (f"{loss:.4f}", "log-loss")]
    rows: list[tuple[str, str]] = [("accuracy, with 95 % interval", _interval(accuracy, len(label)))]
    cards = []
    found = roc(scores, is_second)
    if found is None:
        only = ensemble.classes.tolist()[int(label[0])]
        note = f"<p>All rows are {text_of(only)}: nothing can be said of how well the classes are told apart.</p>"
    else:
        note = ""
        figures.insert(0, (f"{found.area:.4f}", "area under the ROC curve"))
        rows += [
            ("area under the ROC curve", f"{found.area:.4f}"),
            ("average precision", f"{found.average_precision:.4f}"),
        ]
        keep = np.unique(np.linspace(0, len(found.threshold) - 1, MOST_POINTS).round().astype(int))
        cards += [
            card(
                square_svg(
                    np.append(0.0, found.false_rate[keep]), np.append(0.0, found.true_rate[keep]), "ROC curve",
                    "false alarms", "found", diagonal="up", note=f"area {found.area:.4f}",
                ),
                f"ROC curve: share of the {second} rows found, for each share of false alarms among the {first} rows.",
            ),
            card(
                square_svg(
                    found.true_rate[keep], found.precision[keep], "precision and recall", "found", "precision",
                    note=f"mean {found.average_precision:.4f}",
                ),
                f"Precision and recall: share of {second} among the rows that are called so, for each share found.",
            ),
        ]  # fmt: skip
    rows += [("log-loss", f"{loss:.4f}"), ("Brier score", f"{brier:.4f}")]
    cards.append(_calibration_card(calibration(probabilities[:, 1], is_second), second))
    groups = [(first, "down", scores[~is_second]), (second, "up", scores[is_second])]
    cards.append(
        card(
            histogram_svg(groups, "scores by class", "score", 0.0),
            f"Scores of {first} (blue) and of {second} (orange); right of the line a row is called {second}.",
        )
    )
    confusion = _confusion(scores, is_second, probabilities[:, 1], first, second)
    cards += [f"<figure>{table(rows)}</figure>", f"<figure>{confusion}</figure>"]
    return f'{note}<div class="cards">{"".join(cards)}</div>', figures


def _calibration_card(found: Calibration, name: str) -> str:
    picture = square_svg(
        found.probability, found.share, "calibration", "predicted probability", "observed share", diagonal="up",
        intervals=(found.low, found.high),
    )  # fmt: skip
    return card(picture, f"Calibration: of rows with like probabilities, which share is {name}; with 95 % intervals.")


def _confusion(scores: np.ndarray, is_second: np.ndarray, p: np.ndarray, first: str, second: str) -> str:
    """A table at the border of the labels; a slider moves it, by counts at up to a few hundred probabilities."""
    at = np.unique(np.append(np.quantile(p, np.linspace(0, 1, 201)), 0.5))
    low, high = np.sort(p[~is_second]), np.sort(p[is_second])
    false = len(low) - np.searchsorted(low, at, side="right")
    found = len(high) - np.searchsorted(high, at, side="right")
    half = int(np.searchsorted(at, 0.5))
    false[half], found[half] = int(((scores > 0) & ~is_second).sum()), int(((scores > 0) & is_second).sum())
    data = {"at": [float(f"{value:.6g}") for value in at], "false": false.tolist(), "found": found.tolist()}
    data |= {"first": len(low), "second": len(high)}

    def cell(count: int, total: int, name: str, kind: str) -> str:
        share = f"{100 * count / total:.1f} %" if total else "-"
        return f'<td class="{kind}"><b id="{name}">{count:,}</b><br><span id="{name}-share">{share}</span></td>'

    f, t = int(false[half]), int(found[half])
    body = (
        f"<tr><th scope=row>is {text_of(first)}</th>{cell(len(low) - f, len(low), 'tn', 'right')}"
        f"{cell(f, len(low), 'fp', 'wrong')}</tr>"
        f"<tr><th scope=row>is {text_of(second)}</th>{cell(len(high) - t, len(high), 'fn', 'wrong')}"
        f"{cell(t, len(high), 'tp', 'right')}</tr>"
    )
    return (
        f'<table class="confusion" id="confusion" data-counts="{text_of(json.dumps(data))}"><caption>Called '
        f"{text_of(second)} above a probability of <output id=border>0.5</output></caption>"
        f"<thead><tr><td></td><th scope=col>called {text_of(first)}</th>"
        f"<th scope=col>called {text_of(second)}</th></tr>"
        f"</thead><tbody>{body}</tbody></table>"
        f'<p class="script"><label for=slide>Move the border</label> <input type=range id=slide min=0 '
        f"max={len(at) - 1} value={half}></p>"
    )


def _classes(
    ensemble: Ensemble, scores: np.ndarray, probabilities: np.ndarray, label: np.ndarray
) -> tuple[str, Figures]:
    assert ensemble.classes is not None
    called = scores.argmax(axis=1)
    accuracy, loss = float((called == label).mean()), log_loss(probabilities, label)
    names = [shortened(str(name), 24) for name in ensemble.classes.tolist()]
    top = probabilities[np.arange(len(called)), called]
    cards = [_calibration_card(calibration(top, called == label), "called rightly")]
    rows = [("accuracy, with 95 % interval", _interval(accuracy, len(label))), ("log-loss", f"{loss:.4f}")]
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (label, called), 1)
    figures = [(f"{100 * accuracy:.1f} %", "accuracy"), (f"{loss:.4f}", "log-loss")]
    cards.append(f"<figure>{table(rows)}</figure>")
    return f'<div class="cards">{"".join(cards)}</div>{_table_of_classes(names, counts)}', figures


def _table_of_classes(names: Sequence[str], counts: np.ndarray) -> str:
    if len(names) > MOST_CLASSES:
        wrong = counts - np.diag(np.diag(counts))
        order = np.argsort(-wrong.ravel(), kind="stable")[:MOST_CLASSES]
        pairs = [(int(i) // len(names), int(i) % len(names)) for i in order if wrong.ravel()[i] > 0]
        rows = [(f"{names[i]} called {names[j]}", f"{counts[i, j]:,} of {counts[i].sum():,}") for i, j in pairs]
        return "<h3>Most frequent mistakes</h3>" + table(rows)
    head = "".join(f"<th scope=col>called {text_of(name)}</th>" for name in names)
    body = ""
    for i, name in enumerate(names):
        cells = "".join(
            f'<td class="{"right" if i == j else "wrong" if count else ""}">{count:,}</td>'
            for j, count in enumerate(counts[i].tolist())
        )
        body += f"<tr><th scope=row>is {text_of(name)}</th>{cells}</tr>"
    whole = f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table class="confusion">{whole}</table></div>'


def _targets(ensemble: Ensemble, scores: np.ndarray, y: Any) -> tuple[str, Figures]:
    predicted = ensemble.predictions_of(scores).reshape(len(scores), -1)
    try:
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold a number for each row: {error}") from None
    if targets.shape != predicted.shape:
        raise ValueError(
            f"y has {len(targets):,} rows of {targets.shape[1]} targets; give {len(predicted):,} rows of "
            f"{predicted.shape[1]}, as the model predicts them"
        )
    if not np.isfinite(targets).all():
        raise ValueError("y holds a target that is not finite; leave those rows out")
    parts, figures = [], Figures()
    for output in range(min(targets.shape[1], MOST_TARGETS)):
        true, found = targets[:, output], predicted[:, output]
        if targets.shape[1] > 1:
            parts.append(f"<h3>Target {output}</h3>")
        off = true - found
        some = np.random.default_rng(0).permutation(len(true))[:MOST_DOTS]
        low, high = np.quantile(off, [0.05, 0.95])
        cards = [
            card(
                scatter_svg(found[some], true[some], "targets against predictions", "predicted", "target"),
                f"Targets against predictions; {len(some):,} rows.",
            ),
            card(
                scatter_svg(
                    found[some], off[some], "residuals", "predicted", "target less prediction", line_at_zero=True
                ),
                "What is left: no trend should be seen here.",
            ),
            card(
                histogram_svg([("residuals", "down", off)], "residuals", "target less prediction", 0.0),
                f"90 % of the rows lie within {low:.4g} and +{high:.4g} of their prediction."
                if low < 0 < high
                else f"90 % of the residuals lie between {low:.4g} and {high:.4g}.",
            ),
        ]
        score, rmse, mae = r2(true, found), float(np.sqrt((off * off).mean())), float(np.abs(off).mean())
        rows = [("r2", _or_unknown(score)), ("root of the mean squared error", f"{rmse:.5g}")]
        rows += [("mean absolute error", f"{mae:.5g}"), ("90 % of residuals", f"{low:.4g} to {high:.4g}")]
        cards.append(f"<figure>{table(rows)}</figure>")
        parts.append(f'<div class="cards">{"".join(cards)}</div>')
        if not figures:
            figures = [(_or_unknown(score), "r2"), (f"{mae:.4g}", "mean absolute error")]
    if targets.shape[1] > MOST_TARGETS:
        parts.append(f"<p>{targets.shape[1] - MOST_TARGETS} more targets are not shown.</p>")
    return "".join(parts), figures


def _or_unknown(value: float) -> str:
    return f"{value:.4f}" if value == value else "not defined: all targets are the same"


def table(rows: Sequence[tuple[object, object]]) -> str:
    """Names and values."""
    body = "".join(f"<tr><th scope=row>{text_of(name)}</th><td>{text_of(value)}</td></tr>" for name, value in rows)
    return f'<table class="figures"><tbody>{body}</tbody></table>'
