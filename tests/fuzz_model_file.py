"""Read mutated model files: python fuzz_model_file.py DIRECTORY SEED COUNT. Prints what came of them.

Those that load are used too: a prediction must not fail, either. A program of its own, so that a crash, a hang or a
huge allocation ends it and not the tests.
"""

import copy
import json
import os
import random
import re
import resource
import signal
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from model_files import MODELS, assert_valid, bits, example, many_outputs, parts_of_format_1, signed

from quadboost import Ensemble, QuadBoostClassifier, QuadBoostRegressor
from quadboost.commands.describe import describe
from quadboost.model import checked_file
from quadboost.model import file as model_file
from quadboost.model.file import ModelFileError, read_model, write_model
from quadboost.model.hdf5 import structure
from quadboost.model.record import ModelRecord, from_parts, to_parts

MEMORY = 2 * 2**30  # of address space, of which numpy and its threads take about half
SECONDS = 5  # for one file

NUMBERS = [0, 1, 2, 7, 8, 96, 2**16, 2**31 - 1, 2**31, 2**32, 2**61, 2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1]
TOKENS = [
    *(
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-0.0",
        b"-1",
        b"2147483648",
        b"1" * 50,
        b"1" * 5000,
        b"0.5",
        b"1",
        b"0",
    ),
    *(
        b"null",
        b"true",
        b'""',
        b'"1"',
        b'"\\ud800"',
        b"\xff",
        b"{}",
        b"[]",
        b"[[]]",
        b"[" * 2000,
        b'{"a":' * 500,
    ),
    *(
        b",",
        b":",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b'"info":{},',
        b'"1":[["a"]],',
        b'"str"',
        b'"object"',
        b'"int8"',
        b'"logit"',
        b'"log"',
        b'"poisson"',
    ),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 7, 2**31 - 1, 2**31, 2**63, 2**64, 10**400, -(2**63), 0.5, -0.0, 1e300, 5e-324),
    *("", "a", "1", "\ud800", "\0", "x" * 3000, "float16", "int8", "uint64", "object", "str", "bool"),
    *("squared", "logistic", "huber", "poisson", "identity", "log", "clipped", "logit", "softmax"),
    *([], {}, [[]], [["a"]], [[1], [1.0]], {"0": [["a"], ["b"]]}, {"a": {"a": []}}, [0] * 3000, list(range(300))),
]
KINDS = ("bytes", "bytes, signed", "numbers", "sizes", "JSON tokens", "JSON values", "all")

Arrays = dict[str, np.ndarray]


def change_bytes(data: bytearray, start: int, rng: random.Random) -> None:
    """Change some bytes at or after start, and perhaps the length."""
    at, length = rng.randrange(start, len(data)), rng.choice([1, 2, 4, 8, 8, 40])
    match rng.randrange(6):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at] = rng.choice([0, 1, 2, 3, 127, 128, 255, rng.randrange(256)])
        case 2:
            data[at : at + 8] = struct.pack("<Q", rng.choice([*NUMBERS, rng.randrange(len(data))]))
        case 3:
            other = rng.randrange(len(data))
            data[at : at + length] = data[other : other + length]
        case 4:
            del data[at : at + length]
        case 5:
            data[at:at] = rng.randbytes(length)


def mutated_file(data: bytes, rng: random.Random) -> bytes:
    new = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        # The last quarter is where the numbers and the metadata are.
        change_bytes(new, rng.choice([0, 0, 16, 96, 512, len(new) * 3 // 4]), rng)
    return bytes(new)


def mutated_numbers(arrays: Arrays, rng: random.Random) -> Arrays:
    name = rng.choice(list(arrays))
    values = arrays[name]
    if not values.size:
        return arrays
    new = bytearray(values.tobytes())
    change_bytes(new, 0, rng)
    new = new[: values.nbytes].ljust(values.nbytes, b"\0")
    return {**arrays, name: np.frombuffer(new, values.dtype).reshape(values.shape)}


def mutated_sizes(arrays: Arrays, rng: random.Random) -> Arrays:
    """Other numbers of voters, outputs, bins, trees and nodes; what there is of them is repeated or left out."""
    n_voters, n_outputs = (rng.choice([size, size, size + 1, 0, 1, 2, 3, 300]) for size in arrays["weight"].shape)
    shapes = {"weight": (n_voters, n_outputs), "intercept": (n_outputs,), "slope": (n_outputs,)}
    if "bin_mass" in arrays:
        n_bins = len(arrays["bin_mass"])
        shapes["bin_mass"] = (rng.choice([n_bins, n_bins, 0, n_bins + 1, 3, 300]),)
        shapes["bin_error"] = (rng.choice([shapes["bin_mass"][0], n_bins, 0, 3]), n_outputs)
        n_patterns = rng.choice([len(arrays["pattern"])] * 12 + [0, 2, 300])
        shapes |= dict.fromkeys(("pattern_node", "pattern", "pattern_mass"), (n_patterns,))
        n_trees, n_nodes = len(arrays["tree_size"]), len(arrays["node_feature"])
        if rng.random() < 0.2:
            n_trees, n_nodes = (rng.choice([size, size + 1, 0, 1, 300]) for size in (n_trees, n_nodes))
        elif rng.random() < 0.5:  # the same trees some times, or none
            times = rng.choice([0, 0, 2, 20])
            n_trees, n_nodes = times * n_trees, times * n_nodes
        shapes |= {f"node_{name}": (n_nodes,) for name in ("feature", "threshold", "missing_right")}
        shapes |= {"tree_size": (n_trees,), "node_weight": (n_nodes, n_outputs)}
        shapes["node_mass"] = (
            n_nodes if len(arrays["node_mass"]) and rng.random() < 0.5 else rng.choice([0, 0, n_nodes, 3]),
        )
    return {name: np.resize(values, shapes.get(name, (n_voters,))) for name, values in arrays.items()}


def mutated_tokens(text: bytes, rng: random.Random) -> bytes:
    """Metadata that is hardly ever JSON."""
    tokens = re.findall(rb'"[^"]*"|[-\w.]+|.', text)
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(tokens))
        new = [rng.choice([*TOKENS, *tokens]) for _ in range(rng.choice([0, 1, 1, 2]))]
        tokens[at : at + rng.choice([0, 1, 1, 1, 2, 5])] = new * rng.choice([1] * 20 + [3000])
    return b"".join(tokens)


def mutated_tree(text: bytes, rng: random.Random) -> bytes:
    """Metadata that is JSON, with other values in some places."""
    root = [json.loads(text)]
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = list(places_in(root))
        (inside, key), (other, at) = rng.choice(places), rng.choice(places)
        new = copy.deepcopy(rng.choice([*VALUES, other[at], other[at], inside[key]]))
        if isinstance(inside, list) and inside is not root and rng.random() < 0.3:
            inside[key:key] = [new] * rng.choice([1, 1, 2, 50])
        else:
            inside[key] = new
    return json.dumps(root[0]).encode()


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list or dict within a value, with each of its indices or keys."""
    for key in range(len(value)) if isinstance(value, list) else value:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from places_in(value[key])


def forgery(kind: str, parts: tuple[Arrays, bytes], original: bytes, file_format: int, rng: random.Random) -> bytes:
    """A file of one of the KINDS; all but those of the first are signed."""
    if kind in ("bytes", "bytes, signed"):
        data = mutated_file(original, rng)
        return data if kind == "bytes" or len(data) < 512 else signed(data)
    arrays, text = parts
    if kind in ("numbers", "all"):
        arrays = mutated_numbers(arrays, rng)
    if kind in ("sizes", "all"):
        arrays = mutated_sizes(arrays, rng)
    if kind in ("JSON values", "all"):
        text = mutated_tree(text, rng)
    if kind == "JSON tokens":
        text = mutated_tokens(text, rng)
    return model_file._pack(arrays, text, "0.1.0", file_format)


def use(record: ModelRecord) -> None:
    """Whatever can be done with a model that was loaded."""
    model = Ensemble(**record.arguments())
    describe(model, "model.h5")
    assert all(shape.mass is None or len(shape.mass) == len(shape.values) for shape in model.shape_functions())
    assert len(model.rules()) == model.n_rules
    if 0 < model.n_features <= 1000:
        numbers = np.zeros((2, model.n_features))
        known = numbers.astype(object)
        for feature, levels in model.categories.items():
            values = [value for level in levels for value in level]
            known[:, feature] = values[0] if values else None
            if all(isinstance(value, str) for value in values):
                numbers[:, feature] = np.nan  # a number would be refused
        for X in (numbers, known):
            assert len(model.decision_function(X)) == len(model.predict(X)) == 2
            if model.classes is not None:
                assert model.predict_proba(X).shape == (2, len(model.classes))
    from_ensemble = (QuadBoostRegressor if model.classes is None else QuadBoostClassifier).from_ensemble
    assert from_ensemble(model).ensemble_ is model


def main(directory: str, seed: int, count: int) -> dict[str, Counter[str]]:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.fsync = lambda descriptor: None  # nothing here needs to outlive the machine
    remembered = lru_cache(1000)(structure)  # which follows from the sizes: forging and reading need the same one
    checked_file.structure = lambda datasets, *sizes: remembered(tuple(datasets), *sizes)
    path = Path(directory, f"{seed}.h5")
    originals, of_fit = [], {**example().info, "feature_importances": [0.5, 0.25, 0.25, 0.0]}
    for record in (replace(example(), info=of_fit), *(make() for make in MODELS[1:])):
        path.unlink(missing_ok=True)
        write_model(path, record)
        originals.append((record, to_parts(record), path.read_bytes(), 2))
    for record in (example(), many_outputs()):
        parts = parts_of_format_1(record)
        originals.append((record, parts, model_file._pack(*parts, "0.1.0", 1), 1))
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    rng = random.Random(seed)
    for _ in range(count):
        record, parts, original, file_format = rng.choice(originals)
        kind = rng.choice(KINDS)
        data = forgery(kind, parts, original, file_format, rng)
        path.unlink(missing_ok=True)  # replacing a file waits for the disk, a new one does not
        path.write_bytes(data)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of this process: others may keep the machine busy
        signal.alarm(20 * SECONDS)
        outcomes[kind][outcome(path, data == original, kind, record)] += 1
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    path.unlink(missing_ok=True)
    return outcomes


def outcome(path: Path, is_original: bool, kind: str, record: ModelRecord) -> str:
    """What comes of a file; any error but a refusal ends the program."""
    try:
        found = read_model(path)
    except ModelFileError:
        assert not is_original, "a good file was refused"
        return "refused"
    if is_original:
        assert bits(found) == bits(record)
        return "the same model"
    assert kind != "bytes", "damage was not found"
    assert_valid(found)
    with np.errstate(over="ignore", invalid="ignore"):  # of weights that are all but infinite
        use(found)
    # What write_model would write, and read before it does; the disk and libhdf5 are tested elsewhere.
    again = model_file._pack(*to_parts(found), "0.1.0")
    assert bits(from_parts(*model_file._KIND.unpack(again))) == bits(found)
    return "another valid model"


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
