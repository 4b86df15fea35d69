"""The commands, gathered."""

from __future__ import annotations

import importlib

import typer

from discreet import __version__

COMMANDS = (
    "tabulate",
    "protect",
    "fit",
    "synthesize",
    "assess",
    "audit",
    "compare",
    "study",
    "run",
    "export",
    "ptable",
    "keys",
    "codes",
    "ledger",
    "demo",
    "build",
    "serve",
    "replay",
    "token",
    "log",
)

app = typer.Typer(
    name="discreet",
    help="Publish tables without betraying the people in them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _top(
    version: bool = typer.Option(False, "--version", help="Show the version and stop."),
) -> None:
    if version:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


for _name in COMMANDS:
    _module = importlib.import_module(f"discreet.cli.{_name}")
    app.command(_name)(getattr(_module, _name))
