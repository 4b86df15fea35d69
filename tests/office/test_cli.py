"""`discreet token` and `discreet log`, as a custodian types them."""

import csv
import json
from datetime import UTC, datetime

import pytest

from discreet.errors import ParameterError
from discreet.serve import AuditEntry, AuditLog, OfficeDatabase, read_site
from discreet.serve.office.audit import now
from discreet.serve.office.credentials import all_tokens, find_token
from tests.commands import run

SITE = """
title = "Small"
[datasets.people]
records = "people.csv"
[datasets.people.recipe.tabulate]
margins = "sex"
[datasets.people.recipe.protect]
method = "cell-key"
"""


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


@pytest.fixture
def store(site):
    store = OfficeDatabase(site.parent / "office.db")
    yield store
    store.close()


def test_tokens_are_added_listed_and_revoked(site, store, capsys):
    assert run("token", "add", "ann", "--role", "custodian", "--site", site) == 0
    token = capsys.readouterr().out.splitlines()[-1]
    assert find_token(token, all_tokens(store)).role == "custodian"
    assert run("token", "list", "--site", site) == 0
    shown = capsys.readouterr().out
    assert "ann  custodian" in shown
    assert token not in shown
    assert run("token", "revoke", "ann", "--site", site) == 0
    assert all_tokens(store) == {}
    assert run("token", "revoke", "ann", "--site", site) != 0
    assert run("token", "add", "--site", site) != 0
    assert "name the token" in capsys.readouterr().err


def test_the_log_is_shown_exported_and_cut(site, store, tmp_path, capsys):
    log = AuditLog(store)
    old = datetime(2020, 1, 1, tzinfo=UTC)
    for time, outcome in ((now(), "ok"), (now(), "too_many_cells"), (old, "ok")):
        log.record(AuditEntry(time, "ann", "people", "1", "rows=sex", "table", outcome, 3, 2.0))
    log.close()
    assert run("log", "usage", "--site", site, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(d["questions"], d["refused"]) for d in found["days"]] == [(2, 1)]
    assert run("log", "usage", "--site", site) == 0
    assert "refused in people: too_many_cells, 1 times" in capsys.readouterr().out
    out = tmp_path / "log.csv"
    assert run("log", "export", "--site", site, "--since", "2026-01-01", "--out", out) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    assert len(list(csv.DictReader(out.read_text().splitlines()))) == 2
    assert run("log", "forget", "--site", site) != 0
    assert run("log", "forget", "--site", site, "--days", 400) == 0
    capsys.readouterr()
    assert run("log", "export", "--site", site) == 0
    *_, mark = lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "1 entries before" in mark


def test_a_mistake_in_the_office_s_sections_is_found_when_the_file_is_read(site):
    site.write_text(f"{SITE}\n[accounts]\nwho = 'proxy'\n")
    with pytest.raises(ParameterError, match="trusted_proxies"):
        read_site(site)
