"""A model as plain JavaScript, for node and for a script in a web page."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ..common.checks import text
from .additive import Additive, Steps, Term, additive, check_labels
from .packing import packed

MOST = 2**53  # integers beyond it are not all numbers of JavaScript
# Words of the language; what the program needs, node gives a file, or a page cannot change without harm.
TAKEN = """
    arguments await break case catch class const continue debugger default delete do else enum eval export extends false
    finally for function if implements import in instanceof interface let new null package private protected public
    return static super switch this throw true try typeof var void while with yield
    Array ArrayBuffer BigInt DataView Error Function Infinity JSON Map Math NaN Number Object Set String Symbol
    undefined exports module require __dirname __filename globalThis
    closed document event frames history length location name navigator opener origin parent self status top window
    __proto__ constructor hasOwnProperty toString valueOf
"""
# The whole of the arithmetic. Doubles are added in the order of the terms; every engine gives the same bits.
PROGRAM = r"""// A QuadBoost model. NAME has
//   features                   names of the features, in order
//   classes                    labels, or null for a regression
//   score(row)                 the scores, an array: the log-odds, or one number for each class or target
//   contributions(row)         [{name, values}]: what each term adds to the scores; the rest is NAME.intercept
//   probabilities(row)         of each class, an array; null for a regression
//   predict(row)               the label, or the target (an array of several)
//   selfTest()                 how many example rows have other scores than they should: 0
// A row is an object by names of features, or an array in their order. Missing values are null, undefined or NaN.
var NAME = (function () {
  "use strict";
  const model = MODEL;
  const levels = model.levels.map((pairs) => pairs && new Map(pairs));
  const kinds = model.levels.map((pairs) => pairs && new Set(pairs.map((pair) => typeof pair[0])));
  unpack(bitsOf(model.bits), model.intercept.length);

  // Bits, 13 of them in two characters, the lowest first. The function that is returned takes the next n.
  function bitsOf(text) {
    let word = 0, held = 0, next = 0;
    const digit = () => {
      const code = text.charCodeAt(next++);  // three characters are left out: they mean something in a script
      return code - 33 - (code > 34) - (code > 60) - (code > 92);
    };
    return (n) => {
      for (; held < n; held += 13) word += (digit() + 91 * digit()) * 2 ** held;
      const found = word % 2 ** n;
      word = Math.floor(word / 2 ** n);
      held -= n;
      return found;
    };
  }

  // Steps are cuts, then values, those of a missing one last. A node of a tree is 0 for a leaf, which has values, or 1,
  // the place of its question, and 1 if missing values go right. The next node is to its left, the one after the leaf
  // that ends all of that to its right.
  function unpack(take, outputs) {
    const view = new DataView(new ArrayBuffer(8));
    const widthOf = (n) => { let bits = 0; while (2 ** bits < n) bits++; return bits; };
    const headWidth = widthOf(model.heads.length);
    const double = () => {
      view.setUint32(4, take(32));
      view.setUint32(0, take(20) + model.heads[take(headWidth)] * 2 ** 20);
      return view.getFloat64(0);
    };
    const doubles = (n) => Array.from({ length: n }, double);
    const question = (feature, isLevel, threshold) => ({ feature: feature, isLevel: isLevel, threshold: threshold });
    const questions = model.questions.map((code) => question(code >> 1, (code & 1) > 0, double()));
    for (const term of model.terms) {
      if (term.cuts === undefined) continue;
      term.cuts = doubles(term.cuts);
      term.values = Array.from({ length: term.cuts.length + 2 }, () => doubles(outputs));
      for (const cut of term.cuts) questions.push(question(term.feature, false, cut));
    }
    const leaf = question(-1, false, 0), width = widthOf(questions.length);
    for (const term of model.terms) {
      if (term.cuts) continue;
      Object.assign(term, { features: [], isLevel: [], thresholds: [], missingRight: [], right: [], values: [] });
      const open = [];
      for (let ends = false; !ends; ) {
        const node = term.features.length, asks = take(1) > 0, asked = asks ? questions[take(width)] : leaf;
        term.features.push(asked.feature);
        term.isLevel.push(asked.isLevel);
        term.thresholds.push(asked.threshold);
        term.missingRight.push(asks && take(1) > 0);
        term.values.push(asks ? null : doubles(outputs));
        if (asks) open.push(node);
        else if (open.length) term.right[open.pop()] = node + 1;
        else ends = true;
      }
    }
  }

  function numberOf(feature, row) {
    const name = model.features[feature];
    let value;
    if (Array.isArray(row)) {
      if (row.length !== model.features.length) {
        throw new Error("the row has " + row.length + " values, the model " + model.features.length + " features");
      }
      value = row[feature];
    } else {
      if (!(Object.prototype.hasOwnProperty.call(row, name))) {
        throw new Error("the row has no " + JSON.stringify(name) + "; give null where it is missing");
      }
      value = row[name];
    }
    if (value === null || value === undefined || Number.isNaN(value)) return NaN;
    if (typeof value === "boolean" || typeof value === "bigint") value = Number(value);
    if (levels[feature]) {
      const level = levels[feature].get(value);
      if (level !== undefined) return level;
      if (model.ordered.includes(feature)) return NaN;
      if (!kinds[feature].has(typeof value)) {
        const known = Array.from(kinds[feature]).join(" or ");
        throw new Error(JSON.stringify(name) + " is " + JSON.stringify(value) + ", not a " + known);
      }
      return -1;
    }
    if (typeof value !== "number") {
      throw new Error(JSON.stringify(name) + " is " + JSON.stringify(value) + ", not a number");
    }
    return value;
  }

  // Which of a term's values is the row's. Without thresholds of nodes: the cuts are below the value.
  function placeOf(term, numbers) {
    if (term.cuts) {
      const x = numbers[term.feature];
      if (x !== x) return term.cuts.length + 1;
      let low = 0, high = term.cuts.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (x > term.cuts[middle]) low = middle + 1;
        else high = middle;
      }
      return low;
    }
    let node = 0;
    while (term.features[node] >= 0) {
      const x = numbers[term.features[node]], threshold = term.thresholds[node];
      const right = x !== x ? term.missingRight[node] : term.isLevel[node] ? x === threshold : x > threshold;
      node = right ? term.right[node] : node + 1;
    }
    return node;
  }

  function valuesOf(row) {
    const numbers = model.features.map((_, feature) => numberOf(feature, row));
    return model.terms.map((term) => term.values[placeOf(term, numbers)]);
  }

  function score(row) {
    const scores = model.intercept.slice();
    for (const values of valuesOf(row)) {
      for (let k = 0; k < scores.length; k++) scores[k] += values[k];
    }
    return scores;
  }

  function contributions(row) {
    return valuesOf(row).map((values, t) => ({ name: model.terms[t].name, values: values.slice() }));
  }

  // A multiple of 2^-44, which the last bit of 256 is: as in Python.
  function rounded(score) {
    const distance = Math.abs(score);
    return distance < 256 ? Math.sign(score) * (distance + 256 - 256) : score;
  }

  function exp(score) {
    return Math.exp(Math.min(Math.max(score, -708), 708));
  }

  // The first of the largest.
  function labelOf(scores) {
    if (scores.length === 1) return scores[0] > 0 ? 1 : 0;
    return scores.indexOf(scores.reduce((most, one) => Math.max(most, one)));
  }

  function probabilitiesOf(scores) {
    if (model.link === "logit") {
      const odds = exp(-rounded(Math.abs(scores[0])));
      const less = odds / (1 + odds);
      return scores[0] > 0 ? [less, 1 - less] : [1 - less, less];
    }
    if (scores.length === 1) {
      const second = Math.min(Math.max((1 + scores[0]) / 2, 0), 1);
      return [1 - second, second];
    }
    const near = scores.map(rounded);
    const most = near.reduce((a, b) => Math.max(a, b));
    const softmax = model.link === "softmax";
    const shares = softmax ? near.map((one) => exp(one - most)) : scores.map((one) => Math.max(1 + one, 0));
    let total = 0, lost = 0;  // what rounding takes from the sum
    for (const share of shares) {
      const next = total + share;
      lost += total >= share ? total - next + share : share - next + total;
      total = next;
    }
    total += lost;
    const label = labelOf(scores);
    return shares.map((share, k) => (total > 0 ? share / total : k === label ? 1 : 0));
  }

  function probabilities(row) {
    return model.classes && probabilitiesOf(score(row));
  }

  function predict(row) {
    const scores = score(row);
    if (model.classes) return model.classes[labelOf(scores)];
    const targets = model.link === "log" ? scores.map((one) => exp(rounded(one))) : scores;
    return model.several ? targets : targets[0];
  }

  function hexadecimal(value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    return view.getBigUint64(0).toString(16).padStart(16, "0");
  }

  function selfTest() {
    return model.examples.filter((one) => score(one.row).map(hexadecimal).join() !== one.scores.join()).length;
  }

  return {
    features: model.features,
    classes: model.classes,
    link: model.link,
    intercept: model.intercept,
    levels: model.levels.map((pairs) => pairs && pairs.map((pair) => pair[0])),
    terms: model.terms,
    score: score,
    contributions: contributions,
    probabilities: probabilities,
    predict: predict,
    selfTest: selfTest,
  };
})();
if (typeof module !== "undefined" && module.exports) module.exports = NAME;
"""


def to_javascript(model: Any, *, name: str = "quadboostModel") -> str:
    """Write a model as JavaScript that needs nothing else.

    Parameters
    ----------
    model : Ensemble, or a fitted estimator
    name : str
        Of the one variable that a page gets. In node it is what `require` returns.

    Returns
    -------
    str
        ASCII alone, and without `</` or `<!`, so that it can stand between the tags of a script.
    """
    if not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", text("name", name)):
        raise ValueError(f"the name is {name!r:.60}, which JavaScript cannot have; use letters and digits")
    if name in TAKEN.split():
        raise ValueError(f"the name is {name!r}, which means something else in JavaScript; use another")
    data = json.dumps(_model(additive(model)), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return re.sub(r"\bNAME\b|\bMODEL\b", lambda found: {"NAME": name, "MODEL": data}[found[0]], PROGRAM)


def _model(model: Additive) -> dict[str, Any]:
    examples, numbers = model.examples, packed(model.terms)
    check_labels(model.classes, "JavaScript", MOST)
    bits = [[f"{word:016x}" for word in row] for row in examples.scores.view(np.uint64).tolist()]
    return {
        "features": model.names,
        "classes": model.classes or None,
        "link": model.link,
        "several": model.ensemble.weight.ndim == 2,
        "levels": [
            list(model.levels[feature].items()) if feature in model.levels else None
            for feature in range(len(model.names))
        ],
        "ordered": [feature for feature in model.levels if np.isnan(model.unseen(feature))],
        "intercept": model.intercept.tolist(),
        "terms": [_term(term) for term in model.terms],
        "heads": numbers.heads,
        "questions": numbers.questions,
        "bits": numbers.bits,
        "examples": [{"row": row, "scores": scores} for row, scores in zip(examples.rows, bits, strict=True)],
    }


def _term(term: Term) -> dict[str, Any]:
    if isinstance(term, Steps):
        return {"name": term.name, "feature": term.feature, "cuts": len(term.cuts)}
    return {"name": term.name}
