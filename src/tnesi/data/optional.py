"""Import of optional libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, doing: str) -> Any:
    """Import a library of the ``files`` extra; the error says how to install it.

    Examples
    --------
    >>> needed("parchment", "reading Parchment")
    Traceback (most recent call last):
    ImportError: reading Parchment needs parchment: pip install 'tnesi[files]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = {"PIL": "pillow"}.get(module.split(".")[0], module.split(".")[0])
        raise ImportError(f"{doing} needs {library}: pip install 'tnesi[files]'") from error
