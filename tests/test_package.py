"""What the package promises as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import tnesi
from tnesi import kernels

ROOT = Path(__file__).parents[1]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_native_kernels_are_in_use() -> None:
    assert kernels.NATIVE or kernels.FORCED


def test_import_pulls_in_nothing_heavy() -> None:
    code = "import sys, tnesi; print([m for m in ('matplotlib', 'dask', 'torch', 'starlette') if m in sys.modules])"
    assert run(code).stdout.strip() == "[]"


@pytest.mark.slow
def test_the_rooms_of_the_readme_are_there_without_another_import() -> None:
    code = (
        "import tnesi; print(tnesi.data.open_data.__name__, tnesi.paper.presets.t_nesi.__name__, tnesi.report.__name__)"
    )
    assert run(code).stdout.split() == ["open_data", "t_nesi", "tnesi.report"]


def test_one_version_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert tnesi.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_package_index_gets_absolute_links() -> None:
    pytest.importorskip("hatch_fancy_pypi_readme")
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    made = subprocess.run(
        [sys.executable, "-m", "hatch_fancy_pypi_readme"], capture_output=True, cwd=ROOT, check=True, encoding="utf-8"
    ).stdout
    tokens = MarkdownIt().enable("table").parse(made)
    inline = [child for token in tokens for child in token.children or ()]
    links = [str(child.attrs["href"]) for child in inline if child.type == "link_open"]
    pictures = [str(child.attrs["src"]) for child in inline if child.type == "image"]
    assert links
    assert pictures
    assert all(link.startswith((f"{source}/blob/v", "http")) for link in links)
    assert all(picture.startswith(f"{source}/raw/v") for picture in pictures)
    for link in [*links, *pictures]:
        found = re.fullmatch(rf"{re.escape(source)}/(?:blob|raw)/v[\d.]+/([^#]+)(#.*)?", link)
        assert not found or (ROOT / found[1]).exists(), link


FIT = """
from sklearn.datasets import load_digits
from tnesi import PoissonMixture, SimpletronClassifier
from tnesi import kernels
X, y = load_digits(return_X_y=True)
clf = SimpletronClassifier(PoissonMixture(40, row_sum=180, max_iter=3, tol=0), random_state=0).fit(X[:300], y[:300])
print(kernels.NATIVE, round(clf.score(X[300:600], y[300:600]), 2))
"""


@pytest.mark.slow
def test_the_reference_kernels_do_the_same_work() -> None:
    pytest.importorskip("tnesi.kernels._native", reason="the native kernels are not installed")
    native, reference = (run(FIT, TNESI_KERNELS=choice).stdout.split() for choice in ("native", "reference"))
    assert (native[0], reference[0]) == ("True", "False")
    assert float(reference[1]) == pytest.approx(float(native[1]), abs=0.02)


@pytest.mark.slow
def test_one_clear_warning_without_native_kernels() -> None:
    code = "import sys; sys.modules['tnesi.kernels._native'] = None\n" + FIT
    refused = run(code, TNESI_KERNELS="")
    assert "RuntimeWarning: tnesi uses its NumPy kernels" in refused.stderr
    environment = {**os.environ, "TNESI_KERNELS": ""}
    warned = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert warned.stderr.count("RuntimeWarning") == 1
    assert "Install GCC or Clang" in warned.stderr
    assert warned.stdout.startswith("False")


def test_a_wrong_choice_of_kernels_is_refused() -> None:
    assert "use 'native', 'reference' (or 'numpy')" in run("import tnesi.kernels", TNESI_KERNELS="fortran").stderr


def test_the_instruction_set_can_be_forced() -> None:
    native = pytest.importorskip("tnesi.kernels._native", reason="the native kernels are not installed")
    code = "from tnesi import kernels; from tnesi.kernels import _native; print(_native.instruction_set())"
    for name in ("baseline", "avx2", "avx512"):
        found = run(code, TNESI_KERNELS=name)
        if name in native.instruction_sets():
            assert found.stdout.strip() == name, found.stderr
        else:
            assert "this processor does not support these kernels; use one of baseline" in found.stderr
    assert run("from tnesi import kernels; print(kernels.NATIVE)", TNESI_KERNELS="numpy").stdout.strip() == "False"


def test_versions_agree() -> None:
    for file in ("pyproject.toml", "CITATION.cff"):
        found = re.search(r'^version\W+([\d.]+)"?$', (ROOT / file).read_text(), re.MULTILINE)
        assert found is not None
        assert found.group(1) == tnesi.__version__
