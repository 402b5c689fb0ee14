"""Write the two references, docs/cli.md and docs/api.md, from the commands' help and the docstrings.

Run it with ``make docs``, or ``python docs/generate.py``; a test fails while the files are out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from tnesi.cli.app import app

DOCS = Path(__file__).parent
_ENTRIES = ("Parameters", "Attributes", "Returns", "Raises", "Yields")
_OF_TYPER = ("help", "install_completion", "show_completion")

API: dict[str, list[str]] = {
    "Estimators": ["tnesi.PoissonMixture", "tnesi.SimpletronClassifier", "tnesi.SelfLabeling"],
    "Encoders": [
        "tnesi.make_classifier",
        "tnesi.encoders.encoder_for",
        "tnesi.encoders.ImageEncoder",
        "tnesi.encoders.TextEncoder",
        "tnesi.encoders.TableEncoder",
        "tnesi.encoders.VectorEncoder",
    ],
    "Where a fit runs": ["tnesi.execution.Local", "tnesi.execution.Dask"],
    "Errors": ["tnesi.errors.TnesiError", "tnesi.errors.InvalidParameterError", "tnesi.errors.InvalidDataError"],
    "The published networks": [
        "tnesi.paper.NeuralSimpletron",
        "tnesi.paper.OnlineRule",
        "tnesi.paper.EM",
        "tnesi.paper.presets",
        "tnesi.paper.presets.*",
    ],
    "Data": [
        "tnesi.data",
        "tnesi.data.open_data",
        "tnesi.data.load_named",
        "tnesi.data.few_labels",
        "tnesi.data.read_labels",
        "tnesi.data.read_idx",
        "tnesi.data.Data",
        "tnesi.data.Source",
        "tnesi.data.DataError",
        "tnesi.data.DataNotFoundError",
        "tnesi.data.datasets.named.describe",
        "tnesi.data.datasets.named.fetch",
        "tnesi.data.datasets.nist.preprocess",
    ],
    "Model files": [
        "tnesi.model_file",
        "tnesi.save",
        "tnesi.load",
        "tnesi.model_file.read_header",
        "tnesi.model_file.Header",
        "tnesi.model_file.ModelFileError",
    ],
    "Cross-validation": ["tnesi.model_selection", "tnesi.model_selection.*"],
    "Choosing parameters": [
        "tnesi.paper.tuning.tune",
        "tnesi.paper.tuning.Tuned",
        "tnesi.paper.tuning.Trial",
        "tnesi.paper.tuning.split_half",
    ],
    "Prediction block by block": [
        "tnesi.prediction.predict_blocks",
        "tnesi.prediction.Predicted",
        "tnesi.prediction.evaluate",
        "tnesi.prediction.Evaluation",
    ],
    "The paper": [
        "tnesi.paper.read_protocol",
        "tnesi.paper.reproduce",
        "tnesi.paper.Protocol",
        "tnesi.paper.RunFolder",
        "tnesi.paper.summary.summarize",
    ],
    "Pictures and pages": ["tnesi.report.plot_fields", "tnesi.report.plot_rows", "tnesi.report.page.write_report"],
}


# The command line


def cli_reference() -> str:
    """Return docs/cli.md: every command with its help, arguments and options."""
    root = typer.main.get_command(app)
    parts = ["# Command line", "<!-- made by docs/generate.py: change the help texts in src/tnesi/cli instead -->"]
    parts += _help(root.help or "")
    parts.append(
        "Every command explains itself with `--help`; `tnesi --version` prints the version, and `tnesi "
        "--install-completion` lets the shell complete commands and options. Exit codes and `--json` are explained in "
        "the [guide](guide.md#results-for-machines)."
    )
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in _commands(root).items():
        panels.setdefault(command.rich_help_panel, []).append((f"tnesi {name}", command))
    for panel, commands in panels.items():
        parts.append(f"## {panel}")
        for name, command in commands:
            parts += _command(name, command)
    return "\n\n".join(parts) + "\n"


def _commands(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}"
    if inside := _commands(command):
        yield from _help(command.help or "")
        for inner, inner_command in inside.items():
            yield from _command(f"{name} {inner}", inner_command)
        return
    params = [p for p in command.params if p.name not in _OF_TYPER]
    arguments = [p for p in params if p.param_type_name == "argument"]
    options = [p for p in params if p.param_type_name == "option"]
    usage = [name, *(str(p.metavar) for p in arguments)]
    usage += [f"{p.opts[-1]} {_metavar(p)}" for p in options if p.required]
    yield f"`{' '.join(usage)} [OPTIONS]`"
    yield from _help(command.help or "")
    rows = [(f"`{p.metavar}`", p.help or "", "") for p in arguments]
    rows += [(_option(p), p.help or "", _default(p)) for p in options]
    yield "\n".join(
        ["| argument or option | meaning | default |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    )


def _help(text: str) -> list[str]:
    """Return help as Markdown: indented lines are examples of the command."""
    found: list[str] = []
    for block in re.sub(r"\[/?bold\]", "**", inspect.cleandoc(text)).split("\n\n"):
        if not block.startswith("  "):
            found.append(" ".join(block.split("\n")))
        elif found and found[-1].startswith("```"):
            found[-1] = found[-1].removesuffix("```") + block.strip() + "\n```"
        else:
            found.append(f"```sh\n{block.strip()}\n```")
    return found


def _option(option: Any) -> str:
    if not option.secondary_opts:
        return ", ".join(f"`{name}{'' if option.is_flag else ' ' + _metavar(option)}`" for name in option.opts)
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _metavar(option: Any) -> str:
    return str(option.metavar or option.name.upper())


def _default(option: Any) -> str:
    if option.required:
        return "required"
    if option.secondary_opts:
        return f"`{option.opts[0] if option.default else option.secondary_opts[0]}`"
    return "" if option.is_flag or option.default is None else f"`{option.default}`"


# The API


def api_reference() -> str:
    """Return docs/api.md: signatures and docstrings of what is public."""
    parts = [
        "# API",
        "<!-- made by docs/generate.py: change the docstrings instead -->",
        "What a program may rely on. All examples are run by the tests. Names that begin with an underscore, and "
        "modules not listed here, may change.",
        "\n".join(f"- [{title}](#{title.lower().replace(' ', '-')})" for title in API),
    ]
    for title, names in API.items():
        parts.append(f"## {title}")
        for name in names:
            parts += _describe(name)
    return "\n\n".join(parts) + "\n"


def _describe(name: str) -> Iterator[str]:
    home, _, last = name.rpartition(".")
    if last == "*":
        for entry in import_module(home).__all__:
            yield from _describe(f"{home}.{entry}")
        return
    thing = getattr(import_module(home), last, None) or import_module(name)
    if inspect.ismodule(thing):
        yield from _docstring(thing)
        return
    yield f"### {name}"
    if not isinstance(thing, type) or _is_called(thing):
        yield f"```python\n{_signature(name, thing)}\n```"
    yield from _docstring(thing)
    if isinstance(thing, type):
        for method, member in vars(thing).items():
            if method.startswith("_"):
                continue
            what = member.__func__ if isinstance(member, classmethod) else member
            if inspect.isfunction(what) and what.__doc__:
                yield f"#### {last}.{method}"
                yield f"```python\n{_signature(method, what)}\n```"
                yield from _docstring(what)
            elif isinstance(member, property | cached_property) and member.__doc__:
                yield f"#### {last}.{method}"
                yield from _docstring(member)


def _is_called(thing: type) -> bool:
    """Tell whether people make such objects; others are only handed out, and have their attributes documented."""
    doc = inspect.getdoc(thing) or ""
    return not issubclass(thing, Exception) and ("Attributes\n---" not in doc or "Parameters\n---" in doc)


def _signature(name: str, thing: Callable[..., Any]) -> str:
    """Return how to call it; the types are in the docstring."""
    words, star = [], False
    for p in inspect.signature(thing).parameters.values():
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        text = f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name
        words.append(text if p.default is p.empty else f"{text}={_value(p.default)}")
    line = f"{name}({', '.join(words)})"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + ")"


def _value(default: Any) -> str:
    return "..." if "factory" in repr(default) else repr(default)


def _docstring(thing: Any) -> Iterator[str]:
    lines = (inspect.getdoc(thing) or "").split("\n")
    starts = [i for i in range(len(lines) - 1) if re.fullmatch("-{3,}", lines[i + 1]) and lines[i].strip()]
    yield from _prose(lines[: starts[0] if starts else None])
    for start, end in pairwise([*starts, len(lines)]):
        title, body = lines[start], lines[start + 2 : end]
        yield f"**{title}**"
        if title == "Examples":
            yield "```pycon\n" + "\n".join(body).strip() + "\n```"
        elif title in _ENTRIES:
            yield "\n".join(_entries(body))
        else:
            yield from _prose(body)


def _entries(lines: Iterable[str]) -> Iterator[str]:
    """Return the terms of a section and what is said of them as a list."""
    entry = ""
    for line in lines:
        if not line.strip():
            continue
        if line.startswith(" "):
            entry += ("" if entry.endswith(":") else ":" if "\n" not in entry else "") + f"\n  {_inline(line.strip())}"
            continue
        if entry:
            yield entry
        term, _, kind = line.partition(" :")
        names = ", ".join(f"`{name.strip()}`" for name in term.split(", "))
        entry = f"- {names}" + (f" ({_inline(kind.strip())})" if kind.strip() else "")
    if entry:
        yield entry


def _prose(lines: Iterable[str]) -> Iterator[str]:
    for block in "\n".join(lines).strip().split("\n\n"):
        if block.startswith("==="):
            yield f"```text\n{block}\n```"
        elif block.strip():
            yield _inline(re.sub(r"^\.\. \[(\d)\]", r"[\1]", block, flags=re.MULTILINE))


def _inline(text: str) -> str:
    """Return the little reStructuredText that the docstrings use as Markdown."""
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", text).replace("``", "`")


if __name__ == "__main__":
    for file, text in {"cli.md": cli_reference(), "api.md": api_reference()}.items():
        (DOCS / file).write_text(text, encoding="utf-8")
