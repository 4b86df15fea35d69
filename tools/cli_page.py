"""Write docs/cli.md from the commands' own help: `python tools/cli_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

from typer.main import get_command

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def page() -> str:
    """The page as it should be."""
    from discreet.cli.app import app

    group = get_command(app)
    context = group.make_context("discreet", ["--version"], resilient_parsing=True)
    parts = [
        "# Command line",
        "Every command ends with exit code 2 and one clear line on bad input.",
    ]
    for name in group.list_commands(context):  # type: ignore[attr-defined]
        command = group.get_command(context, name)  # type: ignore[attr-defined]
        inner = command.make_context(f"discreet {name}", [], parent=None, resilient_parsing=True)
        inner.terminal_width = 96
        parts.append(f"## discreet {name}\n\n```text\n{command.get_help(inner).strip()}\n```")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"written: {PAGE}\n")
