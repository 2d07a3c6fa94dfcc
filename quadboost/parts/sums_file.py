"""Kept sums in a file, both ways. A file may come from a stranger: every value is checked, as in model files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._version import __version__
from ..common.checks import file_name
from ..data.exact import Extent, Scales
from ..data.schema import FrameSchema
from ..model.checked_file import CheckedFileError, Format, Kind
from ..model.hdf5 import Dataset
from ..model.record import ModelRecord, from_parts, to_parts
from ..moments.gram import COUNTS
from ..moments.sums import ColumnSums
from ..voters.columns import Voters
from ..voters.thresholds import cuts_of_levels
from .sums import KeptSums, n_joint

_FIGURES = {"n_rows": int, "total_weight": float, "extent": list}


class SumsFileError(CheckedFileError):
    """A file that does not hold whole and valid sums, or sums that no file can hold."""


def _layout(
    n_features: int, n_outputs: int, n_cuts: int, n_bins: int, n_counts: int, n_sums: int, n_metadata: int
) -> list[Dataset]:
    return [
        Dataset("cuts", "<f8", (n_cuts,)),
        Dataset("origin", "<f8", (n_outputs,)),
        Dataset("largest", "<f8", (n_outputs,)),
        Dataset("joint_sums", "<f8", (n_sums,)),
        Dataset("mass", "<i8", (n_bins,)),
        Dataset("product", "<i8", (n_outputs, n_bins)),
        Dataset("sum_of_targets", "<i8", (n_outputs,)),
        Dataset("sum_of_squares", "<i8", (n_outputs,)),
        Dataset("squares", "<i8", (2,)),
        Dataset("joint_counts", "<i4", (n_counts,)),
        Dataset("n_cuts", "<i4", (n_features,)),
        Dataset("is_level", "|u1", (n_features,)),
        Dataset("has_missing", "|u1", (n_features,)),
        Dataset("metadata", "|u1", (n_metadata,)),
    ]


_SIZES = ("features", "outputs", "cuts", "bins", "joint counts", "joint sums", "bytes of metadata")
_KIND = Kind(b"QuadBoost sums1\n", "a file of sums", {1: Format(_SIZES, 32, _layout)}, "output", SumsFileError)


def write_sums(path: str, kept: KeptSums) -> None:
    try:
        data, arrays = _pack(kept)
        _from_arrays(*_KIND.unpack(data))  # what could not be read is not written
        _KIND.write(path, data, arrays)
    except CheckedFileError as error:
        raise SumsFileError(f"cannot save the sums to {path}: {error}") from None


def load_sums(path: str | os.PathLike[str]) -> KeptSums:
    """Read sums that `KeptSums.save` or quadboost-sums wrote."""
    path = file_name(path)
    try:
        return _from_arrays(*_KIND.unpack(_KIND.read(path)))
    except CheckedFileError as error:
        raise SumsFileError(f"cannot load {path}: {error}") from None


def _pack(kept: KeptSums) -> tuple[bytes, dict[str, np.ndarray]]:
    sums, voters = kept.sums, kept.sums.voters
    joint = np.concatenate([table.ravel() for table in kept.joint])
    has_counts = joint.dtype == COUNTS
    extent = sums.scales.extent
    arrays = {
        "cuts": np.concatenate([np.empty(0), *voters.cuts]).astype("<f8"),
        "origin": np.array(sums.scales.origin, dtype="<f8"),
        "largest": np.array(sums.scales.largest, dtype="<f8"),
        "joint_sums": joint[:0].astype("<f8") if has_counts else joint.astype("<f8"),
        "joint_counts": joint.astype("<i4") if has_counts else joint[:0].astype("<i4"),
        "n_cuts": voters.n_cuts.astype("<i4"),
        "is_level": voters.is_level,
        "has_missing": voters.has_missing,
        "squares": kept.squares.astype("<i8"),
    }
    names = ("mass", "product", "sum_of_targets", "sum_of_squares")
    arrays |= {name: getattr(sums, name).astype("<i8") for name in names}
    n_outputs = len(sums.product)
    info = {
        "n_rows": int(sums.n_rows),
        "total_weight": float(sums.total_weight),
        "extent": [extent.n_rows, extent.total, extent.largest, extent.is_whole],
    }
    metadata = to_parts(_empty_model(kept, n_outputs, info))[1]
    sizes = (voters.n_features, *arrays["product"].shape[:1], len(arrays["cuts"]), len(sums.mass))
    sizes += (len(arrays["joint_counts"]), len(arrays["joint_sums"]), len(metadata))
    return _KIND.pack(sizes, arrays, metadata, __version__, 1), arrays


def _empty_model(kept: KeptSums, n_outputs: int, info: dict[str, Any]) -> ModelRecord:
    """A model without voters: what it says of columns and labels is written, and checked, as in model files."""
    shape = (0,) if kept.one_output else (0, n_outputs)
    return ModelRecord(
        np.empty(0, np.int32), np.empty(0), np.empty(shape), 0.0 if kept.one_output else np.zeros(n_outputs),
        np.empty(0, np.uint8), kept.schema.n_features, kept.classes, kept.schema.feature_names, kept.schema.categories,
        info=info,
    )  # fmt: skip


def _from_arrays(arrays: dict[str, np.ndarray], metadata: bytes, _: int) -> KeptSums:
    n_outputs = len(arrays["origin"])
    one = ModelRecord(
        np.empty(0, np.int32), np.empty(0), np.empty((0, n_outputs)), np.zeros(n_outputs), np.empty(0, np.uint8), 0
    )
    record = from_parts(to_parts(one)[0], metadata, 2)
    schema = FrameSchema(record.n_features, record.feature_names, record.categories)
    voters = _voters(arrays, schema)
    n_rows, total, extent = _figures(record.info)
    if (arrays["largest"] < 0).any() or not all(np.isfinite(arrays[name]).all() for name in ("largest", "origin")):
        raise SumsFileError("the scales of the targets are not finite numbers")
    scales = Scales(extent, tuple(arrays["origin"].tolist()), tuple(arrays["largest"].tolist()))
    names = ("mass", "product", "sum_of_targets", "sum_of_squares")
    sums = ColumnSums(voters, scales, n_rows, **{name: arrays[name] for name in names}, total_weight=total)
    joint = _joint(arrays, voters)
    _check(sums, joint)
    one_output = record.weight.ndim == 1
    return KeptSums(schema, record.classes, one_output, sums, joint, arrays["squares"])


def _figures(info: dict[str, Any]) -> tuple[int, float, Extent]:
    if info.keys() != _FIGURES.keys() or any(type(info[name]) is not kind for name, kind in _FIGURES.items()):
        raise SumsFileError("the figures of the rows are not those that quadboost writes")
    extent = info["extent"]
    if [type(value) for value in extent] != [int, float, float, bool] or min(extent[:3]) < 0 or info["n_rows"] < 0:
        raise SumsFileError(f"the extent {extent!r:.60} is not that of rows")
    if not 0 <= info["total_weight"] <= 1e300 or not 0 < extent[1] <= 1e300 or not 0 < extent[2] <= 1e300:
        raise SumsFileError(f"the weight {info['total_weight']!r} is not that of rows")
    return info["n_rows"], info["total_weight"], Extent(*extent)


def _voters(arrays: dict[str, np.ndarray], schema: FrameSchema) -> Voters:
    n_cuts, cuts = arrays["n_cuts"], arrays["cuts"]
    if len(n_cuts) != schema.n_features or (n_cuts < 0).any() or n_cuts.sum() != len(cuts):
        raise SumsFileError("the thresholds do not go with the features")
    if (arrays["is_level"] > 1).any() or (arrays["has_missing"] > 1).any() or not np.isfinite(cuts).all():
        raise SumsFileError("the voters are not ones that quadboost makes")
    each = np.split(cuts, np.cumsum(n_cuts)[:-1])
    for f, ascending in enumerate(each):
        levels = schema.categories.get(f)
        expected = ascending if levels is None else cuts_of_levels(len(levels))
        if (levels is not None) != bool(arrays["is_level"][f]) or not np.array_equal(ascending, expected):
            raise SumsFileError(f"the levels of feature {f} are not those of its voters")
        if (ascending[1:] <= ascending[:-1]).any():
            raise SumsFileError(f"the thresholds of feature {f} do not ascend")
    return Voters(each, arrays["is_level"], arrays["has_missing"])


def _joint(arrays: dict[str, np.ndarray], voters: Voters) -> list[np.ndarray]:
    counts, sums = arrays["joint_counts"], arrays["joint_sums"]
    if len(arrays["mass"]) != voters.bin_start[-1] or {len(counts), len(sums)} != {0, n_joint(voters)}:
        raise SumsFileError("the sums do not go with the voters")
    rest, joint = counts if len(counts) else sums, []
    if not np.isfinite(rest).all():
        raise SumsFileError("the joint sums are not finite numbers")
    bins = np.diff(voters.bin_start)
    for f in range(voters.n_columns):
        n = int(bins[f] * bins[f:].sum())
        joint.append(np.ascontiguousarray(rest[:n].reshape(int(bins[f]), -1)))
        rest = rest[n:]
    return joint


def _check(sums: ColumnSums, joint: list[np.ndarray]) -> None:
    """Refuse sums that no rows have: counts below zero, or columns that do not have the same rows."""
    start, unit = sums.voters.bin_start, sums.scales.extent.weight_unit
    if (sums.mass < 0).any():
        raise SumsFileError("a bin has a weight below zero")
    for f, table in enumerate(joint):
        mass = sums.mass[start[f] : start[f + 1]]
        if mass.sum() * unit != sums.total_weight:
            raise SumsFileError(f"the bins of feature {f} do not have the weight of all rows")
        for g in range(f, sums.voters.n_columns):
            pair = table[:, start[g] - start[f] : start[g + 1] - start[f]]
            is_right = np.array_equal(pair, np.diag(mass * unit)) if f == g else (pair >= 0).all()
            is_right &= np.array_equal(pair.sum(axis=1), mass * unit)
            if not is_right or not np.array_equal(pair.sum(axis=0), sums.mass[start[g] : start[g + 1]] * unit):
                raise SumsFileError(f"the joint sums of features {f} and {g} are not those of rows")
