"""One list of settings feeds the command line, the config file and the docs."""

import inspect
import re
from pathlib import Path

import pytest
import typer

from discreet.cli.serve import serve
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.serve.settings import SETTINGS, Settings

DOCS = Path(__file__).parents[2] / "docs" / "serve.md"


def test_the_command_line_has_every_setting_with_its_help():
    command = typer.main.get_command(_app())
    options = {p.name: p for p in command.params}
    for setting in SETTINGS:
        shown = options[setting.name].help
        assert setting.help in shown
        assert f"[default: {setting.default}]" in shown
        assert inspect.signature(serve).parameters[setting.name].default is None


def _app():
    app = typer.Typer()
    app.command()(serve)
    return app


def test_the_docs_table_is_the_list_of_settings():
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.+?) \|$", DOCS.read_text(), re.MULTILINE)
    assert rows == [(s.name, str(s.default), s.help) for s in SETTINGS]


def test_a_config_file_sets_what_it_names_and_the_command_line_wins(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text('title = "Our census"\nmax_cells = 500\n')
    settings = Settings.read(path).changed({"max_cells": 99, "port": None})
    assert (settings.title, settings.max_cells, settings.port) == ("Our census", 99, 8000)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("max_cell = 5", UnknownNameError, "Did you mean 'max_cells'?"),
        ('port = "8000"', ParameterError, "port must be of type int"),
        ("max_cells = true", ParameterError, "max_cells must be of type int"),
        ("port = 70000", ParameterError, "0..65535"),
        ('title = " "', ParameterError, "title must not be empty"),
        ("max_variables = 0", ParameterError, "at least 1"),
        ("kept_tables = 0", ParameterError, "at least 1"),
        ("port = = 3", DataError, "not valid TOML"),
    ],
)
def test_a_wrong_config_file_is_a_clear_error(tmp_path, text, error, said):
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(error, match=re.escape(said)):
        Settings.read(path)


def test_a_missing_config_file_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        Settings.read(tmp_path / "none.toml")
