"""C: the same bits from gcc."""

import ctypes
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

from quadboost.export.additive import additive
from quadboost.export.c import to_c

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
STRICT = ["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-O2"]


def compiled(text, folder, *options):
    (folder / "model.c").write_text(text)
    command = [COMPILER, *STRICT, *options, str(folder / "model.c"), "-o", str(folder / "model"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return str(folder / "model")


class Compiled:
    """The functions of a model that was compiled as a library."""

    def __init__(self, model, folder):
        self.model = model
        self.library = ctypes.CDLL(compiled(to_c(model, name="m"), folder, "-shared", "-fPIC"))

    def rows(self, frame):
        """Each row's numbers and texts."""
        has_text = (ctypes.c_int * frame.shape[1]).in_dll(self.library, "m_has_text")
        for row in frame.itertuples(index=False):
            is_missing = [value is None or value != value for value in row]
            numbers = [
                np.nan if gone or isinstance(v, str) else float(v) for v, gone in zip(row, is_missing, strict=True)
            ]
            texts = [
                None if gone or not isinstance(v, str) else v.encode() for v, gone in zip(row, is_missing, strict=True)
            ]
            assert all(text is None or has for text, has in zip(texts, has_text, strict=True))
            yield (ctypes.c_double * len(row))(*numbers), (ctypes.c_char_p * len(row))(*texts)

    def call(self, function, frame, n):
        out = (ctypes.c_double * n)()
        found = []
        for numbers, texts in self.rows(frame):
            getattr(self.library, function)(numbers, texts, out)
            found.append(list(out))
        return np.array(found)

    def predict(self, scores, n):
        out, found = (ctypes.c_double * n)(), []
        for row in scores:
            self.library.m_predict((ctypes.c_double * len(row))(*row), out)
            found.append(list(out))
        return np.array(found)

    def labels(self, scores):
        return [self.library.m_label((ctypes.c_double * len(row))(*row)) for row in scores]


def check_found(model, frame, folder):
    """Scores and predictions; and the terms add up."""
    c = Compiled(model, folder)
    scores = c.call("m_score", frame, model.n_outputs)
    found = c.predict(scores, model.n_outputs if model.classes is None else len(model.classes))
    predictions = found if model.classes is None else model.classes[c.labels(scores)].tolist()
    check(model, frame, scores, predictions, found)
    n_terms = len(additive(model).terms)
    terms = c.call("m_contributions", frame, n_terms * model.n_outputs).reshape(len(frame), n_terms, model.n_outputs)
    intercept = (ctypes.c_double * model.n_outputs).in_dll(c.library, "m_intercept")
    total = np.tile(list(intercept), (len(frame), 1))
    for term in range(n_terms):
        total += terms[:, term]
    same_bits(total, scores)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits(kind, tmp_path):
    check_found(fitted(kind), hard_rows(), tmp_path)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", FAR)
def test_predictions_of_scores_far_out(kind, tmp_path):
    check_found(*far_out(kind), tmp_path)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("made", [by_hand, without_voters, mixed, ordered])
def test_odd_models(made, tmp_path):
    check_found(*made(), tmp_path)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("kind", ["logit-2", "targets", "ordered", "mixed"])
def test_self_test_passes_and_tells_a_changed_value(kind, tmp_path):
    text = to_c({"ordered": ordered, "mixed": mixed}[kind]()[0] if kind in ("ordered", "mixed") else fitted(kind))
    done = subprocess.run([compiled(text, tmp_path, "-Dquadboost_model_SELF_TEST")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "24 rows, 0 scores differ\n")
    place = text.index("_intercept[] = {\n") + len("_intercept[] = {\n")
    end = text.index("\n", place)
    numbers = text[place:end].split(", ")
    changed = ", ".join([(float.fromhex(numbers[0]) + 2.0**-40).hex(), *numbers[1:]])
    program = compiled(text[:place] + changed + text[end:], tmp_path, "-Dquadboost_model_SELF_TEST")
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "output 0: expected" in done.stdout


def test_fast_math_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="ffast-math would change the scores"):
        compiled(to_c(fitted("logit-2")), tmp_path, "-ffast-math", "-c")


def test_names_and_text_that_c_cannot_have_are_refused():
    for name in ("a-b", "", "1a", "_a", "é", "a\n", None, 3, b"a"):
        with pytest.raises(ValueError, match=r"which C cannot have|name=.* must be text that is not empty"):
            to_c(fitted("logit-2"), name=name)
    categories = {
        feature: [["a\0b"]] if feature == 3 else levels for feature, levels in fitted("logit-2").categories.items()
    }
    model = fitted("logit-2")
    keep = ~np.isin(model.feature, list(categories))
    odd = model.replace(
        feature=model.feature[keep],
        threshold=model.threshold[keep],
        weight=model.weight[keep],
        kind=model.kind[keep],
        categories=categories,
    )
    with pytest.raises(ValueError, match="has a character that C cannot hold"):
        to_c(odd)


@pytest.mark.thinned(1)
@pytest.mark.parametrize("name", ["int", "NAN", "isnan", "NAME", "main", "memcpy", "x" * 500])
def test_a_model_may_have_any_word_as_its_name(name, tmp_path):
    program = compiled(to_c(fitted("logit-2"), name=name), tmp_path, f"-D{name}_SELF_TEST")
    assert subprocess.run([program]).returncode == 0


def test_text_of_the_model_is_not_taken_for_its_name(tmp_path):
    model = fitted("logit-2")
    names = ["NAME_x", *model.feature_names[1:]]
    library = ctypes.CDLL(compiled(to_c(model.replace(feature_names=names)), tmp_path, "-shared", "-fPIC"))
    found = (ctypes.c_char_p * len(names)).in_dll(library, "quadboost_model_feature_names")
    assert [name.decode() for name in found] == names


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_monotone_scores_stay_so(seed, tmp_path):
    model, signs, frame = random_model(seed)
    c = Compiled(model, tmp_path)
    check_monotone(model, signs, frame, lambda rows: c.call("m_score", rows, model.n_outputs))
