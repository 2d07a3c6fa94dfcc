"""How much memory is free."""

from __future__ import annotations

from pathlib import Path

MEMORY = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Bytes that this process may still take, by the machine and by its container; None if that is not known."""
    free = []
    try:
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines())
        free.append(1024 * int(lines["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):  # not on every platform
        pass
    try:
        taken = int((CONTAINER / "memory.current").read_text())
        free.append(max(0, int((CONTAINER / "memory.max").read_text()) - taken))
    except (OSError, ValueError):  # no such control group, or "max": no limit
        pass
    return min(free, default=None)
