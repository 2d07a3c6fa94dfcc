"""A recipe: fit to a Spark DataFrame on its executors, by a source of its partitions.

    python scripts/scale_with_spark.py

Needs pyspark and Java, and quadboost wherever Python runs. The script makes a table, fits it in both ways, and
compares.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd

from quadboost import QuadBoostClassifier
from quadboost.parts.source import Part

FAN_IN = 8  # answers that one task adds up


@dataclass(frozen=True)
class Labelled:
    """Makes a part of the rows of a partition, which Spark hands over in batches."""

    target: str

    def __call__(self, batches: Iterator[pd.DataFrame]) -> Iterator[Part]:
        rows = [batch for batch in batches if len(batch)]
        if rows:
            frame = pd.concat(rows, ignore_index=True)
            yield Part(frame.drop(columns=self.target), frame[self.target])


def unpickled(batches: Iterator[pd.DataFrame]) -> Iterator[Any]:
    for batch in batches:
        yield from map(pickle.loads, batch["what"])


@dataclass(frozen=True)
class SparkSource:
    """Parts are partitions of a Spark DataFrame, or what was made of them, pickled: in rows of one column, `what`."""

    frame: Any
    read: Callable[[Iterator[pd.DataFrame]], Iterator[Any]]
    room: int = 1 << 26  # bytes of codes that may come to the driver
    n_threads: int = 1

    def _each(self, question: Callable[[Any], Any]) -> Any:
        read = self.read

        def ask(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for part in read(batches):
                yield pd.DataFrame({"what": [pickle.dumps(question(part))]})

        return self.frame.mapInPandas(ask, "what binary")

    def reduce(self, question: Callable[[Any], Any], add: Callable[[Any, Any], Any] = add) -> Any:
        answers = self._each(question)

        def add_up(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            found = list(unpickled(batches))
            if found:
                yield pd.DataFrame({"what": [pickle.dumps(reduce(add, found))]})

        n_parts = self.frame.rdd.getNumPartitions()
        while n_parts > 1:
            n_parts = -(-n_parts // FAN_IN)
            answers = answers.repartition(n_parts).mapInPandas(add_up, "what binary")
        return pickle.loads(answers.collect()[0].what)

    def map(self, make: Callable[[Any], Any]) -> SparkSource:
        return SparkSource(self._each(make).persist(), unpickled, self.room, self.n_threads)

    def gather(self) -> list[Any]:
        return [pickle.loads(row.what) for row in self.frame.collect()]

    def close(self) -> None:
        self.frame.unpersist()


def main() -> None:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(20_000, 5)), columns=list("abcde"))
    table["kind"] = random.choice(["x", "y", "z"], len(table))
    table["label"] = np.where(table["a"] + (table["kind"] == "x") + random.normal(size=len(table)) > 0, "yes", "no")
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.createDataFrame(table).repartition(3)
    model = QuadBoostClassifier().fit(SparkSource(frame, Labelled("label"), room=0))
    spark.stop()
    local = QuadBoostClassifier().fit(table.drop(columns="label"), table["label"])
    if model.ensemble_.weight.tobytes() != local.ensemble_.weight.tobytes():
        raise SystemExit("the weights are not those of the same rows in memory")
    print(f"{model.ensemble_}; the same bits as in memory")


if __name__ == "__main__":
    main()
