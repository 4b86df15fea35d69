"""The command line: one command, one file; bad input ends in one clear line and exit code 2."""

from __future__ import annotations

import re
import sys

from discreet.errors import DiscreetError

BAD_INPUT, INTERRUPTED = 2, 130
# Arguments of Python that commands have flags for: errors speak of what the reader can type.
_FLAGS = (
    "again clusters codes convention decimal delimiter edition editions encoding gain groups "
    "header id keep key keys large ledger max_records mean_weight merge metadata method missing "
    "name person pieces random_keys secret seed support thousands unit weight weight_bound"
)
_ARGUMENT = re.compile(
    rf"\b(?P<name>{'|'.join(_FLAGS.split())})="
    r"(?:'(?P<text>[^']*)'|(?P<number>\d+)|True|\.\.\.|…)?"
)
_CALL = re.compile(r"[\w.]+\((?:(?:\.\.\.|…), )?(.*)\)")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    from discreet.cli.app import app  # start-up time

    try:
        code = app(args=arguments, standalone_mode=False)
    except DiscreetError as error:
        _fail(in_flags(" ".join(str(error).split())))
    except MemoryError as error:
        _fail(
            f"there is not enough memory ({error or 'no size is known'}). Cross fewer variables, "
            "or take fewer codes; `discreet check data --by` tells the size of a table."
        )
    except KeyboardInterrupt:
        _stop()
    except Exception as error:
        _usage(error)
    sys.exit(code if isinstance(code, int) else 0)


def in_flags(message: str) -> str:
    """A message with the arguments of Python as flags; other code between backticks stays."""
    parts = message.split("`")
    return "`".join(_as_flags(p) if k % 2 else _ARGUMENT.sub(_flag, p) for k, p in enumerate(parts))


def _as_flags(code: str) -> str:
    """Code as flags, if it is a call or an argument that the command line has flags for."""
    call = _CALL.fullmatch(code)
    found = [_ARGUMENT.fullmatch(a) for a in (call[1] if call else code).split(", ")]
    return " ".join(_flag(a) for a in found if a) if all(found) else code


def _flag(found: re.Match[str]) -> str:
    name, value = found["name"].replace("_", "-"), found["text"] or found["number"]
    return f"--{name} {value}" if value else f"--{name}"


def _usage(error: Exception) -> None:
    """Wrong use of a command, which typer reports by a click of its own; anything else goes on."""
    if type(error).__name__ == "Abort":
        _stop()
    if not hasattr(error, "format_message"):
        raise error
    _fail(" ".join(error.format_message().split()))


def _stop() -> None:
    sys.stderr.write("stopped; nothing was left half-written.\n")
    sys.exit(INTERRUPTED)


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(BAD_INPUT)
