"""The test suite in many configurations, one after the other: ``make test-everywhere``.

Each result is appended to build/everywhere/results.jsonl as soon as it is known. A configuration that has passed for
the current commit is not run again, so that an interrupted run continues; ``--again`` runs it all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "everywhere"
RESULTS = FOLDER / "results.jsonl"
QUICK = ("-m", "not slow")
SECONDS = 5400
"""After which a run counts as hanging; a single test may take 900 seconds."""


@dataclass(frozen=True)
class Configuration:
    name: str
    whole: bool
    environment: dict[str, str] = field(default_factory=dict)
    """Variables to set; an empty value removes one."""
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Words before the command."""
    workers: str = str((os.cpu_count() or 1) + 1)
    """As many as `make test` has."""
    busy: int = 0
    """Busy loops beside it."""
    without_compiler: bool = False


def _processor_has(flag: str) -> bool:
    try:
        return flag in Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return False


def configurations() -> list[Configuration]:
    """Return those that this machine can run."""
    code = "import tnesi.kernels._native as n; print(*n.instruction_sets())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.split()
    levels = [Configuration(name, name != "numpy", {"TNESI_KERNELS": name}) for name in [*found, "numpy"]]
    cores = ["Haswell", "Zen", *(["SkylakeX"] if _processor_has("avx512f") else []), "Prescott"]
    blas = [Configuration(f"blas-{name}", False, {"OPENBLAS_CORETYPE": name}) for name in cores]
    nothing = str(FOLDER / "nothing")
    no_data = {"TNESI_DATA": nothing, "XDG_CACHE_HOME": nothing, "CI": ""}
    no_browser = {
        "PATH": _path_without("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
        "CI": "",
    }
    return [
        *levels,
        *blas,
        *([Configuration("one-core", True, before=("taskset", "-c", "0"))] if shutil.which("taskset") else []),
        Configuration("busy", True, busy=2),
        Configuration("random-order", True, options=("-p", "randomly")),
        *(Configuration(f"workers-{n}", False, workers=str(n)) for n in (1, 2, 4)),
        Configuration("no-data", False, no_data),
        Configuration("no-browser", False, no_browser),
        Configuration("no-compiler", False, {"TNESI_KERNELS": "reference"}, without_compiler=True),
    ]


def _path_without(*programs: str) -> str:
    """Return a folder of links to everything on PATH except some programs."""
    folder = FOLDER / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name not in programs and not os.path.lexists(link):
                link.symlink_to(program)
    return str(folder)


@contextmanager
def _busy_loop() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _python_without_kernels() -> str:
    """Return the Python of an environment into which tnesi was installed where no compiler works."""
    place = FOLDER / "no-compiler"
    python = str(place / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    environment = {**os.environ, "CXX": "/bin/false", "CC": "/bin/false"}
    words = [python, "-m", "pip", "install", "--quiet", f"{ROOT}[dev]"]
    subprocess.run(words, env=environment, check=True, cwd=FOLDER)
    code = "import importlib.util as u; assert u.find_spec('tnesi.kernels._native') is None"
    subprocess.run([python, "-c", code], env={**os.environ, "TNESI_KERNELS": "reference"}, check=True, cwd=FOLDER)
    return python


def run(configuration: Configuration) -> dict[str, Any]:
    """Run one; return what came of it."""
    environment = os.environ | configuration.environment
    environment = {name: value for name, value in environment.items() if configuration.environment.get(name) != ""}
    python = _python_without_kernels() if configuration.without_compiler else sys.executable
    # where tnesi is not installed in place, the doctests of src would import it twice
    places = ["tests"] if configuration.without_compiler else []
    selection = [] if configuration.whole else QUICK
    workers = ["--numprocesses", configuration.workers, "--dist", "worksteal"]
    command = [*configuration.before, python, "-m", "pytest", "-o", "faulthandler_timeout=600", "--timeout=900"]
    command += [*workers, *selection, *configuration.options, *places]
    log = FOLDER / f"{configuration.name}.log"
    start = time.monotonic()
    with ExitStack() as stack:
        for _ in range(configuration.busy):
            stack.enter_context(_busy_loop())
        out = stack.enter_context(log.open("w"))
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | str = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = "hangs"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    last = (log.read_text(errors="replace").splitlines() or [""])[-1]
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|errors?)", last)}
    return {
        "configuration": configuration.name,
        "suite": "whole" if configuration.whole else "quick",
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0),
        "skipped": counts.get("skipped", 0),
        "seconds": round(time.monotonic() - start),
        "result": "ok" if code == 0 else code if isinstance(code, str) else f"exit code {code}",
        "commit": _commit(),
    }


def _commit() -> str:
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _table(results: list[dict[str, Any]]) -> str:
    columns = ("configuration", "suite", "passed", "failed", "skipped", "seconds", "result")
    rows = [columns, *(tuple(str(one[column]) for column in columns) for one in results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="configurations to run; all of them by default")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--again", action="store_true", help="also run what has passed for this commit")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = configurations()
    if given.list:
        print(*(one.name for one in known), sep="\n")
        return 0
    if unknown := set(given.names) - {one.name for one in known}:
        parser.error(f"unknown here: {', '.join(sorted(unknown))}; --list prints the names")
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    passed = {
        one["configuration"]: one
        for one in map(json.loads, lines)
        if one["result"] == "ok" and one["commit"] == _commit() and "dirty" not in one["commit"]
    }
    results = []
    for configuration in known:
        if given.names and configuration.name not in given.names:
            continue
        result = None if given.again else passed.get(configuration.name)
        if result is None:
            print(f"{configuration.name} ...", flush=True)
            result = run(configuration)
            with RESULTS.open("a") as file:
                file.write(json.dumps(result) + "\n")
        results.append(result)
    print(_table(results))
    return int(any(one["result"] != "ok" for one in results))


if __name__ == "__main__":
    sys.exit(main())
