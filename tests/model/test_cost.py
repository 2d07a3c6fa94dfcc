"""A small file, whatever it says, takes little time and memory: to load, and at the first prediction."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import example, forged, to_parts, with_metadata

import quadboost
from quadboost import Ensemble
from quadboost.model import ensemble as ensemble_module
from quadboost.model import record
from quadboost.model.file import ModelFileError, ModelRecord, read_model, write_model

N_LEVELS, N_OUTPUTS = 20_000, 1_000
MOST_BYTES = 20_000_000  # of N_LEVELS * N_OUTPUTS numbers there would be 160,000,000


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def level_model(levels: list[list[Any]], level: int) -> ModelRecord:
    """One voter, on a level of the only feature, and many outputs."""
    rng = np.random.default_rng(0)
    return ModelRecord(
        np.zeros(1, np.int32),
        np.array([float(level)]),
        rng.normal(size=(1, N_OUTPUTS)),
        rng.normal(size=N_OUTPUTS),
        np.ones(1, np.uint8),
        n_features=1,
        categories={0: levels},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "level"),
    {
        "levels without a voter": ([[k] for k in range(N_LEVELS)], 7),
        "a level of many numbers": ([[-1], list(range(N_LEVELS))], 1),
    }.values(),
)
@pytest.mark.parametrize("as_frame", [False, True])
def test_categories_times_outputs_take_little_memory(
    levels: list[list[Any]], level: int, as_frame: bool, tmp_path: Path
) -> None:
    path = tmp_path / "model.h5"
    write_model(path, level_model(levels, level))
    X: Any = np.array([[7.0], [-5.0]], dtype=object if as_frame else float)
    scores = None

    def predict() -> None:
        nonlocal scores
        scores = quadboost.load(path).decision_function(X)

    assert peak_bytes(predict) < MOST_BYTES
    known = read_model(path)
    np.testing.assert_allclose(scores, known.intercept + np.array([[1.0], [-1.0]]) * known.weight)


@pytest.mark.parametrize("most_cells", [0, 1 << 22])
@pytest.mark.parametrize("voted", [[], [0], [3], [0, 1, 2, 3], [1, 3]])
def test_a_level_without_a_voter_scores_as_one_never_seen(
    voted: list[int], most_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble_module, "MOST_CELLS", most_cells)
    n = len(voted)
    model = Ensemble(
        np.zeros(n + 1, np.int32),
        np.array([*voted, 0.0]),
        2.0 ** np.arange(n + 1),
        0.25,
        kind=np.array([*[1] * n, 2], np.uint8),
        n_features=1,
        categories={0: [[1], [2, 3], [10], [11, -4]]},
    )
    values = np.array([1, 2, 3, 10, 11, -4, 5, np.nan])
    level = [0, 1, 1, 2, 3, 3, -1, None]
    wanted = [
        0.25 + 2.0**n * (1 if vote is None else -1)
        + sum(0.0 if vote is None else 2.0**i * (1 if vote == of else -1) for i, of in enumerate(voted))
        for vote in level
    ]  # fmt: skip
    assert model.decision_function(values[:, None]).tolist() == wanted
    assert model.decision_function(values[:, None].astype(object)).tolist() == wanted
    (shape,) = model.shape_functions()
    assert [0.25 + value for value in (*shape.values.tolist(), shape.missing)] == [
        wanted[k] for k in (0, 1, 3, 4, 6, 7)
    ]


@pytest.mark.slow
def test_integers_of_one_hash_cannot_be_categories(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    alike = [[k * (2**61 - 1)] for k in range(30_000)]
    assert len({hash(value) for (value,) in alike}) == 1
    path.write_bytes(forged(example(), lambda _, metadata: metadata.update(categories={"1": alike})))
    with pytest.raises(ModelFileError, match="a category of feature 1 is 20752587082923245559: an integer beyond 64"):
        read_model(path)


@pytest.mark.parametrize("integer", [-(2**63), 2**64 - 1])
def test_integers_of_64_bits_can_be_categories(integer: int, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    write_model(path, replace(example(), categories={1: [[integer], ["a"]]}))
    assert read_model(path).categories == {1: [[integer], ["a"]]}


@pytest.mark.parametrize("integer", [-(2**63) - 1, 2**64])
def test_integers_beyond_64_bits_are_neither_saved_nor_loaded(integer: int, tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    with pytest.raises(ModelFileError, match="an integer beyond 64 bits; make it text"):
        write_model(path, replace(example(), categories={1: [[integer], ["a"]]}))


def test_one_long_label_does_not_make_all_others_long(tmp_path: Path) -> None:
    path, n = tmp_path / "model.h5", 2_000
    labels = ["x" * n * 2, *map(str, range(n))]
    model = replace(
        level_model([["a"], ["b"]], 0),
        weight=np.ones((1, n + 1)),
        intercept=np.ones(n + 1),
        classes=np.array(labels[1:]),
    )

    def put(_: Any, metadata: dict[str, Any]) -> None:
        metadata["classes"]["values"] = labels

    path.write_bytes(forged(model, put))

    def read() -> None:
        with pytest.raises(ModelFileError, match=r"the classes take 32016000 bytes .* at most 16777216 are allowed"):
            read_model(path)

    assert peak_bytes(read) < 4_000_000
    path.unlink()
    write_model(path, replace(model, classes=np.array(labels, object)))
    assert read_model(path).classes.tolist() == labels


@pytest.mark.parametrize("item", [b"[],", b"{},", b"0,", b'"a",'])
def test_metadata_of_too_many_items_is_not_parsed(item: bytes, tmp_path: Path) -> None:
    path, n = tmp_path / "model.h5", record.MAX_ITEMS + 1
    text = to_parts(example())[1].replace(b'"l1"', b"[" + item * n + b"0]")
    path.write_bytes(with_metadata(example(), text))

    def read() -> None:
        with pytest.raises(ModelFileError, match=r"metadata has \d+ commas and opening brackets, at most 2097152 are"):
            read_model(path)

    assert peak_bytes(read) < 4 * len(text)


def test_metadata_of_as_many_items_as_allowed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, text = tmp_path / "model.h5", to_parts(example())[1]
    monkeypatch.setattr(record, "MAX_ITEMS", sum(map(text.count, (b",", b"[", b"{"))))
    write_model(path, example())
    with pytest.raises(ModelFileError, match="commas and opening brackets"):
        write_model(tmp_path / "other.h5", replace(example(), info={**example().info, "more": 1}))
