import hashlib
import json
import os
import pickle
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from model_files import (
    MODELS,
    TESTS,
    bits,
    calibrated,
    example,
    many_outputs,
    only_trees,
    parts_of_format_1,
    signed,
    softmax,
    start_python,
)

import quadboost
from quadboost.model import checked_file, hdf5
from quadboost.model import file as model_file
from quadboost.model.file import ModelFileError, ModelRecord, read_model, write_model
from quadboost.model.record import to_parts

GOLDEN_1 = TESTS / "data" / "model-v1.h5"
# Written by model_file._pack(*to_parts(calibrated()), "0.1.0"), and never again.
GOLDEN_2 = TESTS / "data" / "model-v2.h5"
NODES = ("node_feature", "node_threshold", "node_missing_right", "node_weight")
NAN = float("nan")
ROWS = np.array(
    [
        [2.0, "Québec", 1.0, 1.0],
        [1.0, "b", -1.0, 0.0],
        [NAN, "elsewhere", NAN, NAN],
        [2.0, None, 0.0, -1.0],
    ],
    dtype=object,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.h5"


def refused(path: Path, data: bytes, message: str) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


# ---- what is written can be read, by us and by others, for ever


@pytest.mark.parametrize("make", MODELS)
def test_a_model_survives_to_the_last_bit(make: Callable[[], ModelRecord], path: Path) -> None:
    write_model(path, make())
    assert bits(read_model(path)) == bits(make())


def test_arrays_can_be_written_to(path: Path) -> None:
    write_model(path, example())
    found = read_model(path)
    for array in (found.feature, found.kind, found.threshold, found.weight):
        assert array.flags.writeable
        assert array.flags.aligned
        assert array.dtype.isnative


def test_the_file_of_format_1_loads_for_ever() -> None:
    found = read_model(GOLDEN_1, "60bde2032d6f2431ac0f706aad9270c1df06c97318a9c48f1c264bc7dd2e6b9e")
    assert bits(found) == bits(example())
    assert (found.loss, found.link, found.slope) == ("squared", "clipped", 1.0)


def test_the_file_of_format_1_has_every_byte_that_it_should() -> None:
    assert model_file._pack(*parts_of_format_1(example()), "0.1.0", 1) == GOLDEN_1.read_bytes()


def test_the_file_of_format_1_predicts_what_it_predicted() -> None:
    ensemble = quadboost.load(GOLDEN_1)
    assert ensemble.decision_function(ROWS).tolist() == pytest.approx([0.1625, -0.2875, -0.1875, -0.9125], rel=1e-14)
    assert ensemble.predict(ROWS).tolist() == ["ouï ✓", "non", "non", "non"]
    known = [0.58125, 0.35625, 0.40625, 0.04375]
    assert ensemble.predict_proba(ROWS)[:, 1].tolist() == pytest.approx(known, rel=1e-14)


def test_the_file_of_format_2_loads_for_ever() -> None:
    found = read_model(GOLDEN_2, "6cfbaa0987f46e37cd5b4273b32e2899c141e94a42b553d10dd846663a19df48")
    assert bits(found) == bits(calibrated())
    assert (found.loss, found.link, found.slope) == ("squared", "logit", 2.5)


def test_the_file_of_format_2_is_written_byte_for_byte() -> None:
    assert model_file._pack(*to_parts(calibrated()), "0.1.0") == GOLDEN_2.read_bytes()


def test_the_file_of_format_2_predicts_what_it_predicted() -> None:
    ensemble = quadboost.load(GOLDEN_2)
    assert ensemble.decision_function(ROWS).tolist() == pytest.approx([0.8125, 1.1875, -0.3125, -1.875], rel=1e-14)
    assert ensemble.predict(ROWS).tolist() == ["ouï ✓", "ouï ✓", "non", "non"]
    known = [0.692636, 0.766294, 0.422506, 0.132964]
    assert ensemble.predict_proba(ROWS)[:, 1].tolist() == pytest.approx(known, rel=1e-5)
    assert [str(rule) for rule in ensemble.rules()[:2]] == [
        "-0.75  if (âge > 1.5 or missing) and ville is a or b or True or 7 or -2.5  (55.6% of the rows)",
        "+0.5  if âge <= 1.5  (44.4% of the rows)",
    ]


def test_reading_a_model_needs_numpy_alone(path: Path, run_python: Callable[..., str]) -> None:
    write_model(path, calibrated())
    code = f"""
import sys
import quadboost
quadboost.load({str(path)!r}).predict_proba([[1.0, "a", 0.0, 0.0]])
print([name for name in ("h5py", "sklearn", "scipy", "pandas", "joblib") if name in sys.modules])
"""
    assert run_python(code).strip() == "[]"


@pytest.mark.parametrize("make", MODELS)
def test_the_reader_of_the_documentation_reads_the_file(make: Callable[[], ModelRecord], path: Path) -> None:
    text = (TESTS.parent / "docs" / "model-file.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def read" in block)
    assert len(code.splitlines()) <= 25
    names: dict[str, Any] = {}
    exec(code, names)
    write_model(path, make())
    found = names["read"](path)
    assert bits(ModelRecord(**found)) == bits(make())
    old = names["read"](GOLDEN_1)
    assert bits(ModelRecord.of(quadboost.Ensemble(**old))) == bits(example())


@pytest.mark.parametrize("make", [many_outputs, softmax, only_trees])
def test_the_documentation_gives_the_header(make: Callable[[], ModelRecord], path: Path) -> None:
    write_model(path, make())
    data = path.read_bytes()
    assert data[:16] == b"QuadBoost model\n"
    assert struct.unpack_from("<QQ", data, 16) == (2, len(data) - 512)
    assert data[32:64] == hashlib.sha256(data[:32] + data[64:]).digest()
    assert data[64:96].rstrip(b"\0").decode() == quadboost.__version__
    with h5py.File(path) as file:
        names = ("metadata", "bin_mass", "bin_error", "tree_size", "node_feature", "node_mass")
        assert struct.unpack_from("<8Q", data, 96) == (*file["weight"].shape, *(len(file[name]) for name in names))
        assert file["bin_error"].shape[1] == file["node_weight"].shape[1] == file["weight"].shape[1]
        assert len({len(file[name]) for name in file if name in NODES}) == 1
    assert not any(data[160:512])


# ---- the expected SHA-256


def test_the_digest_is_that_of_the_whole_file(path: Path) -> None:
    digest = write_model(path, example())
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert bits(read_model(path, digest)) == bits(example())
    assert bits(read_model(path, f" {digest.upper()}\n")) == bits(example())


def test_another_file_than_the_expected_one_is_refused(path: Path) -> None:
    expected = write_model(path, example())
    found = write_model(path, many_outputs())
    with pytest.raises(ModelFileError, match=f"its SHA-256 is {found}, not {expected} as expected"):
        read_model(path, expected)


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 64, "0" * 63, "0" * 65])
def test_an_expectation_that_is_no_digest_is_refused(wrong: str, path: Path) -> None:
    write_model(path, example())
    with pytest.raises(
        ModelFileError, match=f"the SHA-256 that it should have is '{wrong}', not 64 hexadecimal digits"
    ):
        read_model(path, wrong)


# ---- other files


def test_a_missing_file_is_missing(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(path)):
        read_model(path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=f"cannot load {tmp_path}: it is a directory"):
        read_model(tmp_path)
    with pytest.raises(ModelFileError, match=f"cannot save the model to {tmp_path}: it is a directory"):
        write_model(tmp_path, example())


def test_a_named_pipe_is_refused_at_once(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        read_model(path)
    with pytest.raises(ModelFileError, match="it is not a regular file"):
        write_model(path, example())


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_never_loaded(protocol: int, path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(path) + ".was-loaded",)

    refused(path, pickle.dumps(Bomb(), protocol), "it is a pickle, not a model that quadboost wrote")
    assert not Path(f"{path}.was-loaded").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"QuadBoost model\n", "it has only 16 bytes: it was cut short"),
        (b"QuadBoost model\n".ljust(512, b"\0"), "it is damaged"),
        (b"\0" * 5000, "it is not a model that quadboost wrote"),
        (b"a,b\n1,2\n", "it is not a model that quadboost wrote"),
        (b"PK\x03\x04".ljust(1000, b"\0"), "it is not a model that quadboost wrote"),
    ],
)
def test_something_else_is_refused(data: bytes, message: str, path: Path) -> None:
    refused(path, data, message)


def test_another_hdf5_file_is_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["weight"] = np.ones(3)
    refused(path, path.read_bytes(), "it is an HDF5 file, but not a model that quadboost wrote")


def test_a_huge_file_is_not_read(path: Path) -> None:
    data = model_file._pack(*to_parts(example()), "0.1.0")
    path.write_bytes(data)
    os.truncate(path, 2**40)  # takes no space on the disk
    with pytest.raises(ModelFileError, match="it has 1099511627776 bytes, at most 4294967296 are read"):
        read_model(path)


def test_a_newer_format_says_which_version_to_use(path: Path) -> None:
    data = model_file._pack(*to_parts(example()), "7.1.0")
    message = (
        "it has format 3 and was written by quadboost '7.1.0'; this version reads format 2 and older ones: "
        "use that version, or a newer one"
    )
    refused(path, signed(data[:16] + struct.pack("<Q", 3) + data[24:]), message)
    # What follows the first five fields may be anything in a newer format.
    refused(path, signed(data[:16] + struct.pack("<Q", 99) + data[24:96] + b"new" * 200), "it has format 99")


def test_a_file_that_says_another_known_format_is_refused(path: Path) -> None:
    for golden, other in ((GOLDEN_1, 2), (GOLDEN_2, 1)):
        data = golden.read_bytes()
        refused(path, signed(data[:16] + struct.pack("<Q", other) + data[24:]), "its HDF5 structure is not the one")


# ---- damage


@pytest.mark.slow
def test_a_file_cut_short_or_grown_is_refused(path: Path) -> None:
    data = GOLDEN_2.read_bytes()
    for length in range(len(data)):
        refused(path, data[:length], "it is empty|cut short|it is not a model")
    refused(path, data + b"\0", "cut short or damaged")
    refused(path, data + data, "cut short or damaged")


@pytest.mark.thinned(1)
@pytest.mark.parametrize("golden", [GOLDEN_1, GOLDEN_2])
def test_any_wrong_bit_is_found(golden: Path) -> None:
    data = golden.read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            wrong = bytearray(data)
            wrong[place] ^= 1 << bit
            with pytest.raises(ModelFileError):
                model_file._KIND.unpack(bytes(wrong))


@pytest.mark.slow
@pytest.mark.parametrize("golden", [GOLDEN_1, GOLDEN_2])
def test_any_wrong_byte_of_the_structure_is_found_also_when_signed(golden: Path) -> None:
    data = golden.read_bytes()
    with h5py.File(golden) as file:
        end = min(file[name].id.get_offset() for name in file)
    for place in (*range(24), *range(96, end)):
        for change in (1, 128, 255):
            wrong = bytearray(data)
            wrong[place] ^= change
            with pytest.raises(ModelFileError):
                model_file._KIND.unpack(signed(bytes(wrong)))


# ---- hostile files, signed


def rewritten(path: Path, change: Callable[[h5py.File], object]) -> bytes:
    """The file of the example, changed by h5py and signed."""
    path.write_bytes(GOLDEN_2.read_bytes())
    with h5py.File(path, "r+") as file:
        change(file)
    return signed(path.read_bytes())


def instead(name: str, **how: Any) -> Callable[[h5py.File], object]:
    """The change that puts another dataset in the place of one."""

    def change(file: h5py.File) -> None:
        same = {} if "shape" in how else {"data": file[name][()]}
        del file[name]
        file.create_dataset(name, **{**same, **how})

    return change


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((6,), "<f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "threshold", (6,))
    del file["threshold"]
    file.create_virtual_dataset("threshold", layout)


def link(name: str, target: Any) -> Callable[[h5py.File], object]:
    def change(file: h5py.File) -> None:
        del file[name]
        file[name] = target(file)

    return change


HOSTILE = {
    "external link": link("weight", lambda _: h5py.ExternalLink("/etc/passwd", "/weight")),
    "soft link": link("weight", lambda _: h5py.SoftLink("/threshold")),
    "dangling soft link": link("weight", lambda _: h5py.SoftLink("/nothing")),
    "hard link": link("weight", lambda file: file["threshold"]),
    "link to the root group": link("weight", lambda file: file["/"]),
    "a group": link("weight", lambda file: file.create_group("other")),
    "virtual dataset": virtual,
    "external storage": instead("threshold", shape=(6,), dtype="<f8", external=[("/etc/passwd", 0, 48)]),
    "slope elsewhere": link("slope", lambda _: h5py.SoftLink("/intercept")),
    "no slope": lambda file: file.pop("slope"),
    "shape bomb": instead("threshold", shape=(2**42,), dtype="<f8"),
    "shape bomb in chunks": instead("threshold", shape=(2**42,), dtype="<f8", chunks=(2**20,)),
    "gzip": instead("threshold", compression="gzip"),
    "gzip bomb": instead("metadata", data=np.zeros(2**24, np.uint8), compression="gzip"),
    "chunks": instead("threshold", chunks=(2,)),
    "resizable": instead("threshold", maxshape=(None,)),
    "checksum filter": instead("threshold", fletcher32=True),
    "big-endian": instead("threshold", dtype=">f8"),
    "single precision": instead("threshold", dtype="<f4"),
    "wide integers": instead("feature", dtype="<i8"),
    "unsigned": instead("feature", dtype="<u4"),
    "another rank": instead("threshold", data=np.zeros((6, 1))),
    "scalar": instead("threshold", data=1.0),
    "null dataspace": instead("threshold", data=h5py.Empty("<f8")),
    "compound": instead("threshold", shape=(6,), dtype=np.dtype([("a", "<f8")])),
    "variable-length text": instead("metadata", data=["a", "b"], dtype=h5py.string_dtype()),
    "object reference": instead("threshold", shape=(6,), dtype=h5py.ref_dtype),
    "attribute of a dataset": lambda file: file["weight"].attrs.update(a=1),
    "attribute of the file": lambda file: file.attrs.update(a="b"),
    "one more dataset": lambda file: file.create_dataset("more", data=[1]),
    "one more group": lambda file: file.create_group("more"),
    "a dataset less": lambda file: file.pop("kind"),
    "a named type": lambda file: file.update(more=np.dtype("f8")),
    "nothing": lambda file: [file.pop(name) for name in list(file)],
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_structure_of_another_writer_is_refused(change: Any, path: Path) -> None:
    refused(path, rewritten(path, change), "its HDF5 structure is not the one that quadboost writes|it is too short")


def test_a_number_changed_by_another_writer_is_checked(path: Path) -> None:
    refused(
        path,
        rewritten(path, lambda file: file["feature"].write_direct(np.full(6, 99, np.int32))),
        "at feature 99",
    )
    refused(
        path,
        rewritten(path, lambda file: file["tree_size"].write_direct(np.array([2**31 - 1, 2**31 - 1, 11], np.int32))),
        "the trees do not share out the 9 nodes in order; each has at least one",
    )
    path.write_bytes(rewritten(path, lambda file: file["weight"].write_direct(np.full((6, 1), 2.0))))
    assert read_model(path).weight.tolist() == [2.0] * 6


def test_a_structure_that_crashes_libhdf5_is_refused(path: Path) -> None:
    """The root group's B-tree node says that it is no leaf, and that its child is itself."""
    data = bytearray(GOLDEN_2.read_bytes())
    node = data.index(b"TREE")
    data[node + 5] = 1
    struct.pack_into("<Q", data, node + 32, node - 512)
    refused(path, signed(bytes(data)), "its HDF5 structure is not the one that quadboost writes")


@pytest.mark.parametrize(
    "sizes",
    [
        (2**61, 1, 0),
        (2**64 - 1, 2**64 - 1, 0),
        (0, 2**61, 0),
        (6, 1, 2**26),
        *((0, 1, 0, *[0] * k, size, *[0] * (4 - k)) for k in range(5) for size in (2**61, 2**64 - 1)),
    ],
)
def test_sizes_beyond_the_file_are_refused(sizes: tuple[int, ...], path: Path) -> None:
    data = GOLDEN_2.read_bytes()
    sized = data[:96] + struct.pack(f"<{len(sizes)}Q", *sizes) + data[96 + 8 * len(sizes) :]
    refused(path, signed(sized), "it is too short for")


@pytest.mark.parametrize("n_errors", [0, 1, 2**61, 2**64 - 1])
def test_no_output_is_refused_however_many_bins_have_none(n_errors: int, path: Path) -> None:
    sizes = (0, 0, 2, 0, n_errors, 0, 0, 0, 0)
    structure = hdf5.structure(model_file._layout(*sizes), 512, 32)
    head = GOLDEN_2.read_bytes()[:96] + struct.pack("<9Q", *sizes)
    refused(path, signed(head.ljust(512, b"\0") + structure + b"{}"), "there is no output")


def test_metadata_beyond_the_limit_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = GOLDEN_2.read_bytes()
    refused(
        path,
        signed(data[:96] + struct.pack("<QQQ", 6, 1, 2**26 + 1) + data[120:]),
        "67108865 bytes of metadata, at most",
    )
    monkeypatch.setattr(checked_file, "MAX_METADATA_BYTES", 1000)
    path.unlink()
    with pytest.raises(ModelFileError, match="bytes of metadata, at most 1000 are read"):
        write_model(path, replace(example(), info={"long": "x" * 1000}))
    monkeypatch.setattr(checked_file, "MAX_FILE_BYTES", 2000)
    with pytest.raises(ModelFileError, match="bytes, at most 2000 are read"):
        write_model(path, example())


def fuzz(directory: Path, n_files: int, seeds: Sequence[int]) -> None:
    """Read so many files for each seed, in a process of its own."""
    program = str(TESTS / "fuzz_model_file.py")
    workers = [start_python(directory, program, directory, seed, n_files) for seed in seeds]
    reports = [worker.communicate(timeout=600) for worker in workers]
    together: Counter[str] = Counter()
    for worker, (out, errors) in zip(workers, reports, strict=True):
        assert worker.returncode == 0, errors
        outcomes = {kind: Counter(of_kind) for kind, of_kind in json.loads(out).items()}
        total = sum(outcomes.values(), Counter())
        assert total.total() == n_files
        assert min(total["refused"], total["another valid model"]) > n_files // 20
        together.update({kind: of_kind["another valid model"] for kind, of_kind in outcomes.items()})
    assert together.pop("bytes") == 0
    assert min(together.values()) > 0, "every kind of forgery gets past the digest"


def test_mutated_files_are_refused_or_valid(tmp_path: Path) -> None:
    fuzz(tmp_path, 700, [4])


@pytest.mark.slow
def test_many_mutated_files_are_refused_or_valid(tmp_path: Path) -> None:
    fuzz(tmp_path, 10_000, [1000, 1001])  # scripts/fuzz_model_files.py reads any number
