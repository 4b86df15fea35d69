"""What the page on hosting says is so."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from discreet.serve import AccountsConfig, TimeoutProtocol
from discreet.serve.app import MOST_BYTES
from discreet.serve.guard import LARGEST_BODY, LONGEST_QUERY
from discreet.serve.office.config import AuditConfig
from discreet.serve.site.config import ServerConfig
from discreet.serve.site.sections import section

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("kind", [AccountsConfig, AuditConfig, ServerConfig])
def test_every_setting_is_described(kind):
    for setting in fields(kind):
        assert re.search(rf"\b{setting.name}\b", PAGE), f"{setting.name} is not on the page"


def test_the_sections_on_the_page_are_taken():
    found = {name: part for block in BLOCKS for name, part in tomllib.loads(block).items()}
    assert found.keys() == {"server", "accounts", "audit"}
    for kind, name in (
        (AccountsConfig, "accounts"),
        (AuditConfig, "audit"),
        (ServerConfig, "server"),
    ):
        section(kind, found[name], f"[{name}]")


def test_limits_are_as_the_page_says():
    assert f"{TimeoutProtocol.request_seconds:g} seconds to send" in PAGE
    assert f"{TimeoutProtocol.answer_seconds:g} seconds to take" in PAGE
    assert f"bodies of more than {LARGEST_BODY // 1000} kB" in PAGE
    assert f"addresses of more than {LONGEST_QUERY:,} characters" in PAGE
    assert f"memory, {MOST_BYTES // 1_000_000} MB for each process" in PAGE


def test_the_container_runs_as_an_ordinary_user_on_a_slim_base():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)
    last = max(k for k, line in enumerate(lines) if line.startswith("FROM "))
    assert "USER discreet" in lines[last:]
    assert not any("pip install" in line for line in lines[last:])


def test_the_wheel_ships_templates_and_texts():
    """All of them lie inside the package, beside the code that reads them."""
    package = ROOT / "src" / "discreet" / "serve"
    assert (package / "web" / "templates" / "admin.html").exists()
