"""Sentences about privacy are said in Norwegian too: notes have all of them or are refused."""

import pytest

import discreet as dc
from discreet.errors import DataError
from discreet.release.language import Language
from discreet.release.notes import methods_note, public_note

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
METHODS = {
    "discrete-laplace": {"epsilon": 1.0},
    "laplace": {"epsilon": 1.0},
    "discrete-gaussian": {"rho": 0.1},
    "capped": {"epsilon": 1.0, "cap": 500},
}
UNITS = {
    "record": {},
    "person": {"person": "pid", "id": "id", "max_records": 3},
    "weight": {"weight": "w", "weight_bound": 5},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    rows = "".join(
        f"{k},{k // 2},{'NS'[k % 2]},{'fm'[k % 3 % 2]},{1 + k % 4}\n" for k in range(300)
    )
    (folder / "people.csv").write_text("id,pid,region,sex,w\n" + rows)
    (folder / "codes.toml").write_text(CODES)
    return folder


def simulate(folder, method, unit, known):
    people = dc.open(folder / "people.csv", codes=str(folder / "codes.toml"))
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
