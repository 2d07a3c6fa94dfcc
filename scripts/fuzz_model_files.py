"""Read many forged model files, and print a table of what came of them: each is refused, or a valid model.

    python scripts/fuzz_model_files.py --files 1000000

Needs the source tree: tests/fuzz_model_file.py forges and reads the files, some thousands in a process of its own,
which has little memory and a few seconds for each of them. A crash, a hang, or any error but a refusal ends the run;
the seed that is printed then shows it again. Stopped by Ctrl-C or SIGTERM, it prints the table of what was read so far.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
OUTCOMES = ("refused", "the same model", "another valid model")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000, help="how many (default: 1000000)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no process after this time")
    parser.add_argument("--seed", type=int, default=0, help="of the first process; each other has the next")
    parser.add_argument("--files-per-process", type=int, default=50_000)
    arguments = parser.parse_args()
    start, done, seed = time.monotonic(), 0, arguments.seed
    found: dict[str, Counter[str]] = {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as directory, suppress(KeyboardInterrupt):
        while done < arguments.files and time.monotonic() - start < 60 * arguments.minutes:
            count = min(arguments.files_per_process, arguments.files - done)
            for kind, outcomes in run(directory, seed, count).items():
                found.setdefault(kind, Counter()).update(outcomes)
            done, seed = done + count, seed + 1
            print(f"{done} files, {(time.monotonic() - start) / 60:.1f} minutes", file=sys.stderr, flush=True)
    print(as_table(found))
    print(f"\n{done} files in {(time.monotonic() - start) / 60:.1f} minutes, seeds {arguments.seed} to {seed - 1}")


def run(directory: str, seed: int, count: int) -> dict[str, dict[str, int]]:
    """What came of the files of one seed, by kind."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(TESTS / "fuzz_model_file.py"), directory, str(seed), str(count)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{ended.stderr}\nseed {seed} ended with status {ended.returncode}: {' '.join(command)}")
    found: dict[str, dict[str, int]] = json.loads(ended.stdout)
    return found


def as_table(found: dict[str, Counter[str]]) -> str:
    """Markdown: a line for each kind of forgery, and one for all of them."""
    total = sum(found.values(), Counter[str]())
    lines = [f"| what was changed | {' | '.join(OUTCOMES)} |", "|---" * (1 + len(OUTCOMES)) + "|"]
    for kind, outcomes in {**found, "together": total}.items():
        lines.append(f"| {kind} | {' | '.join(f'{outcomes[outcome]:,}' for outcome in OUTCOMES)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
