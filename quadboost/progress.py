"""News of a long fit: a progress bar, and the user's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from .booster import Callback


@contextmanager
def news_of(verbose: int, callbacks: Sequence[Callback], max_rounds: int, n_outputs: int) -> Iterator[Callback | None]:
    """Give the one callback that shows progress and asks the others; None where nobody wants news."""
    if not verbose and not callbacks:
        yield None
        return
    bar = _Bar(max_rounds, n_outputs) if verbose else None

    def news(round: int, risk: float, validation_risk: float | None) -> bool:
        if bar is not None:
            bar.show(round, risk, validation_risk)
        answers = [callback(round, risk, validation_risk) for callback in callbacks]  # all are to be called
        return any(answers)

    try:
        yield news
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """A tqdm bar where tqdm is installed, else a line now and then."""

    def __init__(self, max_rounds: int, n_outputs: int) -> None:
        self.total = max_rounds * n_outputs
        self.done = self.last = 0
        self.bar: Any = None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=self.total, unit="round", leave=False)

    def show(self, round: int, risk: float, validation_risk: float | None) -> None:
        advance = round - self.last if round > self.last else round  # fewer than before: the next output
        self.done, self.last = self.done + advance, round
        news = {"risk": f"{risk:.6f}"} | ({} if validation_risk is None else {"validation": f"{validation_risk:.6f}"})
        if self.bar is not None:
            self.bar.set_postfix(news, refresh=False)
            self.bar.update(advance)
        else:
            text = "  ".join(f"{name} {value}" for name, value in news.items())
            print(f"round {self.done} of at most {self.total}  {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.refresh()  # a short fit ends before the bar thinks it is time
            self.bar.close()


@contextmanager
def steps_of(verbose: int, total: int, unit: str) -> Iterator[Callable[[], None]]:
    """Give what is to be called after each of many steps, from any thread; it shows them when asked to."""
    if not verbose:
        yield lambda: None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    bar = tqdm and tqdm(total=total, unit=unit, leave=False)
    lock, done = Lock(), 0

    def tell() -> None:
        nonlocal done
        with lock:
            done += 1
            if bar is not None:
                bar.update(1)
            else:
                print(f"{unit} {done} of {total}", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.close()
