"""Periods inside one data set: each is an edition, and files have series without a total."""

import json

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.facade import read_release
from discreet.ledger import Ledger
from tests.publication.office import publish, records, run, write

MONTHS = ("2026-01", "2026-02", "2026-10")


def pooled(periods=MONTHS, name="month", seed=1):
    """Records of all periods in one file; many are in several of them."""
    frames = [
        records(seed + k % 2, 900 + 40 * k).assign(**{name: code}) for k, code in enumerate(periods)
    ]
    return pd.concat(frames)


@pytest.fixture
def months(office):
    write(office, more='time = "month"\n', time="month")
    text = (office / "texts" / "nb.toml").read_text()
    (office / "texts" / "nb.toml").write_text(text.replace('year = "År"', 'month = "Måned"'))
    pooled().sample(frac=1, random_state=1).to_csv(office / "people.csv", index=False)
    return office


def test_one_command_publishes_all_periods_in_their_order(months, capsys):
    assert run("publish", "publication.toml", "--json") == 0
    done = json.loads(capsys.readouterr().out)["editions"]
    assert [each["edition"] for each in done] == list(MONTHS)
    folder = months / "published" / MONTHS[-1] / "series"
    px = (folder / "age-by-region.px").read_text()
    assert 'TIMEVAL("Month")=TLIST(M1),"202601","202602","202610";' in px
    assert 'TIMEVAL[nb]("Måned")=TLIST(M1),"202601","202602","202610";' in px
    assert 'ELIMINATION("Month")' not in px, "there is no total over periods"
    rows = pd.read_csv(folder / "age-by-region.sdmx.csv")
    assert list(dict.fromkeys(rows["TIME_PERIOD"])) == list(MONTHS)
    stored = json.loads((folder / "age-by-region.jsonstat.json").read_text())
    assert stored["role"] == {"time": ["month"]}
    people = pooled()
    for period in MONTHS:  # each figure is that of its own period's release
        release = read_release(months / "published" / period / "release.parquet")["Age by region"]
        shown = rows[rows["TIME_PERIOD"] == period]["OBS_VALUE"]
        assert sorted(shown) == sorted(release.z)
        total = release.z[release.design.position({})]
        assert abs(total - (people["month"] == period).sum()) < 40
    entered = [row["edition"] for row in Ledger(months / "discreet.db").rows()]
    assert set(entered) == set(MONTHS)
    assert run("publish", "publication.toml") == 2
    assert "all periods" in capsys.readouterr().err
    more = pooled(["2026-11"])  # the very people of 2026-01
    pd.concat([pooled(), more]).to_csv(months / "people.csv", index=False)
    assert run("publish", "publication.toml") == 2
    assert "differs from that of edition '2026-01' by about 0" in capsys.readouterr().err
    pd.concat([pooled(), pooled(["2026-11"], seed=7)]).to_csv(months / "people.csv", index=False)
    assert run("publish", "publication.toml") == 0
    assert (months / "published" / "2026-11" / "series" / "people.xlsx").is_file()


def test_a_correction_takes_the_records_of_its_period(months):
    assert publish("2026-01") == 0
    pooled(seed=5).to_csv("people.csv", index=False)
    given = ("--corrects", "2026-01", "--reason", "Wrong.")
    assert publish("2026-01-r1", *given) == 0
    both = [read_release(months / "published" / e / "release.parquet")["Age by region"]
            for e in ("2026-01", "2026-01-r1")]  # fmt: skip
    assert abs(both[0].z[0] - both[1].z[0]) < 40
    assert publish("2026-7") == 2


def test_periods_are_never_counted_together(months):
    path = months / "people.csv"
    data = dc.open(path, time="month")
    assert data.periods == list(MONTHS)
    with pytest.raises(DataError, match=r"3 periods of 'month'.*--period 2026-10"):
        data.tabulate("region*age")
    one = dc.open(path, time="month", period="2026-02", id="id")
    assert one.data_set.edition == "2026-02"
    table = one.tabulate("region")
    assert table.z[table.design.position({})] == 940
    with pytest.raises(UnknownNameError, match="2026-2"):
        dc.open(path, time="month", period="2026-2")
    with pytest.raises(ParameterError, match="time="):
        dc.open(path, period="2026-02")
    frame = pooled()
    frame.loc[frame.index[:1], "month"] = None
    with pytest.raises(DataError, match="have no 'month'"):
        dc.open(frame, time="month", period="2026-02")


def test_numbers_and_quarters_are_periods(tmp_path):
    frame = pooled((2024, 2025), "year")
    assert dc.open(frame, time="year").periods == ["2024", "2025"]
    assert np.array_equal(
        dc.open(frame, time="year", period="2025").tabulate("region").z,
        dc.open(frame[frame["year"] == 2025]).tabulate("region").z,
    )


def test_changed_codes_end_a_series_and_it_is_said(office):
    plain = (office / "publication.toml").read_text().replace('ledger = "discreet.db"\n', "")
    (office / "publication.toml").write_text(plain)
    assert publish("2024") == 0
    (office / "codes.toml").write_text(
        (office / "codes.toml").read_text().replace('"W"]', '"W", "X"]')
    )
    text = (office / "texts" / "nb.toml").read_text()
    (office / "texts" / "nb.toml").write_text(text.replace('W = "Vest"', 'W = "Vest"\nX = "Øst"'))
    records(2).to_csv(office / "people.csv", index=False)
    for edition in ("2025", "2026"):
        assert publish(edition) == 0
        records(3).to_csv(office / "people.csv", index=False)
    series = office / "published" / "2026" / "series"
    assert set(pd.read_csv(series / "sex-by-region.csv")["year"]) == {2025, 2026}
    px = (series / "sex-by-region.px").read_text()
    assert "The series begins with 2025: variables or codes were others before." in px
    assert "Serien begynner med 2025: variabler eller koder var andre før." in px
    log = (office / "confidential" / "people-2026.md").read_text()
    assert "The series of 'Sex by region' begins with 2025, since codes changed." in log
