"""The commands, run in the process of the tests."""

import pytest

from discreet.cli import main


def run(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code
