"""Progress of a long fit: a bar or lines, and the user's callbacks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

Callback = Callable[[int, float, float | None], bool | None]  # round, risk, validation risk; a true answer stops

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def news_of(verbose: int, callbacks: Sequence[Callback], max_rounds: int, n_outputs: int) -> Iterator[Callback | None]:
    """Yield one callback that shows progress and calls the user's; None if neither is wanted."""
    if not verbose and not callbacks:
        yield None
        return
    bar = _Bar(max_rounds, n_outputs, verbose) if verbose else None

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
    """A tqdm bar where tqdm is installed, else lines."""

    def __init__(self, max_rounds: int, n_outputs: int, verbose: int) -> None:
        self.total = max_rounds * n_outputs
        self.done = self.last = 0
        self.bar = _tqdm(verbose, self.total, "round")
        self.is_due = pace(verbose)

    def show(self, round: int, risk: float, validation_risk: float | None) -> None:
        advance = round - self.last if round > self.last else round  # fewer than before: the next output
        self.done, self.last = self.done + advance, round
        news = {"risk": f"{risk:.6f}"} | ({} if validation_risk is None else {"validation": f"{validation_risk:.6f}"})
        if self.bar is not None:
            self.bar.set_postfix(news, refresh=False)
            self.bar.update(advance)
        elif self.is_due():
            text = "  ".join(f"{name} {value}" for name, value in news.items())
            print(f"round {self.done} of at most {self.total}  {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.refresh()  # a short fit ends before the bar thinks it is time
            self.bar.close()


@contextmanager
def steps_of(verbose: int, total: int | None, unit: str) -> Iterator[Callable[..., None]]:
    """Yield a function to call after each of many steps, or after so many; it shows progress if asked to.

    By a bar or, where there is no tqdm, a line each; where `verbose` is 2, a line every few seconds. `total` is None
    where it is not known. The function may be called from any thread.
    """
    if not verbose:
        yield lambda n=1: None
        return
    bar, is_due = _tqdm(verbose, total, unit), pace(verbose)
    lock, done, start = Lock(), 0, time.monotonic()

    def tell(n: int = 1) -> None:
        nonlocal done
        with lock:
            done += n
            if bar is not None:
                bar.update(n)
            elif is_due():
                print(_line(done, total, unit, time.monotonic() - start), file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.close()


def _line(done: int, total: int | None, unit: str, seconds: float) -> str:
    """How far it is, how fast, and when it will have ended."""
    rate = done / max(seconds, 1e-9)
    left = f" of {total}, {(total - done) / max(rate, 1e-9):.0f} s left" if total else ""
    return f"{unit} {done}{left}, {rate:.3g} a second"


def _tqdm(verbose: int, total: int | None, unit: str) -> Any:
    """A tqdm bar, or None if tqdm is not installed or lines are wanted."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=unit, unit_scale=unit == "row", leave=False) if verbose < 2 else None


def pace(verbose: int) -> Callable[[], bool]:
    """Return a function that says whether to print a line now: always, or every few seconds if `verbose` is 2."""
    last = time.monotonic()

    def is_due() -> bool:
        nonlocal last
        now = time.monotonic()
        due = verbose < 2 or now - last >= SECONDS_BETWEEN_LINES
        last = now if due else last
        return due

    return is_due
