"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tnesi
from tnesi import kernels
from tnesi.engine.threads import resolve_threads


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Return processor, threads, versions and date."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": resolve_threads(None),
        "kernels": "native" if kernels.NATIVE else "NumPy",
        "date": datetime.now(UTC).date().isoformat(),
        "tnesi": tnesi.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
    }
