"""Whatever a method says is said in Norwegian too: notes have all of it or are refused."""

import pytest

import discreet as dc
from discreet.errors import DataError
from discreet.release.language import Language
from discreet.release.notes import headed_methods, methods_note, public_note
from discreet.rules import Dominance, PPercent, ZeroUnsafe

CODES = """
[region]
codes = ["N", "S"]
other = "drop"
missing = "drop"
[sex]
codes = ["f", "m"]
other = "drop"
missing = "drop"
"""
NORWEGIAN = Language.read("nb")
ENGLISH = {
    "were",
    "noise",
    "rounded",
    "the",
    "of",
    "have",
    "stands",
    "most",
    "true",
    "which",
    "cells",
}
METHODS = {
    "discrete-laplace": {"epsilon": 1.0},
    "laplace": {"epsilon": 1.0},
    "discrete-gaussian": {"rho": 0.1},
    "capped": {"epsilon": 1.0, "cap": 500},
}
UNITS = {
    "record": {},
    "person": {"person": "pid", "max_records": 3},
    "weight": {"weight": "w", "weight_bound": 5},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    rows = "".join(
        f"{k},{k // 2},{'NS'[k % 2]},{'fm'[k % 3 % 2]},{1 + k % 4},{k * 37 % 101 + 1}\n"
        for k in range(300)
    )
    (folder / "people.csv").write_text("id,pid,region,sex,w,turnover\n" + rows)
    (folder / "codes.toml").write_text(CODES)
    return folder


def simulate(folder, method, unit, known):
    people = dc.open(folder / "people.csv", codes=str(folder / "codes.toml"), id="id")
    table = people.with_roles(**UNITS[unit]).tabulate("region*sex")
    name = "discrete-laplace" if method == "capped" else method
    return table.simulate(
        name, seed=1, unit="weight" if unit == "weight" else None, **METHODS[method], **known
    )


@pytest.mark.parametrize("known", [{}, {"known": ["1"]}, {"known": ["1", "region"]}])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("method", METHODS)
def test_notes_of_private_releases_are_norwegian(source, method, unit, known):
    release = simulate(source, method, unit, known)
    said = " ".join(text for _, lines in methods_note(release, NORWEGIAN) for text in lines)
    said += public_note(release, NORWEGIAN) + NORWEGIAN.say(release.statement.office)
    english = {"record", "noise", "outcome", "person recorded", "the", "margins"} & {*said.split()}
    assert not english


def test_a_sentence_that_is_missing_is_named(source):
    release = simulate(source, "discrete-laplace", "record", {"known": ["region"]})
    texts = {e: n for e, n in NORWEGIAN.texts.items() if "published without noise" not in e}
    with pytest.raises(DataError, match="published without noise"):
        methods_note(release, Language("nb", texts, NORWEGIAN.words))


def assert_said(release):
    assert methods_note(release, NORWEGIAN)
    headed = headed_methods(release, NORWEGIAN)  # without titles of works in other languages
    said = " ".join(text for _, lines in headed for text in lines)
    said += public_note(release, NORWEGIAN) + NORWEGIAN.say(release.statement.office)
    assert not ENGLISH & {*said.split()}


@pytest.mark.parametrize("variance", [None, 0.05, 0.4])
@pytest.mark.parametrize("grid", [2.5, "mean-weight", "cell-weight"])
@pytest.mark.parametrize("method", ["cell-key", "pram"])
def test_notes_of_weighted_counts(source, method, grid, variance):
    people = dc.open(source / "people.csv", codes=str(source / "codes.toml"), id="id")
    weights = {"weight": "w", "weight_bound": 5, "mean_weight": 2.5, "weight_variance": variance}
    table = people.with_roles(**weights).tabulate("region*sex")
    assert_said(table.simulate(method, seed=1, unit="weight", grid=grid))


@pytest.mark.parametrize("grid", [2.5, "mean-weight"])
@pytest.mark.parametrize("method", ["laplace", "discrete-laplace", "discrete-gaussian"])
def test_notes_of_private_weighted_counts(source, method, grid):
    people = dc.open(source / "people.csv", codes=str(source / "codes.toml"), id="id")
    table = people.with_roles(weight="w", weight_bound=5, mean_weight=2.5).tabulate("region*sex")
    assert_said(table.simulate(method, seed=1, unit="weight", grid=grid, **METHODS[method]))


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pram", {"invariant": True}),
        ("pram", {"invariant": True, "realised": True, "small_cells": False}),
        ("safe", {"min_count": 2}),
        ("small-count-rounding", {"identify_new": False}),
        ("cell-key", {"margins": "summed"}),
        (dc.Adjust(), {}),
        ("quality", {"D": 5, "V": 3, "edges": (1, 4)}),
        ("quality", {"D": 5, "V": 3, "edges": (2,)}),
        (dc.Suppress(decimals="rmse"), {}),
    ],
)
def test_notes_of_chosen_options(source, method, options):
    people = dc.open(source / "people.csv", codes=str(source / "codes.toml"), id="id")
    assert_said(people.tabulate("region*sex").simulate(method, seed=1, **options))


@pytest.mark.parametrize(
    "method",
    [
        "magnitude-key",
        dc.Suppress([PPercent(10)]),
        dc.Suppress([Dominance(2, 90)]),
        dc.Suppress([ZeroUnsafe()]),
    ],
)
def test_notes_of_sums(source, method):
    people = dc.open(source / "people.csv", codes=str(source / "codes.toml"), id="id")
    assert_said(people.tabulate("region*sex", value="turnover").simulate(method, seed=1))


def test_a_fit_short_of_its_goal_is_said():
    reached = "largest deviation 0.5 counts, at published cell 3; reached 1e-05, asked for 1e-08"
    goal = "figures add up, but others that add up are nearer to the changed values."
    said = NORWEGIAN.say(f"The fit did not reach its goal (it ended as stalled; {reached}): {goal}")
    assert "stanset; største avvik 0,5, i publisert celle 3; nådde 1e-05" in said
