"""Free memory is that of the machine, or what is left of a container's share."""

import numpy as np
import pytest

from quadboost.common import memory


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    return tmp_path


def test_free_memory_is_that_of_the_machine(machine):
    (machine / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:    5000 kB\nHugePages_Total:   0\n")
    assert memory.free_memory() == 5000 * 1024
    (machine / "memory.current").write_text("100\n")
    (machine / "memory.max").write_text("max\n")
    assert memory.free_memory() == 5000 * 1024


@pytest.mark.parametrize(("taken", "left"), [(100, 900), (1_200, 0)])
def test_free_memory_is_what_is_left_of_the_share_of_a_container(machine, taken, left):
    (machine / "meminfo").write_text("MemAvailable:    5000 kB\n")
    (machine / "memory.current").write_text(f"{taken}\n")
    (machine / "memory.max").write_text("1000\n")
    assert memory.free_memory() == left


@pytest.mark.parametrize("text", [None, "", "MemTotal: 5 kB\n", "MemAvailable: many\n", "nonsense\n"])
def test_free_memory_is_none_where_it_is_not_known(machine, text):
    if text is not None:
        (machine / "meminfo").write_text(text)
    assert memory.free_memory() is None


def test_an_array_of_that_size_can_be_had():
    free = memory.free_memory()
    assert free is None or len(np.zeros(min(free, 1 << 20), dtype=np.uint8)) > 0
