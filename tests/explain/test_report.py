"""The report: one page that needs nothing else, and scores rows in a real browser with the bits of Python."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import Page, browser
from explained import NASTY, fitted, mixed, several_outputs

import quadboost
from quadboost import Ensemble, QuadBoostClassifier, QuadBoostClassifierCV, QuadBoostRegressor
from quadboost.explain.report import report_html, shapes_csv

GOLDEN_1 = Path(__file__).parents[1] / "data" / "model-v1.h5"


class Checker(HTMLParser):
    """Tags that are open, and all that could fetch or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attributes) -> None:
        if tag not in ("meta", "link", "input", "br", "th"):
            self.open.append(tag)
        self.scripts += tag == "script"
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name != "style"
            if name in ("src", "href"):
                self.links.append(value)

    def handle_endtag(self, tag) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def checked(page: str) -> Checker:
    found = Checker()
    found.feed(page)
    assert found.open == []
    assert found.scripts == 1
    assert all(link.startswith(("#", "data:")) for link in found.links)
    assert "default-src 'none'" in page
    return found


def test_a_page_is_one_small_file_without_links_to_elsewhere(tmp_path):
    model, X, y = fitted()
    path = quadboost.report(model, X, y, tmp_path / "report.html", title="A <b>title</b>")
    page = Path(path).read_text("utf-8")
    checked(page)
    assert len(page) < 300_000
    assert "<title>A &lt;b&gt;title" in page
    for name in (
        "Model",
        "Data",
        "Training",
        "Quality",
        "Importance",
        "Shapes",
        "Rules",
        "Constraints",
        "Try a row",
        "Downloads",
    ):
        assert f"<h2>{name}</h2>" in page


def test_names_and_levels_that_are_markup_do_no_harm():
    X, y = mixed()
    X.columns = [NASTY, "x" * 10_000, "a\0b", "z"]
    X[NASTY + "2"] = np.where(X["z"] > 1, NASTY, "</title><h1>")
    model = QuadBoostClassifier().fit(X, np.where(y == "yes", NASTY, "no"))
    page = report_html(model, X, np.where(y == "yes", NASTY, "no"), title=NASTY)
    checked(page)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert len(page) < 500_000


@pytest.mark.parametrize("rows", [slice(0, 0), slice(0, 1)])
def test_few_rows_are_enough(rows):
    model, X, y = fitted()
    checked(report_html(model, X[rows], y[rows]))


def test_models_of_every_kind_have_a_report():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    checked(report_html(QuadBoostRegressor().fit(X, X[:, 0]), X, X[:, 0]))
    checked(report_html(QuadBoostRegressor().fit(X, X[:, :2]), X, X[:, :2]))
    many = several_outputs()
    rows = np.array([[0.0, "p", 0.0]] * 4, dtype=object)
    checked(report_html(many, rows, ["a", "b", "c", "a"]))
    old = quadboost.load(GOLDEN_1)
    checked(report_html(old, np.array([[1.0, "a", 0.0, 0.0]] * 3, dtype=object), ["non"] * 3))
    checked(report_html(Ensemble([], [], [], 0.5, n_features=1), [[1.0]], [0.5]))
    with pytest.raises(TypeError, match="is no fitted QuadBoost model"):
        report_html("model", X, X)


@pytest.mark.slow
def test_very_many_levels_and_features():
    rng = np.random.default_rng(0)
    levels = np.array([f"level {i}" for i in range(5000)])
    X = pd.DataFrame({"code": np.concatenate([levels, levels]), "x": rng.normal(size=10_000)})
    y = np.isin(X["code"], levels[:2500]) + X["x"] + 0.1 * rng.normal(size=10_000)
    model = QuadBoostRegressor(min_category_count=1, max_rounds=300).fit(X, y)
    page = report_html(model, X[:100], y[:100])
    checked(page)
    assert "<option" not in page
    n = 1000
    wide = Ensemble(
        np.arange(n), np.zeros(n), np.linspace(1, 2, n), 0.0, n_features=n, bin_mass=np.tile([1.0, 1, 0], n)
    )
    assert len(report_html(wide, np.zeros((5, n)), np.zeros(5))) < 1_500_000


def test_the_numbers_behind_the_pictures_are_a_table():
    import csv

    model = several_outputs()
    lines = list(csv.DictReader(shapes_csv(model).splitlines()))
    assert len(lines) == (4 + 5) * 3
    assert lines[0] == {
        "feature": "feature 0", "bin": "at most -1", "output": "a", "added to the score": "-1.6",
        "training weight": "2.0", "standard error": "",
    }  # fmt: skip
    harmful = Ensemble([0], [0.0], [1.0], 0.0, n_features=1, feature_names=["=cmd()"])
    assert "'=cmd()" in shapes_csv(harmful)


def test_downloads_are_in_the_page():
    import base64
    import gzip

    model, X, y = fitted()
    links = checked(report_html(model, X, y)).links
    found = [base64.b64decode(link.split(",", 1)[1]) for link in links if link.startswith("data:") and "base64" in link]
    assert len(found) == 3
    assert b"points" in found[0]
    assert found[1].decode() == shapes_csv(model.ensemble_)
    assert b"SELECT" in found[2].upper()
    n = 1200  # what is long is compressed
    long = Ensemble(np.zeros(n), np.arange(n), np.ones(n), 0.0, n_features=1, classes=[0, 1], link="logit")
    page = report_html(long, [[1.0]], [1])
    assert re.findall('download="([^"]*)"', page) == ["scorecard.csv.gz", "shapes.csv.gz", "model.sql.gz"]
    packed = re.findall('gzip;base64,([^"]*)"', page)[1]
    assert gzip.decompress(base64.b64decode(packed)).decode() == shapes_csv(long)


@pytest.mark.slow
def test_a_report_of_a_large_table_takes_a_few_seconds_and_400_kB():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 30))
    y = (np.sin(X).sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    model = QuadBoostClassifierCV(cv=3).fit(X, y)
    start = time.process_time()
    page = report_html(model, X, y)
    assert time.process_time() - start < 5
    assert len(page.encode()) <= 400_000


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"penalty": "l2"}, {"n_trees": 100, "penalty": "l1"}, {"n_trees": 100}])
def test_thousands_of_steps_and_rules_of_30_features_are_within_400_kB(options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 30))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + np.sin(X).sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    model = QuadBoostClassifier(**options).fit(X, y)
    page = report_html(model, X[:2000], y[:2000])
    print(f"{model.ensemble_.n_rules:,} rules, {len(model.ensemble_.feature):,} steps: {len(page.encode()):,} bytes")
    assert len(page.encode()) <= 400_000


# --- in a real browser -------------------------------------------------------------------------------------------


def scores(page: Page) -> list[float]:
    return json.loads(page.run("document.getElementById('outcome').dataset.scores"))


def bits(values) -> list[str]:
    return [float(value).hex() for value in np.ravel(values)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A page of a model with everything, open in Chromium."""
    X, y = mixed(600)
    X['odd "name" <i>'] = np.where((y == "yes") ^ (np.arange(600) % 4 == 0), 'it\'s "quoted"', NASTY)
    model = QuadBoostClassifier(reg_lambda=0.002).fit(X[:400], y[:400])
    path = tmp_path_factory.mktemp("report") / "report.html"
    quadboost.report(model, X[400:], y[400:], path)
    with browser() as page:
        page.open(path)
        yield page, model, X[400:].reset_index(drop=True)


def test_the_page_loads_without_an_error_or_a_request(shown):
    page, _, _ = shown
    assert page.problems == []
    assert [url.split("/")[0] for url in page.requests] == ["file:"]
    assert page.run("quadboostModel.selfTest()") == 0


def test_the_score_of_each_row_has_the_bits_of_python(shown):
    page, model, X = shown
    rows = X.iloc[np.unique(np.linspace(0, len(X) - 1, 6).round().astype(int))]
    for i, known in enumerate(model.decision_function(rows)):
        page.run(f"document.querySelectorAll('[data-row]')[{i}].click()")
        assert bits(scores(page)) == bits(known)


@pytest.mark.parametrize("text", ["", "1e308", "-1e308", "5e-324", "0.1", "-0", "123456789.123456789", "1e400"])
def test_what_is_typed_changes_the_score_with_the_bits_of_python(shown, text):
    page, model, X = shown
    page.run("document.querySelectorAll('[data-row]')[0].click()")
    matrix = model.ensemble_.matrix_of(X.iloc[[0]])
    for feature in (0, 1):
        page.type_into(f"f{feature}", text)
        matrix[0, feature] = float(text) if text else np.nan
    assert bits(scores(page)) == bits(model.ensemble_.score_matrix(matrix))


def test_levels_are_chosen_by_keyboard_and_may_be_missing_or_never_seen(shown):
    page, model, X = shown
    page.run("document.querySelectorAll('[data-row]')[0].click()")
    odd = X.columns[4]
    choices = page.run("Array.from(document.getElementById('f4').options).map((own) => own.text)")
    assert choices[0] == "missing"
    assert choices[-1] == "never seen"
    for key, value in (("Home", None), ("End", "never seen by anyone")):
        page.run("document.getElementById('f4').focus()")
        page.press(key, {"Home": 36, "End": 35}[key])
        row = X.iloc[[0]].copy()
        row[odd] = value
        assert bits(scores(page)) == bits(model.decision_function(row))
    for i, value in enumerate(sorted([NASTY, 'it\'s "quoted"'])):
        change = "own.dispatchEvent(new Event('input', { bubbles: true }))"
        page.run(f"{{ const own = document.getElementById('f4'); own.value = '{i}'; {change}; }}")
        row = X.iloc[[0]].copy()
        row[odd] = value
        assert bits(scores(page)) == bits(model.decision_function(row)), value


def test_a_wrong_number_is_told_and_changes_nothing(shown):
    page, _, _ = shown
    page.run("document.querySelectorAll('[data-row]')[1].click()")
    before = scores(page)
    page.type_into("f0", "abc")
    assert page.run("document.getElementById('problem').textContent") == "x: abc is not a number"
    assert page.run("document.getElementById('f0').getAttribute('aria-invalid')") == "true"
    assert scores(page) == before
    page.type_into("f0", "0.5")
    assert page.run("document.getElementById('problem').textContent") == ""
    assert page.problems == []


def test_the_waterfall_ends_at_the_score_and_changes_flip_the_label(shown):
    page, _, _ = shown
    page.run("document.querySelectorAll('[data-row]')[2].click()")
    texts = page.run("Array.from(document.querySelectorAll('#waterfall text')).map((own) => own.textContent)")
    assert texts[-1] == f"{scores(page)[0]:.3f}"
    changes = page.run("Array.from(document.querySelectorAll('#changes tr')).map((own) => own.textContent)")
    label = "yes" if scores(page)[0] > 0 else "no"
    other = {"yes": "no", "no": "yes"}[label]
    assert changes
    assert all(change.endswith(f": {other}") or change.startswith("no single feature") for change in changes)
    found = next(
        (re.match(r"x \(now .*\)(above|at most) (\S+):", change) for change in changes if change.startswith("x ")), None
    )
    if found:
        page.type_into("f0", repr(float(found[2]) + (1e-6 if found[1] == "above" else -1e-6)))
        assert (scores(page)[0] > 0) == (other == "yes")


@pytest.mark.slow
def test_the_border_of_the_table_moves_by_keyboard(shown):
    page, _, _ = shown
    before = page.run("document.getElementById('fp').textContent")
    page.run("document.getElementById('slide').focus()")
    page.press("Home", 36)
    assert page.run("document.getElementById('fn').textContent") == "0"
    page.press("End", 35)
    assert page.run("document.getElementById('fp').textContent") == "0"
    assert before != "0"


@pytest.mark.slow
def test_pictures_of_the_page_are_not_blank_in_light_and_dark(shown, tmp_path):
    from matplotlib import image

    page, _, _ = shown
    means = []
    for dark in (False, True):
        page.picture(tmp_path / "page.png", 900, 1200, dark=dark)
        pixels = image.imread(tmp_path / "page.png")[..., :3]
        assert pixels.std() > 0.05
        means.append(pixels.mean())
    assert means[0] > 0.8
    assert means[1] < 0.3
    assert page.problems == []


@pytest.mark.slow
def test_paper_is_light_and_a_narrow_screen_does_not_shrink_the_waterfall(shown):
    page, _, _ = shown
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    colour = "getComputedStyle(document.body).color"
    page.call("Emulation.setEmulatedMedia", media="screen", features=dark)
    on_screen = page.run(colour)
    page.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert page.run(colour) == "rgb(28, 39, 51)" != on_screen
    page.call("Emulation.setEmulatedMedia", media="screen", features=[])
    page.call("Emulation.setDeviceMetricsOverride", width=380, height=800, deviceScaleFactor=1, mobile=False)
    assert page.run("document.documentElement.scrollWidth") <= 380
    drawn = "document.querySelector('#waterfall svg')"
    assert page.run(
        f"{drawn}.getBoundingClientRect().width == {drawn}.viewBox.baseVal.width"
    )  # letters as large as ever
    assert page.run("document.getElementById('unit').textContent").endswith("log-odds of yes.")


@pytest.mark.slow
def test_a_page_with_markup_in_every_name_runs_none_of_it(tmp_path):
    X, y = mixed()
    X.columns = [NASTY, "y</style><style>*{display:none}", "a&b", "z"]
    model = QuadBoostClassifier().fit(X, y)
    quadboost.report(model, X, y, tmp_path / "report.html", title=NASTY)
    with browser() as page:
        page.open(tmp_path / "report.html")
        assert page.problems == []
        assert page.run("document.querySelectorAll('img, h1 script').length") == 0
        assert page.run("document.querySelector('h1').textContent") == NASTY
        assert page.run("document.querySelectorAll('#form label')[0].textContent").startswith("</script>")


@pytest.mark.slow
def test_regressions_and_several_classes_score_in_the_browser(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    models = [
        QuadBoostRegressor().fit(X, X[:, 0] ** 2),
        QuadBoostRegressor(loss="poisson").fit(X, rng.poisson(np.exp(X[:, 0]))),
        QuadBoostClassifier().fit(X, np.digitize(X[:, 0], [-0.5, 0.5])),
        QuadBoostRegressor(n_trees=8, max_leaves=5).fit(X, np.sign(X[:, 0] * X[:, 1])),
        QuadBoostClassifier(n_trees=8, max_leaves=5).fit(X, X[:, 0] * X[:, 1] > 0),
    ]
    models.append(QuadBoostRegressor().fit(X, 1e-6 * X[:, 0]))
    with browser() as page:
        for model in models:
            y = model.predict(X)
            quadboost.report(model, X, y, tmp_path / "report.html")
            page.open(tmp_path / "report.html")
            assert bits(scores(page)) == bits(model.ensemble_.decision_function(X[:1]))
            assert page.run("document.querySelectorAll('#changes tr').length") > 0
            ends = page.run("Array.from(document.querySelectorAll('#waterfall text')).map((own) => own.textContent)")
            assert float(ends[-1]) == pytest.approx(max(scores(page)), abs=6e-4, rel=1e-3)
            assert float(ends[-1]) != 0
            assert page.problems == []


@pytest.mark.slow
def test_without_javascript_all_is_there_but_the_form(tmp_path):
    X, y = mixed()
    quadboost.report(QuadBoostClassifier().fit(X, y), X, y, tmp_path / "report.html")
    with browser() as page:
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.open(tmp_path / "report.html")
        seen = "Array.from(document.querySelectorAll('{}')).filter((part) => part.checkVisibility()).length"
        assert page.run(seen.format("h2")) >= 8
        assert page.run(seen.format("svg")) >= 8
        assert page.run(seen.format("#form")) == 0
        assert "needs JavaScript" in page.run("document.body.innerText")
        assert page.problems == []
