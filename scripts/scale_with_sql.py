"""A recipe: fit to a table that stays in a database, from counts that SQL's GROUP BY returns.

    python scripts/scale_with_sql.py

Rows never leave the database: what comes are counts and sums of labels per bin, and counts per pair of bins. Needs
DuckDB. The script makes a table, fits it in both ways, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quadboost import Moments, boost
from quadboost.data.exact import Extent, Scales
from quadboost.moments.gram import Gram
from quadboost.moments.moments import column_moments
from quadboost.moments.sums import ColumnSums
from quadboost.moments.tables import TableGram, others_of
from quadboost.voters.columns import Voters
from quadboost.voters.thresholds import candidate_voters

TABLE_BYTES = 1 << 28  # for counts of pairs


def bin_sql(column: str, cuts: Sequence[float], first: int = 0) -> str:
    """The number of thresholds below a value, by halving; a missing value has the last bin."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below, above = bin_sql(column, cuts[:middle], first), bin_sql(column, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {column} > {cuts[middle]!r} THEN {above} ELSE {below} END"


def coded_view(voters: Voters, columns: Sequence[str], table: str, label: str) -> str:
    """The table with its codes c0, c1, ... and a label y of -1 or +1."""
    bins = [
        f"CASE WHEN {name} IS NULL THEN {len(cuts) + 1} ELSE {bin_sql(name, cuts)} END AS c{f}"
        for f, name in enumerate(columns)
        for cuts in [cuts_of(voters, f)]
    ]
    return f"CREATE TABLE coded AS SELECT {', '.join(bins)}, CASE WHEN {label} THEN 1 ELSE -1 END AS y FROM {table}"


def cuts_of(voters: Voters, f: int) -> list[float]:
    first = int(voters.voter_start[f])
    return voters.describe(np.arange(first, first + int(voters.n_cuts[f])))[2].tolist()


def sums_by_sql(database: Any, voters: Voters) -> ColumnSums:
    """Sums per bin: a GROUP BY a column."""
    n_rows, total = database.execute("SELECT count(*), sum(y) FROM coded").fetchone()
    extent = Extent(n_rows, float(n_rows), 1.0, True)
    scales = Scales(extent, origin=(0.0,), largest=(1.0,))  # labels are -1 and +1
    mass, product = np.zeros((2, int(voters.bin_start[-1])))
    for f, start in enumerate(voters.bin_start[:-1].tolist()):
        found = database.execute(f"SELECT c{f}, count(*), sum(y) FROM coded GROUP BY c{f}").fetchall()
        for code, count, sum_of_labels in found:
            mass[start + code], product[start + code] = count, sum_of_labels

    def whole(values: Any, unit: Any) -> np.ndarray:
        return np.rint(np.asarray(values, dtype=np.float64) / unit).astype(np.int64)

    return ColumnSums(
        voters, scales, n_rows, whole(mass, extent.weight_unit), whole(product, scales.units)[None],
        whole([total], scales.units), whole([n_rows], scales.square_units), float(n_rows),
    )  # fmt: skip


@dataclass(frozen=True)
class JointBySql:
    """Counts of pairs of bins: a GROUP BY two columns, for each column that is asked for and each other one."""

    database: Any
    voters: Voters

    def __call__(self, asked: Sequence[int], known: Sequence[int]) -> list[np.ndarray]:
        return [self._with(f, others_of(self.voters, i, asked, known).tolist()) for i, f in enumerate(asked)]

    def _with(self, f: int, others: Sequence[int]) -> np.ndarray:
        blocks = [np.zeros((int(self.voters.n_cuts[f]) + 2, 0), np.int32)]
        for g in others:
            counts = np.zeros((int(self.voters.n_cuts[f]) + 2, int(self.voters.n_cuts[g]) + 2), np.int32)
            query = (
                f"SELECT c{f}, c{g}, count(*) FROM coded GROUP BY c{f}, c{g}"
                if f != g
                else (f"SELECT c{f}, c{f}, count(*) FROM coded GROUP BY c{f}")
            )
            one, other, count = self.database.execute(query).fetchnumpy().values()
            counts[one, other] = count
            blocks.append(counts)
        return np.concatenate(blocks, axis=1)


def moments_by_sql(database: Any, voters: Voters) -> Moments:
    sums = sums_by_sql(database, voters)
    joint, order = JointBySql(database, voters), list(range(voters.n_columns))
    gram = TableGram(voters, joint, sums.voter_sum, sums.scales.extent, TABLE_BYTES, 1, order)
    return Moments(sums, Gram(gram, TABLE_BYTES), 1)


def main() -> None:
    import duckdb
    import pandas as pd

    random = np.random.default_rng(0)
    X = random.normal(size=(200_000, 6))
    X[random.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.abs(np.nan_to_num(X[:, 1])) + random.normal(size=len(X)) > 0.5
    names = list("abcdef")
    voters = candidate_voters(X[:20_000], thresholds=63)  # of a sample: the model is the same for the same thresholds
    with duckdb.connect() as database:
        database.register("given", pd.DataFrame(X, columns=names).assign(label=y))
        cleaned = ", ".join(f"CASE WHEN isnan({name}) THEN NULL ELSE {name} END AS {name}" for name in names)
        database.execute(f"CREATE TABLE rows AS SELECT {cleaned}, label FROM given")
        database.execute(coded_view(voters, names, "rows", "label"))
        found = boost(moments_by_sql(database, voters), "l1", reg_lambda=0.01, fit_intercept=True)
    local = column_moments(voters, voters.code(X), np.where(y, 1.0, -1.0))
    wanted = boost(local, "l1", reg_lambda=0.01, fit_intercept=True)
    if found.weight.tobytes() != wanted.weight.tobytes():
        raise SystemExit("the weights are not those of the same rows in memory")
    print(f"{np.count_nonzero(found.weight)} voters; the same bits as in memory")


if __name__ == "__main__":
    main()
