"""The page: means, ranks with their picture, every table, and where others are better."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from benchmarking import command_line, machine, markdown_table, missing_packages, tell

from .methods import MANY_ROWS, METHODS
from .ranks import LEVEL, Ranks, draw_ranks

CLEAR = 0.01  # of error or r2: a difference that is worth a line
FIGURES = ["error", "log-loss", "Brier", "AUC"]

HEAD = """\
Every method as it comes, on tables of very different kinds: what someone gets who does not tune. Figures are of the
30 % of rows that were held out, means over the splits ({splits} of a table up to {many} rows, {large_splits} of a
larger one). No setting was chosen by looking at them; `scripts/accuracy/methods.py` has the settings, and so has the
end of this page. But most of these tables, in other splits, are among those by which constants of our defaults were
chosen ([defaults.md](defaults.md)). Seconds are of CPU, with one thread, two fits running side by side. Terms are the
numbers that a score is made of: voters and rules, leaves, bins or coefficients."""

WHY = """\
Why: a sum of stumps has no interactions. Where it alone is behind, the table has some, and `n_trees=100` is the
remedy. Where rules are behind too, there are three kinds of tables. On some a linear model is among the best, such as
breast_cancer, wine and zoo: steps follow a line only roughly. On some there is more to find than 100 trees of at most
31 leaves offer: more and larger trees help on electricity, though not on car. And most are small. The strength is
chosen once, by a formula or by generalised cross-validation, and small tables leave much to chance, in that choice and
in these figures: of 150 rows in three splits, one mistake more is an error of 0.007. The CV estimators take more time
to choose."""


def write_page(records: Sequence[dict[str, Any]], left_out: Sequence[str], options: argparse.Namespace) -> str:
    frame = pd.DataFrame([record for record in records if "failed" not in record])
    failed = [record for record in records if "failed" in record]
    names = [name for name in METHODS if name in set(frame["method"])]
    by_table = frame.groupby(["method", "table"], sort=False).mean(numeric_only=True)
    parts = [*head(frame, names, options), *means(by_table, names)]
    if options.docs is not None:
        options.docs.mkdir(parents=True, exist_ok=True)
        by_table.drop(columns=["split", "seed"], errors="ignore").to_csv(
            options.docs / "accuracy.csv", float_format="%.5g"
        )
    for figure in ("error", "log-loss"):
        parts += ranking(by_table, names, figure, options)
    parts += ["## Where others are better", *losses(by_table, names), WHY]
    parts += ["## Every table: error", grid(by_table, names, "error"), "## Every table: log-loss"]
    parts += [grid(by_table, names, "log-loss")]
    if "r2" in by_table:
        parts += ["## Regressions: r2", grid(by_table, names, "r2")]
        parts += ["Logistic regression stands for ridge regression here."] if "linear" in names else []
    parts += ["All figures, also Brier score, AUC, seconds and terms of each table: [accuracy.csv](accuracy.csv)."]
    parts += [
        "## Settings",
        markdown_table(["", "what it is set to"], [(title(n), METHODS[n].settings) for n in names]),
    ]
    parts += [f"Left out: {sentence}." for sentence in left_out]
    parts += [f"{title(record['method'])} failed on {record['table']}: {record['failed']}." for record in failed]
    text = "\n\n".join(parts) + "\n"
    if options.docs is not None:
        (options.docs / "accuracy.md").write_text(text)
    return text


def title(name: str) -> str:
    return METHODS[name].title


def head(frame: pd.DataFrame, names: Sequence[str], options: argparse.Namespace) -> list[str]:
    versions = frame.drop_duplicates("method").set_index("method")["version"]
    packages = dict.fromkeys(f"{METHODS[name].packages[0]} {versions[name]}" for name in names)
    facts = [f"{name}: {value}" for name, value in machine().items()]
    minutes = frame[["fit seconds", "predict seconds"]].to_numpy().sum() / 60
    facts += [", ".join(packages), f"{len(frame):,} fits, {minutes:.0f} minutes of CPU"]
    text = HEAD.format(splits=options.splits, large_splits=options.large_splits, many=f"{MANY_ROWS:,}")
    short = ["A short run that shows nothing but that the script works."] if options.quick else []
    command = command_line("scripts/benchmark_accuracy.py")
    return [
        "# Accuracy, beside other libraries",
        f"    {command}",
        "\n".join(f"- {fact}" for fact in facts),
        *short,
        text,
    ]


def means(by_table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Over the tables that have all methods."""
    labels = by_table[by_table["classes"] > 0]
    common = [records for _, records in labels.groupby("table") if len(records) == len(names)]
    if not common:
        return []
    found = pd.concat(common).groupby("method").mean()
    rows = []
    for name in names:
        means = found.loc[name]
        per_row = 1e6 * means["predict seconds"] / means["test rows"]
        figures = [f"{means[figure]:.4f}" for figure in FIGURES]
        rows.append([title(name), *figures, means["fit seconds"], per_row, means["terms"]])
    columns = ["method", *FIGURES, "seconds of a fit", "microseconds a row", "terms"]
    return [f"## Means over {len(common)} tables of labels", markdown_table(columns, rows)]


def ranking(by_table: pd.DataFrame, names: Sequence[str], figure: str, options: argparse.Namespace) -> list[str]:
    losses = by_table[figure].unstack("method")[list(names)].dropna()
    if len(losses) < 2 or len(names) < 2:
        return []
    ranks = Ranks.of([title(name) for name in names], losses.to_numpy())
    caption = f"Mean rank by {figure} over {ranks.n_tables} tables"
    parts = [f"## Mean ranks by {figure}"]
    if options.docs is not None and missing_packages(["matplotlib"]):
        tell("matplotlib is not installed: no picture")
    elif options.docs is not None:
        file = f"accuracy-{figure}.svg"
        draw_ranks(options.docs / file, ranks, caption)
        parts.append(f"![{caption}]({file})")
    words = (
        f"{caption}, 1 is best; ties share a rank. Two methods whose mean ranks differ by less than "
        f"{ranks.critical:.2f} may be alike (Nemenyi's test at {LEVEL:.0%}; a red bar joins them)."
    )
    if np.isfinite(ranks.chance):
        words += (
            " Were all methods alike, mean ranks would differ as much as these with a probability of "
            f"{ranks.chance:.1g} (Friedman's test)."
        )
    rows = [(name, f"{mean:.2f}") for name, mean in zip(ranks.names, ranks.mean, strict=True)]
    return [*parts, words, markdown_table(["method", "mean rank"], rows), *alone(losses)]


def alone(losses: pd.DataFrame) -> list[str]:
    """The mean rank that each of ours has beside the other libraries: sisters are often next to one another."""
    ours = [name for name in losses if METHODS[name].is_ours]
    others = [name for name in losses if not METHODS[name].is_ours]
    if len(ours) < 2 or not others:
        return []
    rows = []
    for name in ours:
        ranks = Ranks.of([name, *others], losses[[name, *others]].to_numpy())
        place = ranks.names.index(name)
        rows.append([title(name), f"{ranks.mean[place]:.2f}", f"{place + 1} of {len(ranks.names)}"])
    said = f"One of ours at a time, beside the {len(others)} others:"
    return [said, markdown_table(["method", "mean rank", "place"], rows)]


def losses(by_table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The tables where the best of the others is clearly better than our rules, as they come."""
    ours, others = [name for name in names if METHODS[name].is_ours], [n for n in names if not METHODS[n].is_ours]
    if not ours or not others:
        return []
    main = "quadboost-rules" if "quadboost-rules" in ours else ours[0]
    loss = by_table["error"].fillna(1.0 - by_table["r2"]) if "r2" in by_table else by_table["error"]
    wide = loss.unstack("method")
    rows, n = [], 0
    for table, row in wide.iterrows():
        best, best_of_ours = row[others].idxmin(), row[ours].idxmin()
        if row[main] <= row[best] + CLEAR:
            n += 1
            continue
        figures = [f"{row[name]:.4f}" for name in dict.fromkeys([ours[0], main])]
        rows.append(
            [str(table), *figures, f"{title(best_of_ours)} {row[best_of_ours]:.4f}", f"{title(best)} {row[best]:.4f}"]
        )
    said = (
        f"{title(main)} is within {CLEAR} of the best of all {len(others)} other methods, in hindsight, on {n} of "
        f"{len(wide)} tables (error, or 1 - r2). On these it is not:"
    )
    columns = ["table", *(title(name) for name in dict.fromkeys([ours[0], main])), "best of ours", "best of the others"]
    return [said, markdown_table(columns, rows)] if rows else [said.replace(" On these it is not:", "")]


def grid(by_table: pd.DataFrame, names: Sequence[str], figure: str) -> str:
    """A row for each table, the best in bold."""
    wide = by_table[figure].unstack("method").dropna(how="all")
    shown = [name for name in names if name in wide and wide[name].notna().any()]
    sizes = by_table.groupby("table")[["rows", "features", "classes"]].first().astype(int)
    rows = []
    for table, figures in wide[shown].iterrows():
        best = figures.max() if figure == "r2" else figures.min()
        values = [
            "" if np.isnan(v) else f"**{v:.3f}**" if round(v, 3) == round(best, 3) else f"{v:.3f}" for v in figures
        ]
        size = sizes.loc[table]
        kind = f", {size['classes']} classes" if size["classes"] > 2 else ""
        rows.append([f"{table} ({size['rows']:,} x {size['features']}{kind})", *values])
    return markdown_table(["table", *(title(name) for name in shown)], rows)
