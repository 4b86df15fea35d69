"""The commands, gathered: our own, and what other packages register in `discreet.commands`."""

from __future__ import annotations

from typing import Any

import typer
import typer.core

from discreet import __version__, registry
from discreet.cli import custody, judge, publish, site, tables
from discreet.cli.argus import argus
from discreet.cli.check import check
from discreet.cli.demo import demo
from discreet.cli.methods import methods
from discreet.cli.private import private
from discreet.cli.swap import swap
from discreet.cli.synthesize import synthesize
from discreet.errors import ParameterError, PluginError

COMMANDS: dict[str, Any] = {
    "check": check,
    "methods": methods,
    "tabulate": tables.tabulate,
    "protect": tables.protect,
    "fit": tables.fit,
    "private": private,
    "synthesize": synthesize,
    "swap": swap,
    "assess": judge.assess,
    "audit": judge.audit,
    "compare": judge.compare,
    "study": None,
    "publish": publish.publish,
    "republish": publish.republish,
    "run": tables.run,
    "export": tables.export,
    "argus": argus,
    "ptable": tables.ptable,
    "keys": custody.keys,
    "codes": custody.codes,
    "ledger": custody.ledger,
    "secret": custody.secret,
    "demo": demo,
    "build": site.build,
    "serve": site.serve,
    "replay": site.replay,
    "token": custody.token,
    "log": custody.log,
}
"""Commands in the order of the help; a study comes with a package of its own."""
PACKAGES = {"study": "discreet-studies"}
"""Commands that come with packages of their own; they are listed whether these are there or not."""


class OnceEach(typer.core.TyperCommand):
    """A command that refuses an option given twice: of two columns to sum the first would go."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; options that may be repeated say so in the help."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        once = [p for p in order if isinstance(p, typer.core.TyperOption) and not p.multiple]
        for option in once:
            if once.count(option) > 1 and not option.is_flag:
                flag, often = option.opts[0], once.count(option)
                raise ParameterError(f"{flag} is given {often} times, and takes one value.")
        return super().parse_args(ctx, args)


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
    others = registry.plugin_entries("command", frozenset(COMMANDS) - frozenset(PACKAGES))
    # Our own order first: the help reads as the work goes, whoever's a command is.
    for name in dict.fromkeys([*COMMANDS, *others]):
        if name in others:
            try:
                app.command(name)(registry.load_plugin("command", others[name]))
            except PluginError as error:  # other commands go on without it
                _refuse(app, name, error)
        elif name in PACKAGES:
            package = PACKAGES[name]
            line = f"`discreet {name}` needs the package {package}: `pip install {package}`."
            _refuse(app, name, PluginError(line))
        else:
            app.command(name, cls=OnceEach)(COMMANDS[name])
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
