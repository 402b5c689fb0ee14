"""The distributions in dist/ are complete: ``make test-wheel`` and ``make test-sdist``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from wheels import LARGEST, ROOT, interpreters

DIST = ROOT / "dist"
WHEELS = sorted(DIST.glob("*.whl"))
PYTHONS = interpreters()
ONE_VERSION = "cp311-cp311"


def fitting() -> list[tuple[Path, str]]:
    """Return each wheel with each Python of this machine that it supports."""
    return [
        (wheel, python)
        for wheel in WHEELS
        for version, python in sorted(PYTHONS.items())
        if (version == (3, 11)) == (ONE_VERSION in wheel.name) and version >= (3, 11)
    ]


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_there_are_wheels() -> None:
    assert WHEELS, "run: make wheel"
    assert fitting()


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_contents(wheel: Path) -> None:
    assert wheel.stat().st_size <= LARGEST
    found = names(wheel)
    assert sum("kernels/_native." in name for name in found) == 1
    for part in ("studio/page/index.html", "paper/protocols/mnist-table.toml", "py.typed", "LICENSE-THIRD-PARTY"):
        assert sum(name.endswith(part) for name in found) == 1, part
    assert not [name for name in found if "__pycache__" in name or name.startswith(("tests/", "docs/"))]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda path: path.name)
def test_bill_of_materials(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if ".dist-info/sboms/" in name and name.endswith(".cdx.json"))
        found = json.loads(archive.read(name))
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "tnesi")
    assert found["metadata"]["component"]["version"] == wheel.name.split("-")[1]
    listed = {component["name"]: component.get("version") for component in found["components"]}
    assert listed.keys() == {"nanobind", "robin-map", "libc++"}
    assert listed["nanobind"]
    assert listed["libc++"]
    references = {"tnesi", *(component["bom-ref"] for component in found["components"])}
    assert all({one["ref"], *one["dependsOn"]} <= references for one in found["dependencies"])


@pytest.mark.parametrize(("wheel", "python"), fitting(), ids=lambda value: Path(value).name)
def test_installed_without_a_compiler(wheel: Path, python: str, tmp_path: Path) -> None:
    """In an empty environment, outside the source tree: the demo of the README runs on native kernels."""
    subprocess.run([python, "-m", "venv", tmp_path / "env"], check=True)
    programs = tmp_path / "env" / "bin"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TNESI", "VIRTUAL"))}
    environment = {**kept, "PATH": str(programs), "CC": "/bin/false", "CXX": "/bin/false"}

    def run(*words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--only-binary", ":all:", f"{wheel}[cli,plot]")
    code = "from tnesi import kernels; from tnesi.kernels import _native; print(kernels.NATIVE, _native.__file__)"
    native, file = run(str(programs / "python"), "-W", "error", "-c", code).split()
    assert native == "True"
    assert str(tmp_path) in file
    assert "tnesi" in run(str(programs / "tnesi"), "demo", "-o", "comparison.png")
    assert (tmp_path / "comparison.png").stat().st_size > 1000


def test_the_source_distribution_passes_its_tests(tmp_path: Path) -> None:
    """From the tarball alone: set up an environment and run the quick suite."""
    with tarfile.open(next(DIST.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = next(tmp_path.glob("tnesi-*"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    words = ["make", "-C", str(tree), "test-quick", f"PYTHON={sys.executable}"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def test_a_compiler_without_vector_extensions(tmp_path: Path) -> None:
    """Where the compiler is MSVC, the NumPy kernels are installed instead of an error."""
    claims = {"CMAKE_CXX_COMPILER_ID": "MSVC", "CMAKE_CXX_COMPILER_ID_RUN": "1", "CMAKE_CXX_COMPILER_VERSION": "19.40"}
    claims["CMAKE_CXX_STANDARD_COMPUTED_DEFAULT"] = "14"  # which CMake would find out from the compiler
    words = [word for name, value in claims.items() for word in ("--config-settings", f"cmake.define.{name}={value}")]
    pip = [sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--no-cache-dir", "--wheel-dir", str(tmp_path)]
    source = str(next(DIST.glob("*.tar.gz")))
    done = subprocess.run([*pip, *words, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = " ".join((done.stdout + done.stderr).split())
    assert "this is MSVC 19.40" in printed
    assert "WITHOUT its native kernels" in printed
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in names(wheel) if "_native" in name]
