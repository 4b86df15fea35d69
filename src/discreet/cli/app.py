"""The commands, gathered: our own, and what other packages register in `discreet.commands`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from discreet import __version__, registry
from discreet.errors import DiscreetError, ParameterError, PluginError

HOMES = {
    "check": "discreet.cli.check:check",
    "methods": "discreet.cli.methods:methods",
    "tabulate": "discreet.cli.tables:tabulate",
    "protect": "discreet.cli.tables:protect",
    "fit": "discreet.cli.tables:fit",
    "private": "discreet.cli.synthesize:private",
    "synthesize": "discreet.cli.synthesize:synthesize",
    "swap": "discreet.cli.synthesize:swap",
    "assess": "discreet.cli.judge:assess",
    "audit": "discreet.cli.judge:audit",
    "attack": "discreet.cli.attack:attack",
    "compare": "discreet.cli.judge:compare",
    "study": "",
    "publish": "discreet.cli.publish:publish",
    "republish": "discreet.cli.publish:republish",
    "export": "discreet.cli.tables:export",
    "argus": "discreet.cli.argus:argus",
    "ptable": "discreet.cli.methods:ptable",
    "keys": "discreet.cli.custody:keys",
    "codes": "discreet.cli.custody:codes",
    "ledger": "discreet.cli.custody:ledger",
    "secret": "discreet.cli.custody:secret",
    "demo": "discreet.cli.demo:demo",
    "build": "discreet.cli.site:build",
    "serve": "discreet.cli.site:serve",
    "replay": "discreet.cli.site:replay",
    "token": "discreet.cli.custody:token",
    "log": "discreet.cli.custody:log",
}
"""Where each command is, in the order of the help; a study comes with a package of its own."""
PACKAGES = {"study": "discreet-studies"}
"""Commands that come with packages of their own; they are listed whether these are there or not."""
GONE = {
    "run": "`discreet run` is `discreet publish` now. A recipe becomes a publication once, "
    "`discreet publish --convert recipe.toml --draft people.csv publication.toml`, and `discreet "
    "publish publication.toml` publishes it every period."
}
"""Commands of version 0.2 that others took the place of; they are not listed."""


class OnceEach(TyperCommand):
    """A command that refuses an option given twice: of two columns to sum the first would go."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; options that may be repeated say so in the help."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        once = [p for p in order if isinstance(p, TyperOption) and not p.multiple]
        for option in once:
            if once.count(option) > 1 and not option.is_flag:
                flag, often = option.opts[0], once.count(option)
                raise ParameterError(f"{flag} is given {often} times, and takes one value.")
        return super().parse_args(ctx, args)


class Commands(Mapping[str, Any]):
    """Commands by name; each is loaded when it is asked for, and the others stay where they are."""

    def __init__(self) -> None:
        self._others = registry.plugin_entries("command", frozenset(HOMES) - frozenset(PACKAGES))

    def __iter__(self) -> Iterator[str]:
        # Our own order first: the help reads as the work goes, whoever's a command is.
        return iter(dict.fromkeys([*HOMES, *self._others]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Any:
        single = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        if name in GONE:
            _refuse(single, name, ParameterError(GONE[name]))
        elif name in self._others:
            try:
                single.command(name)(registry.load_plugin("command", self._others[name]))
            except PluginError as error:  # other commands go on without it
                _refuse(single, name, error)
        elif name in PACKAGES:
            package = PACKAGES[name]
            line = f"`discreet {name}` needs the package {package}: `pip install {package}`."
            _refuse(single, name, PluginError(line))
        else:
            single.command(name, cls=OnceEach)(registry.load_path(HOMES[name]))
        found = get_command(single)
        first, stop, _ = " ".join((found.help or "").split("\n\n")[0].split()).partition(". ")
        found.short_help = first + stop.strip()  # whole, where the default is cut at the line's end
        return found


class _Group(TyperGroup):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


def build_app() -> typer.Typer:
    """The command line with every command that is installed."""
    app = typer.Typer(
        name="discreet",
        cls=_Group,
        help="Publish tables without betraying the people in them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_top)
    return app


def _top(
    version: bool = typer.Option(False, "--version", help="Show the version and stop."),
) -> None:
    if version:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


def _refuse(app: typer.Typer, name: str, error: DiscreetError) -> None:
    """A command that cannot be had says why, whatever it is asked, its help included."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, help=str(error), add_help_option=False, context_settings=anything)
    def refuse() -> None:
        raise error


app = build_app()
