"""The commands, gathered: our own, and what other packages register in `discreet.commands`."""

from __future__ import annotations

import importlib

import typer

from discreet import __version__
from discreet import registry as plugins
from discreet.errors import PluginError

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

PACKAGES = {"study": "discreet-studies"}
"""Commands that come with packages of their own; they are listed whether these are there or not."""


def build_app() -> typer.Typer:
    """The command line with every command that is installed."""
    app = typer.Typer(
        name="discreet",
        help="Publish tables without betraying the people in them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_top)
    others = plugins.plugin_entries("command", frozenset(COMMANDS) - frozenset(PACKAGES))
    for name in dict.fromkeys([*COMMANDS, *others]):
        if name in others:
            try:
                app.command(name)(plugins.load_plugin("command", others[name]))
            except PluginError as error:  # other commands go on without it
                _refuse(app, name, error)
        elif name in PACKAGES:
            package = PACKAGES[name]
            line = f"`discreet {name}` needs the package {package}: `pip install {package}`."
            _refuse(app, name, PluginError(line))
        else:
            module = importlib.import_module(f"discreet.cli.{name}")
            app.command(name)(getattr(module, name))
    return app


def _top(
    version: bool = typer.Option(False, "--version", help="Show the version and stop."),
) -> None:
    if version:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


def _refuse(app: typer.Typer, name: str, error: PluginError) -> None:
    """A command that cannot be had says why, whatever it is asked, its help included."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, help=str(error), add_help_option=False, context_settings=anything)
    def refuse() -> None:
        raise error


app = build_app()
