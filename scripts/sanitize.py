"""Build all kernels with a sanitizer, run tests and random fits from several threads, and print what it reported.

    python scripts/sanitize.py --problems 2000

ThreadSanitizer needs gcc with libtsan, and libomp with its tool Archer (Debian: gcc, libomp-14-dev): Archer tells the
sanitizer of the barriers of OpenMP. Those of gcc's own libgomp it does not see, and every loop in parallel would be
reported. UndefinedBehaviorSanitizer needs gcc with libubsan. The package is built in a temporary folder; the libraries
that it needs, and pytest, are those of the Python that runs this.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = {"thread": "-fsanitize=thread", "undefined": "-fsanitize=undefined"}
# A report, and the place in our code that it names.
REPORT = {"thread": re.compile(r"SUMMARY: ThreadSanitizer: (.*)"), "undefined": re.compile(r"runtime error: (.*)")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitizer", choices=FLAGS, action="append", help="default: both, one after the other")
    parser.add_argument("--problems", type=int, default=2_000, help="random fits (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--threads", type=int, default=4, help="of Python, each of which fits with its own")
    parser.add_argument("--folder", help="keep the builds there, and use those that are there (default: neither)")
    parser.add_argument("--no-tests", action="store_true", help="random fits only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # in the build of a sanitizer
    arguments = parser.parse_args()
    if arguments.inside:
        print(fit_in_threads(arguments.problems, arguments.seed, arguments.threads))
        return
    reports = [examine(sanitizer, arguments) for sanitizer in arguments.sanitizer or FLAGS]
    sys.exit(1 if any(reports) else 0)


def examine(sanitizer: str, arguments: argparse.Namespace) -> int:
    """Build, run and print; return how many reports and failures there were."""
    with tempfile.TemporaryDirectory() as folder:
        tree, start = Path(arguments.folder or folder, sanitizer), time.monotonic()
        if not tree.exists():
            ignored = shutil.ignore_patterns(".git", "build", "*.so", ".venv", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, tree, ignore=ignored)
            build(tree, sanitizer)
        environment = settings(tree, sanitizer, Path(folder, "report"))
        fits = ["scripts/sanitize.py", "--inside", *(f"--{name}={getattr(arguments, name)}" for name in COUNTS)]
        runs = {f"{arguments.problems} random fits from {arguments.threads} threads": fits}
        if not arguments.no_tests:
            runs["the fast tests"] = ["-m", "pytest", "-q", *(f"--ignore={name}" for name in left_out(tree, sanitizer))]
        failed = 0
        for what, line in runs.items():
            done = subprocess.run([sys.executable, *line], cwd=tree, env=environment, text=True, stdout=subprocess.PIPE)
            told = done.stdout.strip().splitlines()[-1:] or ["nothing"]
            print(f"{sanitizer}: {what}: {told[0]}", flush=True)
            failed += done.returncode != 0
            print(f"status {done.returncode}:\n{done.stdout}" if done.returncode else "", end="")
        text = "".join(Path(name).read_text() for name in glob.glob(f"{folder}/report.*"))
        found = Counter(REPORT[sanitizer].findall(text))
        for report, count in found.most_common():
            print(f"{sanitizer}: {count} times: {report}")
        print(f"{sanitizer}: {found.total()} reports in {(time.monotonic() - start) / 60:.0f} minutes", flush=True)
        return failed + found.total()


COUNTS = ("problems", "seed", "threads")


def left_out(tree: Path, sanitizer: str) -> list[str]:
    """Files of tests that cannot run: polars crashes where libtsan is loaded."""
    files = sorted(tree.glob("tests/**/test_*.py")) if sanitizer == "thread" else []
    return [str(path.relative_to(tree)) for path in files if "polars" in path.read_text()]


def build(tree: Path, sanitizer: str) -> None:
    compiler = f"gcc {FLAGS[sanitizer]}"
    environment = {**os.environ, "CC": compiler, "LDSHARED": f"{compiler} -shared"}
    line = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(line, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode or "OpenMP by" not in done.stdout:
        sys.exit(f"the kernels could not be built with {compiler} and OpenMP:\n{done.stdout}{done.stderr}")


def settings(tree: Path, sanitizer: str, report: Path) -> dict[str, str]:
    """The environment of the runs: where reports go, and what must be loaded before Python."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}",
        "OMP_WAIT_POLICY": "passive",  # there are more threads than cores
    }
    if sanitizer == "undefined":
        return {**environment, "UBSAN_OPTIONS": f"log_path={report}"}
    tsan = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True).stdout.strip()
    omp = [Path(name) for name in glob.glob("/usr/lib/llvm-*/lib/libomp.so.5")]
    archer = [path.with_name("libarcher.so") for path in omp if path.with_name("libarcher.so").exists()]
    if not Path(tsan).is_absolute() or not archer:
        sys.exit("ThreadSanitizer needs libtsan, libomp and Archer; apt install gcc libomp-14-dev")
    return {
        **environment,
        "LD_PRELOAD": f"{tsan} {archer[0].with_name('libomp.so.5')}",
        "OMP_TOOL_LIBRARIES": str(archer[0]),
        # Python and numpy are not built with the sanitizer: only races between our own kernels can be told.
        "TSAN_OPTIONS": f"log_path={report}:ignore_noninstrumented_modules=1:die_after_fork=0:exitcode=0",
    }


def fit_in_threads(n_problems: int, seed: int, n_threads: int) -> str:
    """Fit each problem in two threads of a pool, let threads share models and moments; all must get the same bits."""
    from random_problems import Problem, bits, thread_everything

    thread_everything()
    warnings.simplefilter("ignore")
    strengths = [0.3, 0.1, 0.03, 0.01]
    with ThreadPoolExecutor(n_threads) as pool:
        for first in range(seed, seed + n_problems, 50):
            problems = [Problem.of(number, 300) for number in range(first, min(first + 50, seed + n_problems))]
            models = list(pool.map(Problem.fitted, problems))
            again = list(pool.map(Problem.fitted, problems[::-1]))[::-1]
            for problem, model, other in zip(problems, models, again, strict=True):
                known = bits(other, problem.X)
                assert all(found == known for found in pool.map(bits, [model] * n_threads, [problem.X] * n_threads)), (
                    problem
                )
            for problem in problems[::10]:
                shared, alone = problem.boosted(), problem.boosted()
                found = pool.map(shared, strengths)
                assert all((a == alone(b)).all() for a, b in zip(found, strengths, strict=True)), problem
    return f"{n_problems} problems, the same bits in every thread"


if __name__ == "__main__":
    main()
