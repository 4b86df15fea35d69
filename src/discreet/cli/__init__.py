"""The command line: one command, one file; bad input ends in one clear line and exit code 2."""

from __future__ import annotations

import sys

import click

from discreet.errors import DiscreetError

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    from discreet.cli.app import app

    try:
        code = app(args=arguments, standalone_mode=False)
    except DiscreetError as error:
        _fail(" ".join(str(error).split()))
    except click.ClickException as error:
        _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("stopped; nothing was left half-written.\n")
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(BAD_INPUT)
