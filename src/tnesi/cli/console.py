"""Shared by all commands: options, progress, text and JSON output, error messages."""

from __future__ import annotations

import inspect
import json
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec, TypeVar

import typer

from tnesi.cli import INTERRUPTED
from tnesi.errors import TnesiError
from tnesi.system.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

P = ParamSpec("P")
R = TypeVar("R")

INPUT, ENCODING, MODEL, LABELS = "Input", "Encoding", "Model", "Labels"
OUTPUT, RESOURCES = "Output", "Resources"
"""Panels of options in the help."""

Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as a JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="Show no progress.")]
Threads = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=RESOURCES, help="Number of threads; default: all processors."),
]
Labels = Annotated[
    str | None,
    typer.Option(metavar="FILE", rich_help_panel=INPUT, help="Labels: one per line, or row,label for some rows."),
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", rich_help_panel=INPUT, help="Column (or array) of DATA with the labels.")
]


def read_seed(text: str | int) -> int:
    """Return a seed."""
    if not str(text).isdecimal() or int(text) >= 2**32:
        raise typer.BadParameter(f"{text} is not an integer from 0 to {2**32 - 1}")
    return int(text)


Seed = Annotated[
    int, typer.Option(parser=read_seed, metavar="N", rich_help_panel=MODEL, help="Seed of the random numbers.")
]

_PLAIN_WIDTH = 140
"""Width of the output without a terminal."""
_PLAIN_EVERY = 10.0
"""Seconds between progress lines without a terminal."""


def report_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Report invalid input as one line with exit code 1; exit with 130 after Ctrl-C."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        as_json = bool(kwargs.get("as_json"))
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as stop:
            _fail(": ".join(["interrupted", *map(str, stop.args)]), INTERRUPTED, as_json=as_json)
        except BrokenPipeError:
            raise typer.Exit(1) from None
        except MemoryError:
            _fail("not enough memory: use fewer rows or fields", 1, as_json=as_json)
        except (ValueError, OSError, ImportError) as error:
            _fail(error_text(error), 1, as_json=as_json)

    return wrapper


_OPTIONS = {
    "n_components": "--fields",
    "n_mixtures": "--mixtures",
    "n_jobs": "--threads",
    "execution": "--dask",
    "scheduler": "--dask",
}
"""Options whose names differ from those of the parameters."""


def option_spelling(name: str, value: str) -> str:
    """Return a parameter as it is written on the command line.

    Examples
    --------
    >>> option_spelling("row_sum", "auto"), option_spelling("n_components", ""), option_spelling("resume", "True")
    ('--row-sum auto', '--fields', '--resume')
    """
    option = _OPTIONS.get(name, "--" + name.replace("_", "-"))
    return option if value in ("", "True") else f"{option} {value}"


def error_text(error: Exception) -> str:
    """Return the text of an error, with parameters spelled as options."""
    if isinstance(error, TnesiError):
        return error.text(option_spelling)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def paragraphs(command: Callable[..., Any]) -> str:
    """Return the docstring of a command with joined lines, so that they wrap at the width of the terminal."""
    text = inspect.cleandoc(command.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) if part[:1] != " " else part for part in text.split("\n\n"))


def _fail(text: str, code: int, *, as_json: bool) -> NoReturn:
    with suppress(OSError):  # the disk may be full or the stream closed
        if as_json:
            typer.echo(json.dumps({"error": text}))
        else:
            typer.secho(f"error: {printable(text)}", err=True, fg="red")
    raise typer.Exit(code) from None


@dataclass
class Output:
    """Output of a command: progress goes to standard error, results to standard output."""

    as_json: bool = False
    quiet: bool = False

    @property
    def console(self) -> Console:
        from rich.console import Console

        wide = sys.stdout is None or not (sys.stdout.isatty() or "COLUMNS" in os.environ)
        return Console(highlight=False, soft_wrap=True, width=_PLAIN_WIDTH if wide else None)

    def say(self, text: str) -> None:
        """Print a line, except with --json."""
        if not self.as_json:
            self.console.print(printable(text), markup=False)

    def table(self, title: str, columns: list[str], rows: list[list[str]], *, text: tuple[int, ...] = (0,)) -> None:
        """Print a table, except with --json; the columns `text` are left-aligned."""
        if self.as_json:
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(
            title=Text(printable(title)) if title else None,
            title_justify="left",
            title_style="bold",
            box=SIMPLE_HEAD,
            pad_edge=False,
            show_header=any(columns),
        )
        for i, column in enumerate(columns):
            table.add_column(column, no_wrap=i == 0, justify="left" if i in text else "right")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        self.console.print(table)

    def finish(self, **result: Any) -> None:
        """Print the result as JSON with --json."""
        if self.as_json:
            typer.echo(json.dumps(_plain(result), allow_nan=False))

    @contextmanager
    def progress(self, text: str, total: float | None = None) -> Iterator[Progress]:
        """Show progress while the block runs, then print its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with self._progress(text, total) as ticker:
                yield ticker
        for warning in dict.fromkeys(str(w.message) for w in caught):
            typer.secho(f"warning: {printable(warning)}", err=True, fg="yellow")

    @contextmanager
    def _progress(self, text: str, total: float | None) -> Iterator[Progress]:
        if self.quiet:
            yield Progress()
            return
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        if not console.is_terminal:
            yield PlainProgress()
            return
        columns = (
            SpinnerColumn(),
            TimeElapsedColumn(),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
        )
        with Bar(*columns, console=console, transient=True) as bar:
            yield BarProgress(bar, text, total)


class PlainProgress(Progress):
    """Progress as occasional lines, for logs."""

    def __init__(self) -> None:
        self._last = time.monotonic() - _PLAIN_EVERY + 2  # the first line comes after two seconds

    def tell(self, text: str) -> None:
        if time.monotonic() - self._last >= _PLAIN_EVERY:
            self._last = time.monotonic()
            typer.echo(text, err=True)


class BarProgress(Progress):
    """A progress bar in the terminal."""

    def __init__(self, bar: Bar, text: str, total: float | None) -> None:
        self._bar = bar
        self._task = bar.add_task(text, total=total)

    def tell(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def begin(self, total: float) -> None:
        self._bar.update(self._task, total=total)

    def advance(self, amount: float = 1) -> None:
        self._bar.advance(self._task, amount)


def _plain(value: object) -> Any:
    """Convert a value for JSON: NumPy numbers and arrays become numbers and lists, NaN becomes None."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


@contextmanager
def announce_interrupt(progress: Progress) -> Iterator[None]:
    """Acknowledge Ctrl-C immediately within the block, since ending a fit takes a while."""

    def acknowledge(*_: Any) -> None:
        progress.tell("stopping and keeping the model; press Ctrl-C again to quit")
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, acknowledge)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def file_size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


_HARMLESS = "\n\u200c\u200d"
"""Line breaks and marks that join letters or emoji."""


def printable(text: str) -> str:
    """Replace control characters, since text from files must not control the terminal."""
    return "".join(c if c.isprintable() or c in _HARMLESS else "\N{REPLACEMENT CHARACTER}" for c in text)


def percent(value: float) -> str:
    return f"{value:.2f} %"
