"""The command line: one command, one file; bad input ends in one clear line and exit code 2."""

from __future__ import annotations

import sys

from discreet.errors import DiscreetError

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    from discreet.cli.app import app

    try:
        code = app(args=arguments, standalone_mode=False)
    except DiscreetError as error:
        _fail(" ".join(str(error).split()))
    except KeyboardInterrupt:
        _stopped()
    except Exception as error:
        _usage(error)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> None:
    """Wrong use of a command, which typer reports by a click of its own; anything else goes on."""
    if type(error).__name__ == "Abort":
        _stopped()
    if not hasattr(error, "format_message"):
        raise error
    _fail(" ".join(error.format_message().split()))


def _stopped() -> None:
    sys.stderr.write("stopped; nothing was left half-written.\n")
    sys.exit(INTERRUPTED)


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(BAD_INPUT)
