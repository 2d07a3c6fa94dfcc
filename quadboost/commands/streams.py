"""The standard streams: `-` as the name of a file, an output that nobody reads, and errors."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

STANDARD = "-"  # the standard input, or the standard output


class _Closed(io.TextIOWrapper):
    """In place of a standard output that was closed before we began."""


def open_standard_output() -> None:
    """Make printing safe: where the output is closed it is discarded, and no character is an error."""
    if sys.stdout is None:
        sys.stdout = _Closed(open(os.devnull, "wb"), write_through=True)  # noqa: SIM115
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def check_standard_output() -> None:
    """Refuse to write results where they would be lost."""
    if isinstance(sys.stdout, _Closed):
        raise ValueError("the standard output is closed; write to a file, or leave it open")


def discard_output() -> None:
    """Discard pending output, so that Python does not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(command: str, message: str, status: int = 2) -> NoReturn:
    """Print an error as one line, and exit."""
    try:
        sys.stdout.flush()
    except OSError:
        discard_output()
    print(f"{command}: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
