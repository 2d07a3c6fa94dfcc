"""JavaScript: the same bits in node, and in a page."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from export_models import KINDS, NASTY, fitted, hard_rows, same_bits, shared_thresholds

from quadboost.export.javascript import to_javascript

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed (Debian: apt-get install nodejs)")

ASK = """
const rows = JSON.parse(require("fs").readFileSync(0, "utf8"), (_, v) => v === "+inf" ? Infinity : v === "-inf" ? -Infinity : v);
const answers = rows.map((row) => [model.score(row), model.probabilities(row), model.predict(row), model.contributions(row)]);
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


@needs_node
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, tmp_path):
    model, frame = fitted(kind), hard_rows()
    found = ask(model, rows_of(frame), tmp_path)
    scores, probabilities, predictions, terms = zip(*found["answers"], strict=True)
    expected = model.decision_function(frame)
    same_bits(scores, expected.reshape(len(frame), -1))
    if model.classes is None:
        np.testing.assert_allclose(predictions, model.predict(frame), rtol=1e-15)
        assert set(probabilities) == {None}
    else:
        assert list(predictions) == model.predict(frame).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-15)
    for row, own in zip(terms, scores, strict=True):
        total = found["intercept"]
        for term in row:
            total = [a + b for a, b in zip(total, term["values"], strict=True)]
        assert total == own
    assert found["wrong"] == 0


@needs_node
def test_rows_may_be_arrays_and_thresholds_neighbours(tmp_path):
    model, cuts = shared_thresholds()
    values = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), [np.nan, np.inf, -np.inf]])
    X = np.column_stack([values, values[::-1], np.roll(values, 7)])
    found = ask(model, [[plain(value) for value in row] for row in X.tolist()], tmp_path)
    same_bits([answer[0][0] for answer in found["answers"]], model.decision_function(X))


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


@needs_node
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"plain": 1.0}, "the row has no"),
        ([1.0], "the row has 1 values, the model 7 features"),
        ({name: "3" for name in fitted("logit-2").feature_names}, '"plain" is "3", not a number'),
    ],
)
def test_wrong_rows_are_refused(row, message, tmp_path):
    program = f"(() => {{ try {{ scorer.score({json.dumps(row)}); }} catch (error) {{ return error.message; }} }})()"
    assert message in run(page(fitted("logit-2"), program), None, tmp_path)


@needs_node
def test_self_test_tells_a_changed_value(tmp_path):
    text = to_javascript(fitted("logit-2"))
    place = text.index('"intercept": [') + len('"intercept": [')
    end = text.index("]", place)
    changed = float(np.nextafter(float(text[place:end]), np.inf))
    (tmp_path / "model.js").write_text(text[:place] + repr(changed) + text[end:])
    assert run('console.log(require("./model.js").selfTest())', None, tmp_path) > 0


def test_names_that_are_none_are_refused():
    with pytest.raises(ValueError, match="which JavaScript cannot have"):
        to_javascript(fitted("logit-2"), name="a b")


def test_text_of_the_model_cannot_end_the_script():
    assert NASTY in fitted("logit-2").feature_names
    assert "\\u003c/script" in to_javascript(fitted("logit-2"))
