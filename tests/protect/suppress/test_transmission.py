"""Confidential files for partners: true values with codes of confidentiality."""

import pandas as pd
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.suppress import write_transmission
from discreet.suppress.apriori import confidentiality
from discreet.suppress.argus import APriori

FIRMS = pd.DataFrame(
    {
        "trade": ["x", "x", "x", "y", "y", "y", "z", "z", "z", "w", "w", "w"] * 2,
        "region": ["n"] * 12 + ["s"] * 12,
        "firm": range(24),
        "turnover": [90.0, 5, 1, 20, 20, 20, 9, 9, 9, 40, 39, 1] + [10.0, 9, 8] * 4,
    }
)


def test_every_state_and_reason_has_its_code(tmp_path):
    table = dc.Table.from_contributions(FIRMS, "trade*region", value="turnover", contributor="firm")
    rules = [
        dc.rules.Dominance(1, 80),
        dc.rules.Dominance(2, 90),
        dc.suppress.Exempt(dc.rules.PPercent(40)),
    ]
    pattern = dc.Suppress(rules).pattern(table)
    path = write_transmission(pattern, tmp_path / "t.csv", rules=rules, dataflow="EX:T(1.0)")
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    sent = pd.read_csv(path, dtype=str).set_index(["trade", "region"])
    assert sent.loc[("x", "n"), ["OBS_VALUE", "CONF_STATUS"]].tolist() == ["96", "O"]
    assert sent.loc[("w", "n"), "CONF_STATUS"] == "T"
    assert sent.loc[("Total", "Total"), "CONF_STATUS"] == "F"
    counts = sent["CONF_STATUS"].value_counts()
    assert counts.get("D", 0) == pattern.n_secondary > 0
    assert counts[["O", "T"]].sum() + counts.get("M", 0) == pattern.n_primary
    assert set(sent["OBS_STATUS"]) == {"A"}


def test_codes_of_rules():
    file = APriori.of_cells({("x",): "u"})
    rules = {
        dc.rules.Threshold(3): "A",
        dc.rules.FewContributors(3): "A",
        dc.rules.Dominance(3, 90): "M",
        dc.rules.PPercent(10): "M",
        dc.rules.PQ(10, 50): "M",
    }
    assert {rule: confidentiality(rule) for rule in rules} == rules
    assert confidentiality(dc.suppress.Listed(file)) == "C"


def test_a_transmission_is_a_csv_file(tmp_path):
    table = dc.Table.from_counts(pd.DataFrame({"a": ["x"], "n": [1]}), "n", "a")
    pattern = dc.Suppress().pattern(table)
    with pytest.raises(ParameterError, match=r"\.csv"):
        write_transmission(pattern, tmp_path / "t.txt", dataflow="EX:T(1.0)")
