"""Coverage-guided fuzzing of the file readers: ``make fuzz``, or ``python fuzz/fuzz.py --seconds 60 csv zarr``.

Each target runs in a process of its own for its share of the time. An input that makes it fail is kept in
build/fuzz/findings; ``python fuzz/fuzz.py --repeat FILE`` runs it again.
"""

from __future__ import annotations

import argparse
import gc
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "fuzz"
FINDINGS = FOLDER / "findings"
SECONDS_PER_INPUT = 20
MEGABYTES = 3000
LONGEST = 2**16


def fuzz(name: str, options: list[str]) -> None:
    """Run one target in this process, which ends with it."""
    import atheris
    from targets import TARGETS

    for found in gc.get_objects():  # atheris cannot instrument the imports of an editable installation
        if isinstance(found, FunctionType) and str(found.__module__).startswith("tnesi."):
            atheris.instrument_func(found)
    target = TARGETS[name]
    place = Path(tempfile.mkdtemp(prefix="tnesi-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    corpus = FOLDER / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = place / "seeds"
    seeds.mkdir()
    for i, seed in enumerate(target.seeds(seeds)):
        (corpus / f"seed-{i}").write_bytes(seed)
    number = 0

    def one(data: bytes) -> None:
        nonlocal number
        number += 1
        folder = place / str(number)
        folder.mkdir()
        try:
            target.accepts(data, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def run(name: str, seconds: int) -> bool:
    """Run one target for a while; return whether nothing was found."""
    options = [
        f"-max_total_time={seconds}", f"-timeout={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={LONGEST}", f"-artifact_prefix={FINDINGS}/{name}-", "-print_final_stats=1", "-close_fd_mask=1",
    ]  # fmt: skip
    words = [sys.executable, __file__, "--target", name, *(f"--option={option}" for option in options)]
    log = FOLDER / f"{name}.log"
    with log.open("w") as out:
        code = subprocess.run(words, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text(errors="replace")
    executed = re.search(r"number_of_executed_units:\s*(\d+)", text)
    covered = re.findall(r"cov: (\d+)", text)
    result = "ok" if code == 0 else f"FAILED, see {log.relative_to(ROOT)}"
    print(
        f"{name:12}{executed[1] if executed else '?':>9} inputs, {covered[-1] if covered else '?':>6} edges: {result}"
    )
    sys.stdout.flush()
    return code == 0


def repeat(path: Path) -> None:
    """Run the target of a finding on it, without fuzzing."""
    from targets import TARGETS

    name = next(name for name in sorted(TARGETS, key=len, reverse=True) if path.name.startswith(name))
    with tempfile.TemporaryDirectory() as folder:
        print("accepted" if TARGETS[name].accepts(path.read_bytes(), Path(folder)) else "refused")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="targets; all by default")
    parser.add_argument("--seconds", type=int, default=600, help="for all together")
    parser.add_argument("--repeat", type=Path, help="a finding to run again")
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--option", action="append", default=[], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.repeat:
        repeat(given.repeat)
        return 0
    if given.target:
        fuzz(given.target, given.option)
    from targets import TARGETS

    if unknown := set(given.names) - set(TARGETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the targets are {', '.join(TARGETS)}")
    FINDINGS.mkdir(parents=True, exist_ok=True)
    names = given.names or list(TARGETS)
    start = time.monotonic()
    clean = [run(name, max(1, given.seconds // len(names))) for name in names]
    print(f"{len(names)} targets in {time.monotonic() - start:.0f} s, {clean.count(False)} with findings")
    return int(not all(clean))


if __name__ == "__main__":
    sys.exit(main())
