"""Files that version 0.2 wrote are opened, and hold the figures that they held."""

import json
import shutil
from pathlib import Path

import pytest

import discreet as dc
from discreet.cli import main

FILES = Path(__file__).parent / "files_of_0_2"


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code


@pytest.fixture
def site(tmp_path):
    """The site in a folder of its own, with files that only their owner reads."""
    folder = shutil.copytree(FILES / "site", tmp_path / "site")
    for name in ("keys.secret", "office.db", "site-ledger.db"):
        (folder / name).chmod(0o600)
    return folder
