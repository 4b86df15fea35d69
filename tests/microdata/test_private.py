"""From records to private records in one call, within a budget."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dc
from discreet.cli import main
from discreet.errors import DiscreetError

CODES = {"a": list("xyz"), "b": list("uv"), "c": list("rst"), "d": list("kl")}


def records(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table({name: rng.choice(codes, n) for name, codes in CODES.items()})


@pytest.fixture(scope="module")
def people():
    lists = {name: dc.Hierarchy.flat(codes) for name, codes in CODES.items()}
    return dc.open(records(), hierarchies=lists, name="people")


@pytest.mark.parametrize("delta", [None, 1e-9])
@pytest.mark.parametrize("margins", [None, ["a*b", "b*c", "d"], "a*b + c*d"])
def test_records_come_within_the_budget(people, margins, delta):
    release = people.private(margins, epsilon=3, delta=delta)
    assert release.fit_result.is_converged
    cost = release.statement.privacy
    assert cost.epsilon == pytest.approx(3, rel=1e-6)
    made = release.to_microdata()
    assert abs(made.num_rows - 3000) < 300
    assert set(made.column_names) == set(CODES)
    assert set(made["a"].to_pylist()) <= set(CODES["a"])


def test_all_pairs_are_measured_unless_margins_are_named(people):
    release = people.private(epsilon=3, delta=1e-9)
    cells = sum(len(CODES[one]) * len(CODES[two]) for one in CODES for two in CODES if one < two)
    assert release.design.n_published == cells


def test_the_ledger_counts_it_and_refuses_the_next(people, tmp_path):
    book = dc.Ledger(tmp_path / "l.db", epsilon=1.2, delta=1e-8)
    people.private(["a*b"], epsilon=1, delta=1e-9, ledger=book)
    with pytest.raises(DiscreetError, match="budget"):
        people.private(["a*b"], epsilon=1, delta=1e-9, ledger=book)


def test_found_codes_are_refused():
    with pytest.raises(DiscreetError, match="declare"):
        dc.open(records(100)).private(["a*b"], epsilon=1)


def test_structural_zeros_stay_empty_under_strong_noise():
    people = dc.demo.census(persons=1500)
    for margins in ("sex*marital + education*citizenship", "sex*marital + marital*education"):
        release = people.private(margins, epsilon=0.5, delta=1e-9)
        made = release.to_microdata()
        assert made.num_rows == round(release.fit_result.cells.records.shape[0])
        for rule in people.structural_zeros:
            if set(rule) <= set(made.column_names):
                inside = np.ones(made.num_rows, dtype=bool)
                for name, codes in rule.items():
                    listed = [codes] if isinstance(codes, str) else list(map(str, codes))
                    inside &= np.isin(made[name].to_pylist(), listed)
                assert not inside.any()


def test_the_command_writes_records_and_their_statement(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(records(500), "people.csv")
    lists = (f"[{name}]\ncodes = {json.dumps(codes)}\n" for name, codes in CODES.items())
    (tmp_path / "codes.toml").write_text("".join(lists))
    words = "private people.csv --codes codes.toml --epsilon 2 --delta 1e-9 --out s.csv"
    with pytest.raises(SystemExit, match="0"):
        main([*words.split(), "--json", "--release", "r.parquet"])
    shown = json.loads(capsys.readouterr().out)
    assert shown["side"] == "public"
    assert pyarrow.csv.read_csv("s.csv").num_rows == shown["records"]
    assert "ε = 2" in (tmp_path / "s.statement.txt").read_text()
    assert dc.read("r.parquet").statement.text == shown["statement"]
