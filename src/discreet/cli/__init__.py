"""The command line: one command, one file; bad input ends in one clear line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from discreet.errors import DiscreetError

BAD_INPUT, INTERRUPTED = 2, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    usual, warnings.formatwarning = warnings.formatwarning, _note
    try:
        _run(arguments)
    finally:
        warnings.formatwarning = usual


def _note(message: Warning | str, *_: Any, **__: Any) -> str:
    """A warning without the line of code that it comes from."""
    return f"note: {message}\n"


def _run(arguments: list[str] | None) -> None:
    from discreet.cli.app import app  # start-up time

    try:
        code = app(args=arguments, standalone_mode=False)
    except DiscreetError as error:
        from discreet.cli.options import in_flags  # start-up time

        _fail(in_flags(" ".join(str(error).split())))
    except MemoryError as error:
        _fail(
            f"there is not enough memory ({error or 'no size is known'}). Cross fewer variables, "
            "or take fewer codes; `discreet check data --by` tells the size of a table."
        )
    except OSError as error:  # a full disk, a folder that nobody may write to
        if error.strerror is None:
            raise
        place = "" if error.filename is None else f"{error.filename}: "
        _fail(f"{place}{error.strerror}.")
    except KeyboardInterrupt:
        _stop()
    except Exception as error:
        _usage(error)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> None:
    """Wrong use of a command, which typer reports by a click of its own; anything else goes on."""
    if type(error).__name__ == "Abort":
        _stop()
    if not hasattr(error, "format_message"):
        raise error
    _fail(_with_input(error))


def _with_input(error: Any) -> str:
    """What typer says of wrong use; where a value has the wrong type, with that value."""
    said = " ".join(error.format_message().replace("Value error, ", "").split())
    if type(error.__cause__).__name__ != "ValidationError":
        return said
    seen = repr(error.__cause__.errors()[0]["input"])
    return said if seen in said else f"{said}; got {seen}."


def _stop() -> None:
    sys.stderr.write("stopped; nothing was left half-written.\n")
    sys.exit(INTERRUPTED)


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(BAD_INPUT)
