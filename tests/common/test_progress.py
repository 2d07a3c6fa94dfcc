"""News of a fit: a progress bar when asked for, nothing otherwise."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import tqdm.auto
from mixed_table import mixed_table, targets

from quadboost import QuadBoostClassifier
from quadboost.common.progress import news_of

X = mixed_table(200)
y = targets(X)


def test_a_fit_is_quiet_by_default(capfd):
    QuadBoostClassifier(max_rounds=300).fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")


def test_a_verbose_fit_shows_the_rounds_and_the_risks(capfd):
    QuadBoostClassifier(max_rounds=300, validation_fraction=0.3, random_state=0, verbose=1).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "round" in err


def test_without_tqdm_a_verbose_fit_writes_lines(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    model = QuadBoostClassifier(reg_lambda=1e-4, max_rounds=300, verbose=1).fit(X, y)
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"round {t} of at most 300" for t in (100, 200, 300)]
    assert lines[-1].endswith(f"risk {model.history_['risk'][-1]:.6f}")


class Bar:
    """Counts as tqdm does."""

    def __init__(self, total, **_):
        self.total, self.n, self.closed = total, 0, False
        bars.append(self)

    def update(self, n):
        assert n >= 0
        self.n += n

    def set_postfix(self, *_, **__):
        pass

    def refresh(self):
        pass

    def close(self):
        self.closed = True


bars: list[Bar] = []


@pytest.fixture
def counted(monkeypatch):
    bars.clear()
    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    return bars


def test_the_bar_counts_every_round_of_every_output_once(counted):
    labels = np.random.default_rng(0).integers(0, 3, size=200)
    model = QuadBoostClassifier(reg_lambda=0.04, callback_every=1, verbose=1).fit(X, labels)
    assert set(model.stop_reason_) == {"converged"}
    assert min(model.n_rounds_) > 0
    (bar,) = counted
    assert bar.total == 3 * model.max_rounds
    assert bar.n == sum(model.n_rounds_)
    assert bar.closed


def test_the_bar_is_closed_when_a_fit_fails(counted):
    def fail(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        QuadBoostClassifier(verbose=1, callbacks=[fail], callback_every=1).fit(X, y)
    assert counted[0].closed


def test_every_callback_hears_every_news_even_after_one_wants_to_stop():
    heard = []
    with news_of(0, [lambda *news: heard.append(news) or True, lambda *news: heard.append(news)], 10, 1) as news:
        assert news(1, 0.5, None) is True
        assert news(2, 0.4, 0.6) is True  # also the next output stops at its first news
    assert heard == [(1, 0.5, None)] * 2 + [(2, 0.4, 0.6)] * 2


def test_nobody_is_told_when_nobody_asks():
    with news_of(0, [], 10, 1) as news:
        assert news is None
