"""Image files, opened with care.

A file is never decoded on the word of its header alone: images with more than `MOST_PIXELS` pixels, or that do not fit
into memory, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tnesi.data.optional import needed
from tnesi.system.memory import free_memory, is_lack_of_memory

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "PPM", "WEBP")
MOST_PIXELS = 64_000_000
_PER_PIXEL = 16
"""Bytes per pixel that decoding needs at most, with transparency and copies."""
_ALWAYS_FITS = 2**26
"""Bytes up to which free memory is not checked, since that takes longer than decoding a small image."""


class ImageFileError(ValueError):
    """A file that cannot be read as an image; the message is the reason, without the name of the file."""


def pillow() -> Any:
    """Return the module ``PIL.Image``."""
    return needed("PIL.Image", "reading images")


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[Any]:
    """Open an image, which reads only its header; errors then and in the block become `ImageFileError`."""
    library = pillow()
    file = Path(path)
    try:
        if not file.is_file():
            raise ImageFileError("is a folder" if file.is_dir() else "does not exist")
        if file.stat().st_size == 0:
            raise ImageFileError("is empty")
        with library.open(fspath(path), formats=FORMATS) as image:
            _check_size(image)
            yield image
    except ImageFileError:
        raise
    except library.DecompressionBombError as error:
        raise ImageFileError("has too many pixels: scale it down") from error
    except PermissionError as error:
        raise ImageFileError("cannot be read: permission denied") from error
    except needed("PIL", "reading images").UnidentifiedImageError as error:
        raise ImageFileError(f"is not a picture in a known format ({', '.join(FORMATS)})") from error
    except Exception as error:  # Pillow raises almost anything
        if is_lack_of_memory(error):
            raise ImageFileError("does not fit into memory") from error
        raise ImageFileError(f"is damaged ({error or type(error).__name__}): save it again") from error


def _check_size(image: Any) -> None:
    """Raise an error for a large image before it is decoded."""
    pixels = image.width * image.height
    size = f"has {image.width} x {image.height} pixels"
    if pixels > MOST_PIXELS:
        raise ImageFileError(f"{size}, more than {MOST_PIXELS / 1e6:.0f} million: scale it down")
    need = pixels * _PER_PIXEL
    if need > _ALWAYS_FITS and need > (room := free_memory()):
        raise ImageFileError(
            f"{size}; decoding needs {need / 1e9:.1f} GB of memory, only {room / 1e9:.1f} GB are free: scale it down"
        )
