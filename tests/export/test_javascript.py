"""JavaScript: the same bits in node, and in a page."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from export_models import (
    FAR,
    KINDS,
    by_hand,
    check,
    far_out,
    fitted,
    hard_rows,
    mixed,
    ordered,
    same_bits,
    without_voters,
)
from monotone_models import check_monotone, random_model

from quadboost.export.javascript import TAKEN, to_javascript

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed (Debian: apt-get install nodejs)")

ASK = """
const infinite = { "+inf": Infinity, "-inf": -Infinity };
const rows = JSON.parse(require("fs").readFileSync(0, "utf8"), (_, value) => infinite[value] || value);
const asked = [model.score, model.probabilities, model.predict, model.contributions];
const answers = rows.map((row) => asked.map((one) => one(row)));
console.log(JSON.stringify({ answers: answers, wrong: model.selfTest(), intercept: model.intercept }));
"""


def plain(value):
    if value is None or value != value:
        return None
    if isinstance(value, float) and math.isinf(value):
        return "+inf" if value > 0 else "-inf"
    return value


def run(program, given, folder):
    (folder / "program.js").write_text(program)
    done = subprocess.run([NODE, folder / "program.js"], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ask(model, rows, folder):
    (folder / "model.js").write_text(to_javascript(model))
    return run(f'const model = require("./model.js");{ASK}', rows, folder)


def rows_of(frame):
    return [{name: plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def check_found(model, frame, folder):
    """Scores, predictions and the self-test; and the terms add up."""
    found = ask(model, rows_of(frame), folder)
    scores, probabilities, predictions, terms = zip(*found["answers"], strict=True)
    check(model, frame, scores, predictions, probabilities)
    if model.classes is None:
        assert set(probabilities) == {None}
    for row, score in zip(terms, scores, strict=True):
        total = found["intercept"]
        for term in row:
            total = [a + b for a, b in zip(total, term["values"], strict=True)]
        assert total == score
    assert found["wrong"] == 0


@pytest.mark.thinned(1)
@needs_node
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, tmp_path):
    check_found(fitted(kind), hard_rows(), tmp_path)


@pytest.mark.thinned(1)
@needs_node
@pytest.mark.parametrize("kind", FAR)
def test_predictions_of_scores_far_out(kind, tmp_path):
    check_found(*far_out(kind), tmp_path)


@pytest.mark.thinned(1)
@needs_node
@pytest.mark.parametrize("made", [by_hand, without_voters, mixed, ordered])
def test_odd_models(made, tmp_path):
    check_found(*made(), tmp_path)


@needs_node
def test_rows_may_be_arrays(tmp_path):
    model, frame = by_hand()
    found = ask(model, [[plain(value) for value in row] for row in frame.to_numpy().tolist()], tmp_path)
    same_bits([answer[0][0] for answer in found["answers"]], model.decision_function(frame))


def page(model, program):
    """What a browser would run of a page with the model in a script: as no module, and with no `require`."""
    script = to_javascript(model, name="scorer")
    assert script.isascii()
    assert "</" not in script
    assert "<!" not in script
    return f"""
const vm = require("vm"), page = vm.createContext({{}});
vm.runInContext({json.dumps(script)}, page);
console.log(JSON.stringify(vm.runInContext({json.dumps(program)}, page)));
"""


@needs_node
def test_a_page_gets_one_variable(tmp_path):
    found = run(page(fitted("logit-2"), "[Object.keys(this), scorer.selfTest(), scorer.features]"), None, tmp_path)
    assert found == [["scorer"], 0, list(fitted("logit-2").feature_names)]


@pytest.mark.thinned(1)
@needs_node
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"plain": 1.0}, "the row has no"),
        ([1.0], "the row has 1 values, the model 7 features"),
        (dict.fromkeys(fitted("logit-2").feature_names, "3"), '"plain" is "3", not a number'),
    ],
)
def test_wrong_rows_are_refused(row, message, tmp_path):
    program = f"(() => {{ try {{ scorer.score({json.dumps(row)}); }} catch (error) {{ return error.message; }} }})()"
    assert message in run(page(fitted("logit-2"), program), None, tmp_path)


@needs_node
def test_self_test_tells_a_changed_value(tmp_path):
    text = to_javascript(fitted("logit-2"))
    place = text.index('"intercept":[') + len('"intercept":[')
    end = text.index("]", place)
    changed = float(np.nextafter(float(text[place:end]), np.inf))
    (tmp_path / "model.js").write_text(text[:place] + repr(changed) + text[end:])
    assert run('console.log(require("./model.js").selfTest())', None, tmp_path) > 0


WORDS = "class var let await NaN Infinity undefined module exports require Map Array name top location __proto__"


@pytest.mark.parametrize("name", ["a b", "", "1a", "é", "a\n", None, 3, b"a", *WORDS.split()])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(ValueError, match=r"which JavaScript cannot have|means something else|must be text that is not"):
        to_javascript(fitted("logit-2"), name=name)


@pytest.mark.slow
@needs_node
def test_every_other_name_works_in_node_and_in_a_page(tmp_path):
    """Those of the program's own functions, and of all that node and pages know and we do not refuse."""
    globals_ = run("console.log(JSON.stringify(Object.getOwnPropertyNames(globalThis)))", None, tmp_path)
    taken = ["model", "levels", "score", "unpack", "predict", "terms", "MODEL", "NAME", "of", "async", "get", "$", "_"]
    names = [name for name in [*globals_, *taken] if name not in TAKEN.split()]
    texts = [[name, to_javascript(fitted("logit-2"), name=name)] for name in names]
    program = """
const vm = require("vm"), texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const wrong = [];
for (const [name, text] of texts) {
  const page = vm.createContext({}), own = { exports: {} };
  try {
    vm.runInContext(text, page);
    new Function("exports", "require", "module", text)(own.exports, require, own);
    if (vm.runInContext(name + ".selfTest()", page) !== 0 || own.exports.selfTest() !== 0) wrong.push(name);
  } catch (error) { wrong.push(name + ": " + error.message); }
}
console.log(JSON.stringify(wrong));
"""
    assert run(program, texts, tmp_path) == []


def test_text_of_the_model_cannot_end_the_script():
    assert "\\u003c/script" in to_javascript(fitted("logit-2"))


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_monotone_scores_stay_so(seed, tmp_path):
    model, signs, frame = random_model(seed)
    check_monotone(
        model, signs, frame, lambda rows: [answer[0] for answer in ask(model, rows_of(rows), tmp_path)["answers"]]
    )
