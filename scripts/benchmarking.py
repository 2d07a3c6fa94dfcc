"""What the benchmarks share: data, timing, memory, and a report as Markdown, JSON and plots."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from quadboost.common.threads import available_threads

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

WIDE = 1_000  # features of the shape "wide"
N_CORES = available_threads()  # now: Dask takes all but one from this process while it starts workers
N_RELEVANT = 15  # features that the target depends on
NOISE = 0.7  # standard deviation, of a target without noise: 1


# --- data ---------------------------------------------------------------------------------------------------


def few_values(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.clip(np.round(X), -1, 1)


def mostly_zero(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.where(random.random(X.shape) < 0.9, 0.0, X)


def with_missing(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.where(random.random(X.shape) < 0.2, np.nan, X)


SHAPES: dict[str, tuple[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]]] = {
    "correlated": ("normal features that share five factors", lambda X, random: X),
    "skewed": ("the same, exp(2 x): heavy tails", lambda X, random: np.exp(2 * X)),
    "discrete": ("the same, in steps of a quarter", lambda X, random: np.round(4 * X)),
    "duplicates": ("the same, nine values in ten are 0", mostly_zero),
    "few": ("the same, three distinct values", few_values),
    "missing": ("the same, one value in five is missing", with_missing),
    "wide": (f"the same, {WIDE:,} features", lambda X, random: X),
}


def generate(m: int, d: int, shape: str = "correlated", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features, and a target of mean 0 and variance 1: smooth, kinked and stepped in them, and noise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((m, d))
    X += random.standard_normal((m, 5)) @ np.random.default_rng(d).standard_normal((5, d)) / 2
    X /= X.std(axis=0)
    relevant = X[:, :N_RELEVANT]
    third = (relevant.shape[1] + 2) // 3
    score = np.sin(2 * relevant[:, :third]).sum(axis=1) + np.abs(relevant[:, third : 2 * third]).sum(axis=1)
    score += np.sign(relevant[:, 2 * third :] - 0.5).sum(axis=1)
    score += np.where(X[:, 0] > 0, X[:, -1], 0.0)  # which no sum of stumps can express
    y = standardized(score) + NOISE * random.standard_normal(m)
    return np.ascontiguousarray(SHAPES[shape][1](X, random)), standardized(y)


def standardized(y: np.ndarray) -> np.ndarray:
    return (y - y.mean()) / y.std()


def read_data(path: Path, target: str) -> tuple[np.ndarray, np.ndarray]:
    """A CSV or Parquet table in random order; text becomes level numbers, for all contenders alike."""
    import pandas as pd

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame = frame.dropna(subset=[target]).sample(frac=1, random_state=0)
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            codes = frame[name].astype("category").cat.codes
            frame[name] = codes.where(codes >= 0)
    X = frame.drop(columns=target).to_numpy(dtype=np.float64, na_value=np.nan)
    return np.ascontiguousarray(X), standardized(frame[target].to_numpy(dtype=np.float64))


# --- time and memory ----------------------------------------------------------------------------------------


@dataclass
class Timed:
    """Runs of one thing: seconds on the clock and of all cores, and what was noted of the first result."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    notes: Any = None

    @property
    def best(self) -> float:
        return min(self.wall)


def interleaved(
    runs: Mapping[Key, Callable[[], Result]],
    *,
    seconds: float,
    threads: int,
    at_most: int = 5,
    note: Callable[[Key, Result], Any] = lambda key, result: None,
) -> dict[Key, Timed]:
    """Time all runs in turn, then all again while that fits in `seconds`: a noisy minute hits all alike."""
    timed = {key: Timed() for key in runs}
    start = time.perf_counter()
    for done in range(at_most):
        elapsed = time.perf_counter() - start
        if done and elapsed * (done + 1) / done > seconds:
            break
        for key, run in runs.items():
            tell(f"  pass {done + 1}: {key if isinstance(key, str) else ', '.join(map(str, key))}")
            gc.collect()
            with threadpool_limits(threads):
                wall, cpu = time.perf_counter(), time.process_time()
                result = run()
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            timed[key].wall.append(wall)
            timed[key].cpu.append(cpu)
            if done == 0:
                timed[key].notes = note(key, result)
            del result
    return timed


def in_child(work: Callable[..., Result], *arguments: Any) -> Result:
    """Do it in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        return child.submit(work, *arguments).result()


def memory_above(work: Callable[[], Any]) -> int:
    """Bytes of memory that this process has at the peak of `work` beyond what it has now."""
    before = _resident("VmRSS")
    work()
    return max(0, _resident("VmHWM") - before)


def _resident(what: str) -> int:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage there counts the parent process too
        line = next(line for line in status.read_text().splitlines() if line.startswith(what))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS; before: the peak so far


def run_python(code: str, *arguments: str) -> None:
    """Run code in a fresh interpreter."""
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)


def tell(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


# --- what is asked ------------------------------------------------------------------------------------------


def make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", help="about a minute")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help="to see that it works")
    parser.set_defaults(size="full")
    parser.add_argument("--peers", help="only these, comma-separated; without it all that are installed")
    parser.add_argument("--shape", choices=SHAPES, default="correlated", help="of the data made")
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--docs", type=Path, metavar="DIR", help="write the report there, with JSON and plots")
    return parser


def missing_packages(packages: Iterable[str]) -> list[str]:
    missing = []
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            missing.append(package)
    return missing


# --- report -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Something to reach; `measured` is None where a peer is missing."""

    work: str
    wanted: str
    measured: str | None
    reached: bool | None

    @staticmethod
    def ratio(work: str, least: float, measured: float | None) -> Target:
        wanted = f"at least {least:g} times as fast"
        if measured is None:
            return Target(work, wanted, None, None)
        return Target(work, wanted, f"{figure(measured)} times", bool(measured >= least))

    @staticmethod
    def limit(work: str, most: float, unit: str, measured: float | None) -> Target:
        wanted = f"at most {figure(most)} {unit}"
        if measured is None:
            return Target(work, wanted, None, None)
        return Target(work, wanted, f"{figure(measured)} {unit}", bool(measured <= most))


@dataclass
class Line:
    """A line of a plot; from `known` points on it is extrapolated."""

    x: Sequence[float]
    y: Sequence[float]
    known: int | None = None


class Report:
    """Sections of text and tables, targets, plots and records; printed, and written where asked."""

    def __init__(self, name: str, title: str, options: argparse.Namespace, packages: Iterable[str]) -> None:
        self.name = name
        self.title = title
        self.options = options
        packages = ["quadboost", "numpy", "sklearn", *packages]
        self.versions = {package: importlib.import_module(package).__version__ for package in packages}
        self.targets: list[Target] = []
        self.records: list[dict[str, Any]] = []
        self._parts: list[str] = []
        self._start = time.perf_counter()

    def section(self, heading: str, text: str = "") -> None:
        tell(heading)
        self._parts += [f"## {heading}", *([text] if text else [])]

    def text(self, text: str) -> None:
        self._parts.append(text)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self._parts.append(markdown_table(columns, rows))

    def record(self, part: str, **values: Any) -> None:
        self.records.append({"part": part, **values})

    def plot(self, name: str, caption: str, x: str, y: str, lines: Mapping[str, Line]) -> None:
        """Both axes logarithmic."""
        if self.options.docs is None:
            return
        if missing_packages(["matplotlib"]):
            tell("matplotlib is not installed: no plot")
            return
        file = f"{self.file_stem}-{name}.svg"
        self.options.docs.mkdir(parents=True, exist_ok=True)
        draw(self.options.docs / file, x, y, lines)
        self._parts.append(f"![{caption}]({file})\n\n{caption}")

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.perf_counter() - self._start

    @property
    def file_stem(self) -> str:
        return f"benchmarks-{self.name}"

    @property
    def command(self) -> str:
        return command_line(f"scripts/benchmark_{self.name}.py")

    def finish(self) -> None:
        """Print all, and write it where asked."""
        minutes = self.seconds / 60
        text = "\n\n".join([*self._head(minutes), *self._parts]) + "\n"
        print(text)
        if self.options.docs is not None:
            self.options.docs.mkdir(parents=True, exist_ok=True)
            stem = self.options.docs / self.file_stem
            stem.with_suffix(".md").write_text(text)
            facts = {
                "benchmark": self.name,
                "command": self.command,
                "minutes": minutes,
                "machine": machine(),
                "versions": self.versions,
                "targets": [asdict(target) for target in self.targets],
                "records": self.records,
            }
            stem.with_suffix(".json").write_text(json.dumps(facts, indent=1, default=_plain) + "\n")

    def _head(self, minutes: float) -> list[str]:
        versions = ", ".join(f"{package} {number}" for package, number in self.versions.items())
        facts = "\n".join(f"- {name}: {value}" for name, value in machine().items())
        head = [f"# {self.title}", f"    {self.command}", f"{facts}\n- {versions}\n- {minutes:.1f} minutes in all"]
        if self.targets:
            words = {True: "reached", False: "**not reached**", None: "not measured"}
            rows = [(t.work, t.wanted, t.measured or "", words[t.reached]) for t in self.targets]
            head += ["## What is to be reached", markdown_table(["work", "wanted", "measured", ""], rows)]
        if self.options.size != "full":
            head.append("A short run, on less data than the figures to reach are meant for.")
        return head


def command_line(script: str) -> str:
    """What was typed, without the folders: those are private."""
    words = [Path(word).name if os.sep in word else word for word in sys.argv[1:]]
    return shlex.join(["python", script, *words])


def machine() -> dict[str, str]:
    """What the figures depend on, and nothing that would tell whose machine it is."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "machine": f"{N_CORES} cores ({model}), {memory:.0f} GiB of memory, {platform.system()}",
        "Python": platform.python_version(),
    }


def draw(path: Path, x: str, y: str, lines: Mapping[str, Line]) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "quadboost", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel=x, ylabel=y)
        for name, line in lines.items():
            known = len(line.x) if line.known is None else line.known
            (drawn,) = axes.plot(line.x[:known], line.y[:known], marker="o", label=name)
            axes.plot(line.x[known - 1 :], line.y[known - 1 :], linestyle=":", color=drawn.get_color())
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(path, metadata={"Date": None})


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns)]
    lines += [[value if isinstance(value, str) else figure(value) for value in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None or value != value:
        return ""
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
