"""Rules by name, from recipes and the command line."""

import pandas as pd
import pytest

import discreet as dc
from discreet import registry
from discreet.cli import main
from discreet.errors import ParameterError, UnknownNameError
from discreet.protect.cells import on_public_support
from discreet.publication import Choice, Publication
from discreet.rules.counts import rule_named

RULES = [
    dc.rules.Threshold(2),
    dc.rules.Threshold(3, zeros=True),
    dc.rules.DirectDisclosure(2),
    dc.rules.GroupDisclosure(0.8),
    dc.rules.KDisclosure(2),
    dc.rules.Dominance(2, 87.5),
    dc.rules.PPercent(10),
    dc.rules.PQ(10, 50),
    dc.rules.FewContributors(4),
]

FIRMS = pd.DataFrame(
    {
        "trade": ["x", "x", "x", "y", "y", "y"] * 2,
        "region": ["n"] * 6 + ["s"] * 6,
        "firm": ["A", "B", "C", "D", "E", "F", "A", "G", "H", "I", "J", "K"],
        "turnover": [90.0, 5, 1, 20, 20, 20, 30, 30, 30, 15, 15, 15],
    }
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_found_by_its_name(rule):
    assert rule_named(rule.name) == rule


def test_several_rules():
    assert dc.Suppress("p%(10)").rules == (dc.rules.PPercent(10),)
    assert dc.Suppress(["dominance(1, 80)", " p% "]).rules == (
        dc.rules.Dominance(1, 80),
        dc.rules.PPercent(),
    )


def test_names_that_are_no_rules_are_told():
    with pytest.raises(UnknownNameError, match="Did you mean 'dominance'"):
        rule_named("dominanz(1, 80)")
    with pytest.raises(ParameterError, match="not closed"):
        rule_named("p%(10")
    for wrong in ("p%(a)", "dominance(1, 80, 3, 4)", "p%(10, zeros)"):
        with pytest.raises(ParameterError, match="cannot be read"):
            rule_named(wrong)


def test_recipes_sum_values_and_name_rules(tmp_path):
    recipe = Publication(
        "trade*region",
        Choice("suppress", {"rules": ["p%(10)"]}),
        magnitude={"value": "turnover", "contributor": "firm", "largest": 2},
    )
    again = Publication.read(recipe.write(tmp_path / "recipe.toml"))
    assert again == recipe
    release = again.run(dc.open(FIRMS))
    assert release.unit == "turnover"
    assert release.hidden[release.design.position({"trade": "x", "region": "n"})]
    with pytest.raises(UnknownNameError, match="Did you mean 'value'"):
        Publication("trade", Choice("suppress"), magnitude={"valu": "turnover"})


def test_the_command_line_goes_from_firms_to_a_release(tmp_path, capsys):
    FIRMS.to_csv(tmp_path / "firms.csv", index=False)
    table, out = str(tmp_path / "table.parquet"), tmp_path / "release.csv"
    commands = [
        ["tabulate", str(tmp_path / "firms.csv"), "--by", "trade*region", "--value", "turnover"]
        + ["--contributor", "firm", "--out", table],
        ["protect", table, "--method", "suppress", "-s", "rules=p%(10)", "--out", str(out)],
    ]
    for command in commands:
        with pytest.raises(SystemExit) as stop:
            main(command)
        assert stop.value.code == 0, capsys.readouterr().err
    shown = pd.read_csv(out)
    hidden = shown[shown["status"] == "suppressed"]
    assert {("x", "n")} <= set(zip(hidden["trade"], hidden["region"], strict=True))
    assert "largest_1" not in shown.columns


def test_contributions_follow_their_cells_to_the_full_crossing():
    few = FIRMS[(FIRMS["trade"] == "x") | (FIRMS["region"] == "n")]
    table = dc.Table.from_contributions(
        few, "trade*region", value="turnover", contributor="firm", support="occurring"
    )
    full = on_public_support(table, with_inner=True)
    other = dc.Table.from_contributions(
        few, "trade*region", value="turnover", contributor="firm", support="all"
    )
    for part in ("sum", "count", "largest", "owner"):
        for cells in ("published", "inner"):
            one, two = getattr(full.contributions, cells), getattr(other.contributions, cells)
            assert (getattr(one, part) == getattr(two, part)).all()
    assert on_public_support(table).contributions.inner is None


def test_suppression_takes_rules_by_name():
    assert registry.build("method", "suppress", {"rules": "p%(5)"}).rules == (dc.rules.PPercent(5),)
