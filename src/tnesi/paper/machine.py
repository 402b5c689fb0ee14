"""Description of the machine and the software versions."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tnesi
from tnesi import kernels
from tnesi.system.threads import resolve_threads


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """Return the commit of the source tree, with "-dirty" if it was changed; None for an installed package."""
    root = Path(tnesi.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=7"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def machine() -> dict[str, Any]:
    """Return processor, threads, versions, commit and date."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": resolve_threads(None),
        "kernels": "native" if kernels.NATIVE else "NumPy",
        "date": datetime.now(UTC).date().isoformat(),
        "tnesi": tnesi.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
