"""The bytes of an HDF5 file that holds a few plain numeric datasets and nothing else.

All of such a file but its numbers follows from the names, types and shapes of the datasets: `structure`. So
a reader need not let libhdf5 loose on a file that a stranger made. It computes the structure, compares, and
takes the numbers from where they must be. libhdf5 goes where a file sends it: by links, virtual datasets and
external storage into other files, and by a group whose B-tree is its own child into a segmentation fault
(HDF5 1.14.2 and 2.0.0).

Written in the oldest version of the format, which every HDF5 library reads. Sections in the comments are
those of https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html
"""

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

_NOWHERE = 2**64 - 1  # the "undefined address"
_INTERNAL_K = 16  # the usual one
_TREE_BYTES = 24 + 8 * (4 * _INTERNAL_K + 1)

_DATATYPES = {  # IV.A.2.d
    "<f8": struct.pack("<B3BIHH4BI", 0x11, 0x20, 63, 0, 8, 0, 64, 52, 11, 0, 52, 1023),
    "<i8": struct.pack("<B3BIHH", 0x10, 8, 0, 0, 8, 0, 64),
    "<i4": struct.pack("<B3BIHH", 0x10, 8, 0, 0, 4, 0, 32),
    "|u1": struct.pack("<B3BIHH", 0x10, 0, 0, 0, 1, 0, 8),
}


class Dataset(NamedTuple):
    name: str
    dtype: str  # a key of _DATATYPES
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype[2:])


def structure(datasets: Sequence[Dataset], userblock: int, most: int = 8) -> bytes:
    """The bytes between the userblock and the data, which follows dataset by dataset without gaps.

    All datasets are named in one leaf, which has room for `most` of them: an even number, and 8 is the usual one.
    """
    if len(datasets) > most:
        raise ValueError(f"{len(datasets)} datasets, at most {most} fit")
    leaf_bytes = 8 + 40 * most

    # Where all is, in the order of the file. Addresses count from the end of the userblock.
    names, name_at = b"\0" * 8, {}
    for dataset in datasets:
        name_at[dataset.name] = len(names)
        names += _padded(dataset.name.encode("ascii") + b"\0")
    root_at = 96
    tree_at = root_at + len(_root_header(0, 0))
    heap_at = tree_at + _TREE_BYTES
    leaf_at = heap_at + 32 + len(names)
    end, header_at = leaf_at + leaf_bytes, {}
    for dataset in datasets:
        header_at[dataset.name] = end
        end += len(_dataset_header(dataset, 0))
    data_at = {}
    for dataset in datasets:
        data_at[dataset.name] = end
        end += dataset.n_bytes

    in_order = sorted(name_at)  # names are looked up by bisection
    superblock = struct.pack(  # II.A; the end of the file alone counts from the file's very beginning
        "<8s8BHHIQQQQ",
        *(b"\x89HDF\r\n\x1a\n", 0, 0, 0, 0, 0, 8, 8, 0, most // 2, _INTERNAL_K, 0),
        *(userblock, _NOWHERE, userblock + end, _NOWHERE),
    )
    entry = struct.pack("<QQIIQQ", 0, root_at, 1, 0, tree_at, heap_at)  # III.C
    root = _root_header(tree_at, heap_at)
    siblings = (_NOWHERE, _NOWHERE)
    tree = struct.pack("<4sBBHQQQQQ", b"TREE", 0, 0, 1, *siblings, 0, leaf_at, name_at[in_order[-1]])  # III.A.1
    heap = struct.pack("<4sB3xQQQ", b"HEAP", 0, len(names), 1, heap_at + 32) + names  # III.D; 1: nothing free
    leaf = struct.pack("<4sBxH", b"SNOD", 1, len(datasets))  # III.B
    leaf += b"".join(struct.pack("<QQ24x", name_at[name], header_at[name]) for name in in_order)
    headers = [_dataset_header(dataset, data_at[dataset.name]) for dataset in datasets]
    tree, leaf = tree.ljust(_TREE_BYTES, b"\0"), leaf.ljust(leaf_bytes, b"\0")
    return b"".join([superblock, entry, root, tree, heap, leaf, *headers])


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)


def _object_header(*messages: tuple[int, int, bytes]) -> bytes:
    """An object header (IV.A.1.a) of messages (type, flags, content)."""
    body = b""
    for kind, flags, content in messages:
        body += struct.pack("<HHB3x", kind, len(_padded(content)), flags) + _padded(content)
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def _root_header(tree_at: int, heap_at: int) -> bytes:
    return _object_header((0x11, 0, struct.pack("<QQ", tree_at, heap_at)))


def _dataset_header(dataset: Dataset, data_at: int) -> bytes:
    rank, n_bytes = len(dataset.shape), dataset.n_bytes
    dataspace = struct.pack(f"<BBB5x{rank}Q", 1, rank, 0, *dataset.shape)
    fill_value = struct.pack("<BBBBI", 2, 2, 2, 1, 0)  # the usual one: zero
    contiguous = struct.pack("<BBQQ", 3, 1, data_at if n_bytes else _NOWHERE, n_bytes)
    return _object_header((1, 0, dataspace), (3, 1, _DATATYPES[dataset.dtype]), (5, 1, fill_value), (8, 0, contiguous))
