"""Free memory under the limits of the machine, the process, and its control group."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tnesi.data import DataError
from tnesi.data.source import damaged
from tnesi.system.memory import free_memory, is_lack_of_memory

GB = 2**30


@pytest.fixture
def no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as this process is concerned."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def system(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")
    return root


MACHINE = {"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:   {16 * GB // 1024} kB\nHugePages_Total: 0"}
V2 = {
    "proc/self/cgroup": "0::/jobs/mine",
    "sys/fs/cgroup/jobs/mine/memory.max": 4 * GB,
    "sys/fs/cgroup/jobs/mine/memory.current": GB,
}
V1 = {
    "proc/self/cgroup": "9:name=systemd:/x\n4:cpu,memory:/jobs/mine\n0::/",
    "sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes": 4 * GB,
    "sys/fs/cgroup/memory/jobs/mine/memory.usage_in_bytes": GB,
}


@pytest.mark.usefixtures("no_limits")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8 * GB),
        (MACHINE, 16 * GB),
        (MACHINE | V2, 3 * GB),
        (MACHINE | V1, 3 * GB),
        (V2, 3 * GB),
        ({"proc/meminfo": f"MemAvailable: {2 * GB // 1024} kB"} | V2, 2 * GB),
        (MACHINE | V2 | {"sys/fs/cgroup/jobs/mine/memory.max": "max"}, 16 * GB),
        (MACHINE | V1 | {"sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes": 9223372036854771712}, 16 * GB),
        # the group around it leaves less
        (MACHINE | V2 | {"sys/fs/cgroup/jobs/memory.max": 9 * GB, "sys/fs/cgroup/jobs/memory.current": 8 * GB}, GB),
        # a container sees its own group at the top
        (
            MACHINE
            | {"proc/self/cgroup": "4:memory:/docker/0123"}
            | {f"sys/fs/cgroup/memory/memory.{name}_in_bytes": n * GB for name, n in {"limit": 2, "usage": 1}.items()},
            GB,
        ),
        (
            MACHINE
            | {"proc/self/cgroup": "0::/../other", "sys/fs/cgroup/memory.max": GB, "sys/fs/cgroup/memory.current": 1},
            GB - 1,
        ),
        # the file cache can be reclaimed
        (
            MACHINE | V2 | {"sys/fs/cgroup/jobs/mine/memory.stat": f"anon 7\ninactive_file {GB // 2}\nactive_file 0"},
            3.5 * GB,
        ),
        (MACHINE | V1 | {"sys/fs/cgroup/memory/jobs/mine/memory.stat": f"total_inactive_file {GB // 2}"}, 3.5 * GB),
        # more in use than the limit, which was lowered
        (MACHINE | V2 | {"sys/fs/cgroup/jobs/mine/memory.current": 5 * GB}, 0),
        (MACHINE | {"proc/self/cgroup": "nonsense\n\n::::"}, 16 * GB),
    ],
)
def test_free_memory(tmp_path: Path, files: dict[str, Any], expected: float) -> None:
    assert free_memory(system(tmp_path, files)) == expected


@pytest.mark.parametrize(("limit", "use"), [("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")])
def test_limits_of_the_process(tmp_path: Path, limit: str, use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    most = {getattr(resource, limit): 3 * GB}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (most.get(which, resource.RLIM_INFINITY), -1))
    assert free_memory(system(tmp_path, MACHINE)) == 3 * GB
    assert free_memory(system(tmp_path, {"proc/self/status": f"Name: x\n{use}:  {GB // 1024} kB"})) == 2 * GB


def test_a_system_without_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert free_memory(system(tmp_path, MACHINE)) == 16 * GB


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_lack_of_memory_is_no_damage(error: Exception) -> None:
    with pytest.raises(DataError, match=r"not enough memory to read rows\.npy .*block by block"), damaged("rows.npy"):
        raise error
    with pytest.raises(DataError, match="not enough memory"), damaged("rows.npy"):
        raise ValueError("the decoder failed") from error
    with pytest.raises(DataError, match="is damaged"), damaged("rows.npy"):
        raise OSError(errno.EIO, "Input/output error")
    assert not is_lack_of_memory(None)
    try:
        raise error
    except (MemoryError, OSError):  # of the caller, which then reads a damaged file
        with pytest.raises(DataError, match="is damaged"), damaged("rows.npy"):
            int("decoded")


LIMITED = """
import resource, sys
import numpy as np
from tnesi.system.memory import free_memory
from tnesi.data import DataError
from tnesi.data import open_data

open_data("small.csv").X  # all libraries are loaded
before = free_memory()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
room = int(sys.argv[2]) * 2**20
most = int(status["VmSize"].split()[0]) * 1024 + room
resource.setrlimit(resource.RLIMIT_AS, (most, most))
assert free_memory() <= room < before
try:
    open_data(sys.argv[1]).X
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(("name", "room"), [("large.csv", 30), ("large.csv", 100), ("large.npy", 30)])
def test_a_process_with_a_limit(tmp_path: Path, name: str, room: int) -> None:
    (tmp_path / "small.csv").write_text("a,b\n1,2\n")
    if name == "large.csv":
        (tmp_path / name).write_text("a,b\n" + "0.1,2\n" * 8_000_000)
    else:
        np.save(tmp_path / name, np.ones((2_000_000, 10), np.float32))
    words = [sys.executable, "-c", LIMITED, name, str(room)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "memory" in done.stdout
    assert "damaged" not in done.stdout
