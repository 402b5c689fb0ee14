"""Run pytest with the package of another folder instead of the one that is installed: ``sanitized.py FOLDER ...``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    # The finder of an editable install comes before sys.path.
    sys.meta_path = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
    sys.path.insert(0, str(folder))
    import tnesi

    assert Path(tnesi.__file__).is_relative_to(folder), tnesi.__file__
    sys.exit(pytest.main(sys.argv[2:]))
