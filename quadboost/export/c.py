"""A model as one C99 file without dependencies: tables of doubles in hexadecimal, and a page of code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..common.checks import text
from .additive import Additive, Steps, Tree, additive, check_labels, check_text

HEAD = r"""/* A QuadBoost model, in C99. Compile with an ordinary compiler, not with -ffast-math; link with -lm.
 *
 *   void NAME_score(const double *numbers, const char *const *texts, double *scores);
 *   void NAME_contributions(const double *numbers, const char *const *texts, double *terms);
 *   void NAME_predict(const double *scores, double *predictions);
 *   int NAME_label(const double *scores);
 *
 * A row is numbers[NAME_FEATURES], NaN where missing (true is 1, false 0). NAME_has_text says which features hold text:
 * theirs is texts[NAME_FEATURES], UTF-8, NULL where missing. If none does, texts may be NULL. NAME_score writes
 * scores[NAME_OUTPUTS]. NAME_contributions writes what each of NAME_TERMS terms adds to NAME_intercept to make them,
 * term after term, names in NAME_term_names. NAME_predict writes the probabilities of NAME_CLASSES classes, or the
 * targets of a regression; NAME_label returns the place of the label in NAME_classes. All of it is reentrant.
 *
 * Self-test: cc -DNAME_SELF_TEST THIS_FILE -lm && ./a.out
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math would change the scores; compile without it"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 2
#error "sums would not be rounded to double; compile with -msse2 -mfpmath=sse"
#endif

"""

CODE = r"""
/* The number of a level: -1 if training has not seen it, NaN if levels have an order and it has no place there. Levels
 * are sorted, numbers before text. */
static double NAME_level(int feature, double number, const char *text)
{
    int low = NAME_level_start[feature], high = NAME_level_start[feature + 1];
    while (low < high) {
        int middle = low + (high - low) / 2, order;
        if (text == NULL)
            order = NAME_level_text[middle] != NULL || number < NAME_level_number[middle] ? -1
                    : number > NAME_level_number[middle];
        else
            order = NAME_level_text[middle] == NULL ? 1 : strcmp(text, NAME_level_text[middle]);
        if (order == 0)
            return NAME_level_code[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NAME_is_category[feature] == 2 ? NAN : -1.0;
}

/* The row as numbers alone. */
static const double *NAME_numbers(const double *numbers, const char *const *texts, double *room)
{
    if (!NAME_HAS_LEVELS)
        return numbers;
    for (int feature = 0; feature < NAME_FEATURES; feature++) {
        const char *text = NAME_has_text[feature] && texts != NULL ? texts[feature] : NULL;
        double number = NAME_has_text[feature] == 1 ? NAN : numbers[feature];
        if (!NAME_is_category[feature] || (text == NULL && isnan(number)))
            room[feature] = number;
        else
            room[feature] = NAME_level(feature, number, text);
    }
    return room;
}

/* Where the values of a term are. */
static const double *NAME_term(int term, const double *x)
{
    if (term < NAME_STEPS) {
        int start = NAME_cut_start[term], n = NAME_cut_start[term + 1] - start, bin = 0;
        const double *cuts = NAME_cuts + start;
        double value = x[NAME_step_feature[term]];
        if (isnan(value))
            bin = n + 1;
        else
            for (int left = n; left > 0;) { /* without a branch that could be foretold wrongly */
                int half = (left + 1) / 2;
                bin += value > cuts[bin + half - 1] ? half : 0;
                left -= half;
            }
        return NAME_values + (size_t)(start + 2 * term + bin) * NAME_OUTPUTS;
    }
    int node = NAME_root[term - NAME_STEPS];
    while (NAME_node_feature[node] >= 0) {
        double value = x[NAME_node_feature[node]], threshold = NAME_node_threshold[node];
        int kind = NAME_node_kind[node]; /* 1: missing goes right, 2: the threshold is a level */
        int right = isnan(value) ? kind & 1 : kind & 2 ? value == threshold : value > threshold;
        node = right ? NAME_node_right[node] : node + 1;
    }
    return NAME_leaf_values + (size_t)node * NAME_OUTPUTS;
}

void NAME_score(const double *numbers, const char *const *texts, double *scores)
{
    double room[NAME_FEATURES];
    const double *x = NAME_numbers(numbers, texts, room);
    for (int k = 0; k < NAME_OUTPUTS; k++)
        scores[k] = NAME_intercept[k];
    for (int term = 0; term < NAME_TERMS; term++) {
        const double *values = NAME_term(term, x);
        for (int k = 0; k < NAME_OUTPUTS; k++)
            scores[k] += values[k];
    }
}

void NAME_contributions(const double *numbers, const char *const *texts, double *terms)
{
    double room[NAME_FEATURES];
    const double *x = NAME_numbers(numbers, texts, room);
    for (int term = 0; term < NAME_TERMS; term++)
        memcpy(terms + (size_t)term * NAME_OUTPUTS, NAME_term(term, x), sizeof(double) * NAME_OUTPUTS);
}
"""

# A multiple of 2^-44, which the last bit of 256 is: as quadboost/model/links.py rounds.
ROUNDING = r"""
/* To a multiple of 2^-44, which the last bit of 256 is. */
static double NAME_rounded(double score)
{
    return fabs(score) < 256.0 ? copysign(fabs(score) + 256.0 - 256.0, score) : score;
}

static double NAME_exp(double score)
{
    return exp(fmin(fmax(score, -708.0), 708.0));
}
"""

LABEL = r"""
int NAME_label(const double *scores)
{
    int best = 0;
    if (NAME_OUTPUTS == 1)
        return scores[0] > 0.0;
    for (int k = 1; k < NAME_OUTPUTS; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}
"""

SUM = r"""
/* Exact but for the last bit or two, however many there are. */
static double NAME_sum(const double *values)
{
    double total = 0.0, lost = 0.0;
    for (int k = 0; k < NAME_OUTPUTS; k++) {
        double next = total + values[k];
        lost += total >= values[k] ? total - next + values[k] : values[k] - next + total;
        total = next;
    }
    return total + lost;
}
"""

PREDICT = {
    "identity": r"""
void NAME_predict(const double *scores, double *predictions)
{
    memcpy(predictions, scores, sizeof(double) * NAME_OUTPUTS);
}
""",
    "log": r"""
void NAME_predict(const double *scores, double *predictions)
{
    for (int k = 0; k < NAME_OUTPUTS; k++)
        predictions[k] = NAME_exp(NAME_rounded(scores[k]));
}
""",
    "logit": r"""
void NAME_predict(const double *scores, double *predictions)
{
    double odds = NAME_exp(-NAME_rounded(fabs(scores[0]))), less = odds / (1.0 + odds);
    predictions[0] = scores[0] > 0.0 ? less : 1.0 - less;
    predictions[1] = scores[0] > 0.0 ? 1.0 - less : less;
}
""",
    "clipped line": r"""
void NAME_predict(const double *scores, double *predictions)
{
    predictions[1] = fmin(fmax((1.0 + scores[0]) / 2.0, 0.0), 1.0);
    predictions[0] = 1.0 - predictions[1];
}
""",
    "softmax": SUM
    + r"""
void NAME_predict(const double *scores, double *predictions)
{
    double largest = NAME_rounded(scores[NAME_label(scores)]), total;
    for (int k = 0; k < NAME_OUTPUTS; k++)
        predictions[k] = NAME_exp(NAME_rounded(scores[k]) - largest);
    total = NAME_sum(predictions);
    for (int k = 0; k < NAME_OUTPUTS; k++)
        predictions[k] /= total;
}
""",
    "clipped": SUM
    + r"""
void NAME_predict(const double *scores, double *predictions)
{
    double total;
    for (int k = 0; k < NAME_OUTPUTS; k++)
        predictions[k] = fmax(1.0 + scores[k], 0.0);
    total = NAME_sum(predictions);
    for (int k = 0; k < NAME_OUTPUTS; k++)
        predictions[k] = total > 0.0 ? predictions[k] / total : k == NAME_label(scores);
}
""",
}

SELF_TEST = r"""
#ifdef NAME_SELF_TEST
#include <stdio.h>

int main(void)
{
    static const double numbers[][NAME_FEATURES] = {@numbers@};
    static const char *const texts[][NAME_FEATURES] = {@texts@};
    static const double expected[][NAME_OUTPUTS] = {@scores@};
    int wrong = 0, n = (int)(sizeof numbers / sizeof *numbers);
    for (int row = 0; row < n; row++) {
        double scores[NAME_OUTPUTS];
        NAME_score(numbers[row], texts[row], scores);
        for (int k = 0; k < NAME_OUTPUTS; k++)
            if (memcmp(&scores[k], &expected[row][k], sizeof(double)) != 0) {
                printf("row %d, output %d: expected %a, found %a\n", row, k, expected[row][k], scores[k]);
                wrong++;
            }
    }
    printf("%d rows, %d scores differ\n", n, wrong);
    return wrong != 0;
}
#endif
"""


def to_c(model: Any, *, name: str = "quadboost_model") -> str:
    """Write a model as a C99 file; its first lines say how it is used.

    Parameters
    ----------
    model : Ensemble, or a fitted estimator
    name : str
        What all names in the file begin with.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text("name", name)):
        raise ValueError(f"the name is {name!r:.60}, which C cannot have; use letters, digits and _")
    form = additive(model)
    link = "clipped line" if form.link == "clipped" and form.n_outputs == 1 else form.link
    rounding = ROUNDING if link in ("log", "logit", "softmax") else ""
    label = LABEL if form.classes else ""
    code = HEAD + _tables(form) + CODE + label + rounding + PREDICT[link] + _self_test(form)
    return code.replace("NAME", name)


def _tables(model: Additive) -> str:
    steps = [term for term in model.terms if isinstance(term, Steps)]
    trees = [term for term in model.terms if isinstance(term, Tree)]
    sizes = {
        "FEATURES": len(model.names),
        "OUTPUTS": model.n_outputs,
        "CLASSES": len(model.classes),
        "TERMS": len(model.terms),
        "STEPS": len(steps),
        "HAS_LEVELS": int(bool(model.levels)),
    }
    values = [row for term in steps for row in [*term.values.tolist(), term.missing.tolist()]]
    lines = [f"#define NAME_{name} {size}" for name, size in sizes.items()]
    lines += [
        "",
        _array("const char *const NAME_feature_names", map(_text, model.names)),
        _array("const char *const NAME_term_names", [_text(term.name) for term in model.terms]),
        _classes(model.classes),
        _array("const double NAME_intercept", map(float.hex, model.intercept.tolist())),
        *_levels(model),
        _array("static const int NAME_step_feature", [str(term.feature) for term in steps]),
        _array("static const int NAME_cut_start", map(str, _starts(len(term.cuts) for term in steps))),
        _array("static const double NAME_cuts", [cut.hex() for term in steps for cut in term.cuts.tolist()]),
        _array("static const double NAME_values", [value.hex() for row in values for value in row]),
        *_nodes(trees),
    ]
    return "\n".join(line for line in lines if line is not None) + "\n"


def _levels(model: Additive) -> list[str]:
    """Levels sorted as `NAME_level` searches them; what the features hold."""
    features = range(len(model.names))
    rows = [sorted(model.levels.get(feature, {}).items(), key=_place_of) for feature in features]
    check_text([value for row in rows for value, _ in row], "C")
    flat = [(value, level) for row in rows for value, level in row]
    text = {"text": "1", "text and numbers": "2"}
    return [
        "/* 0: no, 1: yes, 2: with an order */",
        _array("static const int NAME_is_category", [str(_category(model, feature)) for feature in features]),
        "/* 0: a number, 1: text, 2: either (a number where the text is NULL) */",
        _array("const int NAME_has_text", [text.get(model.holds[feature], "0") for feature in features]),
        _array("static const int NAME_level_start", map(str, _starts(map(len, rows)))),
        _array(
            "static const char *const NAME_level_text", [_text(v) if isinstance(v, str) else "NULL" for v, _ in flat]
        ),
        _array("static const double NAME_level_number", [v.hex() if isinstance(v, float) else "0.0" for v, _ in flat]),
        _array("static const double NAME_level_code", [f"{level}.0" for _, level in flat]),
    ]


def _category(model: Additive, feature: int) -> int:
    return 0 if feature not in model.levels else 2 if np.isnan(model.unseen(feature)) else 1


def _place_of(item: tuple[str | float, int]) -> tuple[bool, float | bytes]:
    value = item[0]
    return isinstance(value, str), value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _nodes(trees: list[Tree]) -> list[str]:
    start = _starts(len(tree.feature) for tree in trees)
    right, kinds = [], []
    for first, tree in zip(start, trees, strict=False):
        right += (tree.right + first).tolist()
        kinds += (tree.missing_right + 2 * tree.is_level).tolist()
    return [
        _array("static const int NAME_root", map(str, start)),
        _array("static const int NAME_node_feature", [str(f) for tree in trees for f in tree.feature.tolist()]),
        _array("static const double NAME_node_threshold", [t.hex() for tree in trees for t in tree.threshold.tolist()]),
        _array("static const int NAME_node_right", map(str, right)),
        _array("static const unsigned char NAME_node_kind", map(str, kinds)),
        _array(
            "static const double NAME_leaf_values", [v.hex() for tree in trees for v in tree.values.ravel().tolist()]
        ),
    ]


def _classes(classes: list[Any]) -> str:
    check_text(classes, "C")
    if not classes:
        return ""
    if isinstance(classes[0], str):
        return _array("const char *const NAME_classes", map(_text, classes))
    if isinstance(classes[0], float):
        return _array("const double NAME_classes", [label.hex() for label in classes])
    check_labels(classes, "C")
    least = -(2**63)  # which C reads as minus a number that is too large
    return _array(
        "const long long NAME_classes", [f"{least + 1} - 1" if label == least else str(int(label)) for label in classes]
    )


def _self_test(model: Additive) -> str:
    examples = model.examples
    numbers = [[_number(value) for value in row] for row in examples.rows]
    texts = [[_text(value) if isinstance(value, str) else "NULL" for value in row] for row in examples.rows]
    tables = {"numbers": numbers, "texts": texts, "scores": examples.hexadecimal()}
    test = SELF_TEST
    for name, rows in tables.items():
        test = test.replace(f"@{name}@", ",\n".join(f"{{{', '.join(row)}}}" for row in rows))
    return test


def _number(value: Any) -> str:
    return "NAN" if value is None or isinstance(value, str) else float(value).hex()


def _starts(sizes: Iterable[int]) -> list[int]:
    return [0, *np.cumsum(list(sizes), dtype=np.int64).tolist()]


def _array(declaration: str, items: Iterable[str]) -> str:
    """A table; never empty, which C does not allow."""
    items = list(items) or ["0"]
    lines = [", ".join(items[i : i + 8]) for i in range(0, len(items), 8)]
    return f"{declaration}[] = {{\n" + ",\n".join(lines) + "\n};"


def _text(text: str) -> str:
    """A literal of ASCII, in which no character means anything else to any compiler."""
    plain = [
        chr(byte) if (chr(byte).isalnum() and byte < 128) or byte in b" _-." else f"\\{byte:03o}"
        for byte in text.encode()
    ]
    return '"' + "".join(plain).replace("NAME", "\\116AME") + '"'  # NAME stands for the name of the model
