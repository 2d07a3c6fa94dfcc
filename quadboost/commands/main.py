"""The commands quadboost-train, -sums, -predict, -report and -export: what they run, their errors and exit status."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from .arguments import export_parser, predict_parser, report_parser, sums_parser, train_parser
from .streams import STANDARD, check_standard_output, discard_output, fail, open_standard_output

NO_PYARROW = "tables need pyarrow, which is not installed; pip install 'quadboost[tables]'"


def train_main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run quadboost-train."""

    def run(arguments: argparse.Namespace) -> None:
        from .train import train

        train(arguments)

    _main(train_parser(), run, argv)


def sums_main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run quadboost-sums."""

    def run(arguments: argparse.Namespace) -> None:
        from .sums import write_sums_of_table

        write_sums_of_table(arguments)

    _main(sums_parser(), run, argv)


def predict_main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run quadboost-predict."""

    def run(arguments: argparse.Namespace) -> None:
        from ..model.ensemble import load

        if arguments.table is None and not arguments.describe:
            raise ValueError("give a TABLE to predict, before the options, or --describe")
        if arguments.describe or arguments.output == STANDARD:
            check_standard_output()
        ensemble = load(arguments.model, arguments.sha256)
        if arguments.describe:
            from .describe import describe

            print(describe(ensemble, arguments.model))
            return
        from .predict import predict

        predict(ensemble, arguments)

    _main(predict_parser(), run, argv)


def report_main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run quadboost-report."""

    def run(arguments: argparse.Namespace) -> None:
        from ..model.ensemble import load
        from .report import write_report

        write_report(load(arguments.model, arguments.sha256), arguments)

    _main(report_parser(), run, argv)


def export_main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run quadboost-export."""

    def run(arguments: argparse.Namespace) -> None:
        from .export import export

        export(arguments)

    _main(export_parser(), run, argv)


def _main(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], None], argv: Any) -> NoReturn:
    """Run a command and exit; the only place that formats errors for the user."""
    _tell_warnings(parser)
    open_standard_output()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # not at once: files are to be cleaned up
    status: Any = 0
    try:
        try:
            run(parser.parse_args(argv))
        except SystemExit as end:  # --help, --version, a wrong argument
            status = end.code
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has closed it
        discard_output()
    except KeyboardInterrupt:
        fail(parser.prog, "interrupted", status=130)
    except MemoryError:
        fail(parser.prog, "there is not enough memory")
    except OSError as error:
        name = error.filename if error.filename is not None else "standard output"
        fail(parser.prog, f"{os.fsdecode(name)}: {error.strerror}" if error.errno else str(error))
    except (ImportError, ValueError, TypeError, NotImplementedError, OverflowError) as error:
        if sys.flags.dev_mode:
            raise
        no_pyarrow = isinstance(error, ImportError) and (error.name or "").startswith("pyarrow")
        fail(parser.prog, NO_PYARROW if no_pyarrow else _in_flags(str(error), parser))
    sys.exit(status)


def _tell_warnings(parser: argparse.ArgumentParser) -> None:
    """Print each warning of this package once, as a line; those of others are not for the user."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _in_flags(" ".join(str(message).split()), parser)
        if text not in told:
            told.add(text)
            print(f"{parser.prog}: warning: {text}", file=sys.stderr, flush=True)

    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", module="quadboost")
    warnings.showwarning = show


def _in_flags(message: str, parser: argparse.ArgumentParser) -> str:
    """Rewrite an estimator's message in terms of options: max_rounds=0 becomes --max-rounds 0."""
    flags = {action.dest: action.option_strings[-1] for action in parser._actions if action.option_strings}
    return re.sub(r"\b([a-z_]+)=", lambda match: f"{flags[match[1]]} " if match[1] in flags else match[0], message)
