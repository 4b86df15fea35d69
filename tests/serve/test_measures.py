"""Sums and means beside counts: as they were protected, in pages, files and programs."""

import csv
import io
import json
from collections import defaultdict

import numpy as np
import pytest

from discreet.errors import ParameterError
from discreet.release import writers
from discreet.serve import Query, Refusal, make_app, read_site, start_site
from discreet.serve.build import build, open_records_of
from discreet.tables import CellStatus
from tests.serve.client import Client
from tests.serve.firms import RECORDS, records, site_file

NO_SUM = {"tabulate": {"margins": "a"}, "protect": {"method": "safe"}}
PXWEB = "/api/pxweb/v2/tables/firms"


def built(folder, **changes):
    """The site of firms, built and started."""
    config = read_site(site_file(folder, **changes))
    for dataset in config.datasets:
        build(config, dataset, open_records_of(config, dataset), again=False)
    return start_site(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("firms")


@pytest.fixture(scope="module")
def site(folder):
    return built(folder)


@pytest.fixture(scope="module")
def firms(site):
    return site.dataset("firms")


@pytest.fixture(scope="module")
def client(site):
    return Client(make_app(site))


@pytest.fixture(scope="module")
def true_sums():
    """What each cell of region by activity really is, totals included."""
    found = defaultdict(float)
    for _, _, region, activity, _, turnover, _ in records():
        for r in (region, "total"):
            for a in (activity, "total"):
                found[r, a] += turnover
    return found


def cube_of(dataset, asked):
    return dataset.answer(Query.parse(asked)).cube


def cells(client, asked):
    """The rows of a CSV file."""
    text = client.get(f"/d/firms/table.csv?{asked}&labels=codes").text
    return list(csv.DictReader(io.StringIO(text)))


def test_shown_sums_are_the_released_ones_and_others_are_hidden(firms, true_sums):
    cube = cube_of(firms, "rows=region&columns=activity&unit=turnover")
    hidden = cube.status == CellStatus.suppressed
    assert hidden.any()
    assert not hidden.all()
    assert not cube.values[hidden].any()
    codes = [["total", *axis.codes[1:]] for axis in cube.axes]
    for place in np.argwhere(~hidden):
        key = tuple(c[k] for c, k in zip(codes, place, strict=True))
        assert cube.values[tuple(place)] == pytest.approx(true_sums[key])


def test_the_glass_of_the_south_is_nowhere(client, firms, true_sums):
    largest = f"{true_sums['S', 'glass']:.0f}"
    for ending in [writer.ending for writer in writers()]:
        found = client.get(f"/d/firms/table{ending}?rows=region&columns=activity&unit=turnover")
        assert found.status_code == 200
        assert largest.encode() not in found.content
    page = client.get("/d/firms/table?rows=region&columns=activity&unit=turnover").text
    assert largest not in page.replace(",", "")
    assert ":c" in page


@pytest.mark.parametrize("asked", ["rows=region&columns=activity", "rows=activity", "rows=year"])
def test_means_are_quotients_of_two_published_figures(firms, asked):
    asked = f"{asked}&where.activity=bread&where.activity=steel" if "year" in asked else asked
    counts = cube_of(firms, asked)
    sums, means = (cube_of(firms, f"{asked}&unit={u}") for u in ("turnover", "mean-turnover"))
    shown = means.is_shown & (counts.values > 0)
    assert shown.any()
    assert np.array_equal(means.values[shown], sums.values[shown] / counts.values[shown])
    assert np.array_equal(means.status, sums.status)
    assert np.isnan(means.values[means.is_shown & (counts.values == 0)]).all()


def test_a_mean_of_other_sums_would_be_caught(firms, monkeypatch):
    monkeypatch.setattr("discreet.release.cube.Cube.per", lambda sums, _: sums)
    with pytest.raises(AssertionError):
        test_means_are_quotients_of_two_published_figures(firms, "rows=activity")


def test_sums_of_cells_keep_what_is_hidden(firms):
    cube = cube_of(firms, "rows=region&columns=activity&unit=turnover")
    hidden = tuple(np.argwhere(cube.status == CellStatus.suppressed)[0])
    region, activity = (axis.codes[k] for axis, k in zip(cube.axes, hidden, strict=True))
    grouped = cube_of(
        firms, f"rows=region&columns=activity&unit=turnover&group.activity=Both|{activity}|steel"
    )
    assert grouped.status[grouped.axis("region").place(region), -1] == CellStatus.suppressed
    filtered = cube_of(
        firms, f"rows=region&unit=turnover&where.activity={activity}&where.activity=steel"
    )
    assert filtered.status[filtered.axis("region").place(region)] == CellStatus.suppressed


def test_sums_by_keys_are_those_of_their_release(site, folder, client):
    config = read_site(folder / "site.toml")
    (dataset,) = config.datasets
    data = open_records_of(config, dataset)
    release = dataset.measures["wages"].recipe.run(data)
    found = cells(client, "rows=region&columns=activity&layers=year&unit=wages")
    assert sorted(float(row["wages"]) for row in found) == sorted(release.z)


def test_a_crossing_without_a_table_is_refused_with_those_there_are(firms, client):
    with pytest.raises(Refusal) as caught:
        cube_of(firms, "rows=region&columns=year&unit=turnover")
    assert caught.value.code == "not_planned"
    assert "region by activity" in caught.value.allowed.casefold()
    for _, offered in caught.value.offers:
        assert firms.answer(offered)
    page = client.get("/d/firms/table?rows=region&columns=year&unit=turnover")
    assert page.status_code == 400
    assert "Turnover in million crowns" in page.text


def test_means_have_no_shares(firms, client):
    with pytest.raises(Refusal, match="no percentages"):
        cube_of(firms, "rows=region&columns=activity&unit=mean-turnover&show=row")
    shared = "rows=region&columns=activity&show=row"
    page = client.get(f"/d/firms/table?{shared}").text
    assert "unit=mean-turnover" in page
    assert "show=row&amp;unit=mean-turnover" not in page
    led = client.get(f"/d/firms/table?{shared}&unit=mean-turnover").headers["location"]
    assert "show" not in led


def test_rules_judge_measures_by_the_counts_of_their_cells(tmp_path):
    rule = {"policy": {"threshold": 30}}
    firms = built(tmp_path, **rule).dataset("firms")
    asked = "rows=region&columns=activity"
    left_out = ~cube_of(firms, asked).is_shown
    assert left_out.any()
    for unit in ("turnover", "wages", "mean-turnover"):
        assert not (cube_of(firms, f"{asked}&unit={unit}").is_shown & left_out).any()


def test_pages_and_notes_name_the_figures(client):
    page = client.get("/d/firms/table?rows=region&columns=activity&unit=mean-turnover").text
    assert "Turnover per firm, protected: Region by activity" in page
    assert "protected sums divided by protected counts" in page
    assert "protected together, once" in page
    norwegian = client.get(
        "/d/firms/table?rows=region&columns=activity&unit=mean-turnover&lang=nb"
    ).text
    assert "beskyttede summer delt på beskyttede antall" in norwegian


def test_programs_select_measures_as_contents(client):
    contents = client.get(f"{PXWEB}/metadata").json()["dimension"]["ContentsCode"]["category"]
    assert [*contents["index"]] == ["count", "turnover", "mean-turnover", "wages"]
    assert contents["unit"]["mean-turnover"] == {"base": "Turnover per firm", "decimals": 2}
    asked = "valueCodes[region]=*&valueCodes[activity]=*&valueCodes[ContentsCode]=*"
    found = client.get(f"{PXWEB}/data?{asked}").json()
    values = np.array(found["value"], dtype=float).reshape(found["size"])
    values = np.moveaxis(values, found["id"].index("ContentsCode"), 0)
    counts, sums, means = values[:3]
    shown = ~np.isnan(means)
    assert shown.any()
    assert np.isnan(sums).any()
    assert np.allclose(means[shown], sums[shown] / counts[shown])
    steps = found["extension"]["statement"]["steps"]
    assert {"protect:safe", "protect:suppress"} <= {step["name"] for step in steps}
    assert not [s for step in steps for s in step["sentences"] if s["about"] == "values"]


def test_parameters_that_are_kept_back_are_nowhere(tmp_path):
    client = Client(make_app(built(tmp_path, policy={"public_parameters": []})))
    for path in ("d/firms/about", "api/v1/datasets/firms", f"{PXWEB[1:]}/metadata"):
        assert "p%(10)" not in client.get(f"/{path}").text
    asked = "rows=region&columns=activity&unit=mean-turnover"
    for path in (f"d/firms/table?{asked}", f"api/v1/datasets/firms/table?{asked}"):
        assert "p%(10)" not in client.get(f"/{path}").text


def test_programs_read_what_is_measured(client):
    told = client.get("/api/v1/datasets/firms").json()
    assert told["units"] == ["count", "turnover", "mean-turnover", "wages"]
    by_name = {measure["name"]: measure for measure in told["measures"]}
    assert by_name["mean-turnover"]["mean_of"] == "turnover"
    assert ["region", "activity"] in by_name["turnover"]["crossings"]


def test_what_was_done_to_sums_is_said_beside_the_counts(client):
    page = client.get("/d/firms/about").text
    assert "Turnover in million crowns" in page
    assert "protected together, once" in page
    notes = client.get(f"{PXWEB}/metadata").json()["note"]
    assert [note.partition(":")[0] for note in notes] == [
        "Count", "Turnover in million crowns", "Wages",
    ]  # fmt: skip


def test_prices_follow_public_sizes(firms):
    def price(unit):
        question_of = Query.parse(f"rows=region&columns=activity&unit={unit}")
        from discreet.serve import Question  # beside its only use

        return firms.price(Question.checked(firms, question_of))

    assert price("turnover").seconds > price("").seconds
    assert price("turnover").cells == price("").cells


def test_no_sum_over_periods(tmp_path):
    records_of_years = {**RECORDS, "name": "firms", "time": ["year"]}
    firms = built(tmp_path, records=records_of_years).dataset("firms")
    cube = cube_of(firms, "rows=activity&unit=wages")
    of_last = cube_of(firms, "rows=activity&columns=year&unit=wages").at("year", "2025")
    assert np.array_equal(cube.values, of_last.values)
    with pytest.raises(Refusal, match="No table of turnover"):  # it is over both years
        cube_of(firms, "rows=region&columns=activity&unit=turnover")


def test_on_the_fly_sums_are_refused(tmp_path):
    protect = {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}}
    recipe = {"tabulate": {"margins": "region*activity"}, "protect": protect}
    file = site_file(tmp_path, mode="on-the-fly", recipe=recipe)
    with pytest.raises(ParameterError, match="sums are released once"):
        read_site(file)


@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        ("count", {}, "not count or weight"),
        ("mean-x", {}, "small letters"),
        ("x", 3, "section of entries"),
        ("x", {"recipe": NO_SUM}, "sums nothing"),
    ],
)  # fmt: skip
def test_mistakes_in_measures_are_named(tmp_path, name, part, said):
    with pytest.raises(ParameterError, match=said):
        read_site(site_file(tmp_path, measures={name: part}))


def test_two_measures_of_a_value_are_refused(tmp_path):
    text = site_file(tmp_path).read_text()
    (tmp_path / "site.toml").write_text(text.replace('value = "wages"', 'value = "turnover"'))
    with pytest.raises(ParameterError, match="what one of them hides the other would tell"):
        read_site(tmp_path / "site.toml")


def test_exact_sums_are_not_said_to_be_off(client):
    page = client.get("/d/firms/table?rows=region&columns=activity&unit=turnover").text
    assert "All figures that are shown are exact" in page
    assert "How far off a single figure" not in page


def test_another_recipe_of_a_sum_needs_a_new_build(folder, site):
    file = folder / "site.toml"
    text = file.read_text()
    try:
        file.write_text(text.replace("p%(10)", "p%(20)"))
        with pytest.raises(Exception, match="Build it again"):
            start_site(read_site(file))
    finally:
        file.write_text(text)


def test_a_build_holds_no_true_sum(folder, site, true_sums):
    for path in (folder / "cache" / "firms").rglob("*"):
        if path.suffix == ".json":
            assert f"{true_sums['S', 'glass']:.0f}" not in json.dumps(path.read_text())
        if path.name.startswith("sum-turnover-"):
            values = np.load(path)["values"]
            assert true_sums["S", "glass"] not in values
