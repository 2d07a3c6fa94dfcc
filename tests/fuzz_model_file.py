"""Read mutated model files: python fuzz_model_file.py DIRECTORY SEED COUNT. Prints what came of them.

A program of its own, so that a crash, a hang or a huge allocation ends it and not the tests.
"""

import json
import os
import random
import re
import resource
import signal
import struct
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from model_files import assert_valid, bits, constant, example, many_outputs, signed, with_metadata

from quadboost.model import file as model_file
from quadboost.model.file import ModelFileError, read_model, write_model
from quadboost.model.record import ModelRecord, to_parts

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
    ),
]


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
        change_bytes(new, rng.choice([0, 0, 16, 96, 512]), rng)
    return bytes(new)


def mutated_numbers(record: ModelRecord, rng: random.Random) -> bytes:
    arrays, metadata = to_parts(record)
    name = rng.choice(["threshold", "weight", "intercept", "feature", "kind"])
    values = arrays[name]
    if values.size:
        new = bytearray(values.tobytes())
        change_bytes(new, 0, rng)
        new = new[: values.nbytes].ljust(values.nbytes, b"\0")
        arrays[name] = np.frombuffer(new, values.dtype).reshape(values.shape)
    return model_file._pack(arrays, metadata, "0.1.0")


def mutated_metadata(record: ModelRecord, rng: random.Random) -> bytes:
    tokens = re.findall(rb'"[^"]*"|[-\w.]+|.', to_parts(record)[1])
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(tokens))
        new = [rng.choice([*TOKENS, *tokens]) for _ in range(rng.choice([0, 1, 1, 2]))]
        tokens[at : at + rng.choice([0, 1, 1, 1, 2, 5])] = new
    return with_metadata(record, b"".join(tokens))


def main(directory: str, seed: int, count: int) -> Counter[str]:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.fsync = lambda descriptor: None  # nothing here needs to outlive the machine
    path, again = Path(directory, f"{seed}.h5"), Path(directory, f"{seed}-again.h5")
    originals = []
    for record in (example(), many_outputs(), constant()):
        write_model(path, record)
        originals.append((record, path.read_bytes()))
    outcomes: Counter[str] = Counter()
    rng = random.Random(seed)
    for _ in range(count):
        record, original = rng.choice(originals)
        is_signed = True
        match rng.randrange(4):
            case 0:
                data, is_signed = mutated_file(original, rng), False
            case 1:
                data = mutated_file(original, rng)
                data = signed(data) if len(data) >= 512 else data
            case 2:
                data = mutated_numbers(record, rng)
            case 3:
                data = mutated_metadata(record, rng)
        for old in (path, again):  # replacing a file waits for the disk, a new one does not
            old.unlink(missing_ok=True)
        path.write_bytes(data)
        signal.alarm(SECONDS)
        try:
            found = read_model(path)
        except ModelFileError:
            assert data != original, "a good file was refused"
            outcomes["refused"] += 1
        else:
            if data == original:
                assert bits(found) == bits(record)
                outcomes["the same model"] += 1
            else:
                assert is_signed, "damage was not found"
                assert_valid(found)
                write_model(again, found)
                assert bits(read_model(again)) == bits(found)
                outcomes["another valid model"] += 1
        signal.alarm(0)
    return outcomes


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
