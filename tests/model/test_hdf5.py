import io

import h5py
import numpy as np
import pytest

from quadboost.model.hdf5 import Dataset, structure


def file_of(arrays: dict[str, np.ndarray], userblock: int) -> bytes:
    datasets = [Dataset(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    return bytes(userblock) + structure(datasets, userblock) + b"".join(a.tobytes() for a in arrays.values())


@pytest.mark.parametrize("userblock", [0, 512, 1024])
@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_libhdf5_reads_what_we_write(n: int, userblock: int) -> None:
    rng = np.random.default_rng(n)
    arrays = {
        "wide": rng.normal(size=(n, 3)),
        "f": rng.normal(size=n),
        "integers": rng.integers(-(2**31), 2**31, n, dtype=np.int32),
        "a rather long name": rng.integers(0, 256, n, dtype=np.uint8),
        "cube": rng.normal(size=(2, n, 3)),
    }
    with h5py.File(io.BytesIO(file_of(arrays, userblock)), "r") as file:
        assert file.userblock_size == userblock
        assert set(file) == set(arrays)
        assert not file.attrs
        for name, array in arrays.items():
            dataset = file[name]
            assert (dataset.dtype, dataset.shape) == (array.dtype, array.shape)
            assert (dataset.chunks, dataset.compression, dataset.maxshape) == (None, None, array.shape)
            assert not dataset.attrs
            assert dataset[()].tobytes() == array.tobytes()


@pytest.mark.parametrize("n_datasets", [1, 7, 8])
def test_every_name_is_found_whatever_the_order(n_datasets: int) -> None:
    arrays = {name: np.full(3, ord(name), np.uint8) for name in "hbgcadfe"[:n_datasets]}
    with h5py.File(io.BytesIO(file_of(arrays, 512)), "r") as file:
        assert list(file) == sorted(arrays)
        assert all((file[name][()] == ord(name)).all() for name in arrays)


def test_libhdf5_can_go_on_writing_to_the_file() -> None:
    buffer = io.BytesIO(file_of({"a": np.arange(5.0)}, 512))
    with h5py.File(buffer, "r+") as file:
        file["b"] = np.arange(3)
        file["a"].attrs["unit"] = "metre"
    with h5py.File(buffer, "r") as file:
        assert file["b"][()].tolist() == [0, 1, 2]
        assert file["a"][()].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n_datasets", [1, 9, 32])
def test_a_larger_leaf_has_room_for_more(n_datasets: int) -> None:
    arrays = {name: np.full(2, ord(name), np.uint8) for name in "hbgcadfeponmlkjixwvutsrqFEDCBAzy"[:n_datasets]}
    datasets = [Dataset(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    data = bytes(512) + structure(datasets, 512, most=32) + b"".join(array.tobytes() for array in arrays.values())
    with h5py.File(io.BytesIO(data), "r") as file:
        assert list(file) == sorted(arrays)
        assert all((file[name][()] == ord(name)).all() for name in arrays)


def test_more_datasets_than_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="9 datasets, at most 8 fit"):
        structure([Dataset(name, "<f8", (1,)) for name in "abcdefghi"], 512)
    with pytest.raises(ValueError, match="33 datasets, at most 32 fit"):
        structure([Dataset(name, "<f8", (1,)) for name in "abcdefghijklmnopqrstuvwxyzABCDEFG"], 512, most=32)
