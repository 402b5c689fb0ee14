"""What starts ``tnesi`` for other tests tells how it ended, as a Popen does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def started(zygotes: Any, folder: Path, *words: str, **environment: str) -> Any:
    with (folder / "said.txt").open("wb") as file:
        return zygotes.start(
            [*words], cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, stdout=file
        )


def test_output_and_codes(zygotes: Any, tmp_path: Path) -> None:
    assert started(zygotes, tmp_path, "--version").wait(timeout=90) == 0
    assert (tmp_path / "said.txt").read_text().startswith("tnesi ")
    assert started(zygotes, tmp_path, "label", "nothing.csv").wait(timeout=90) == 1
    assert "nothing.csv" in (tmp_path / "said.txt").read_text()
    assert started(zygotes, tmp_path, "no-such-command").wait(timeout=90) == 2


def test_signals(zygotes: Any, tmp_path: Path) -> None:
    one = started(zygotes, tmp_path, "label", "digits", "--no-browser", XDG_CACHE_HOME=str(tmp_path))
    other = started(
        zygotes, tmp_path, "label", "digits", "--no-browser", "--project", "b", XDG_CACHE_HOME=str(tmp_path)
    )
    assert one.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(timeout=0)
    one.kill()
    assert one.wait(timeout=90) == one.poll() == one.returncode == -signal.SIGKILL
    assert other.poll() is None
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)  # nothing is left of it
    other.kill()
    assert other.wait() == -signal.SIGKILL
    other.kill()  # which does nothing


def test_they_end_together(zygotes: Any, tmp_path: Path) -> None:
    own = type(zygotes)()
    one = started(own, tmp_path, "label", "digits", "--no-browser", XDG_CACHE_HOME=str(tmp_path))
    own.end()
    with pytest.raises(ChildProcessError):
        one.wait(timeout=90)
