"""Write docs/cli.md from the help texts of the commands, by Typer's own generator: ``make docs``."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from typer.cli import get_docs_for_click

from tnesi.cli.app import app

PAGE = Path(__file__).with_name("cli.md")


def reference() -> str:
    """Return the page: every command with its help, arguments and options."""
    context = typer.Context(command := typer.main.get_command(app))
    text = get_docs_for_click(obj=command, ctx=context, name="tnesi", title="Command line")
    text = re.sub(r"\[/?bold\]", "**", text)
    examples = re.sub(r"(?m)^((  tnesi .*\n\n)+)", lambda found: _block(found[0]), text)
    note = "<!-- made by docs/command_line.py: change the help texts in src/tnesi/cli instead -->"
    return f"{examples.rstrip()}\n".replace("\n", f"\n\n{note}\n", 1)


def _block(examples: str) -> str:
    lines = "\n".join(line.strip() for line in examples.split("\n\n"))
    return f"```sh\n{lines}```\n\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
