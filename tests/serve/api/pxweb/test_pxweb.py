"""PxWebApi 2, asked by a client that others wrote and by hand."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from pxweb import PxApi

from discreet.serve import AccountsConfig, InnerSource, Policy, Query, make_app, serving
from discreet.serve.api.pxweb.models import JsonStatDataset as DatasetModel
from tests.serve.client import Client
from tests.serve.sites import ABOUT, inner_table, small_site

ROOT = "/api/pxweb/v2"
DATA = f"{ROOT}/tables/once/data"


@pytest.fixture(scope="module")
def address(site):
    with serving(make_app(site)) as found:
        yield f"{found}api/pxweb/v2"


@pytest.fixture(scope="module")
def api(address):
    return PxApi(address, disable_cache=True)


def truth(site, query):
    cube = site.dataset("once").answer(Query.parse(query)).cube
    found = {}
    for index in np.ndindex(*cube.values.shape):
        labels = tuple(a.entries[k].label for a, k in zip(cube.axes, index, strict=True))
        found[labels] = cube.values[index].item() if cube.is_shown[index] else None
    return found


# A client that others wrote


def test_pxwebpy_finds_the_tables(api):
    assert api.number_of_tables == 2
    assert [t["id"] for t in api.all_tables()] == ["once", "live"]
    assert [t["id"] for t in api.search("fly")["tables"]] == ["live"]
    assert api.get_paths() == [{"id": "tables", "label": "Small site"}]
    assert len(api.tables_on_path("tables")) == 2
    assert api.get_config()["defaultDataFormat"] == "json-stat2"


def test_pxwebpy_reads_metadata_and_code_lists(api):
    found = api.get_table_variables("once")
    assert list(found) == ["region", "age", "sex", "Tid", "ContentsCode"]
    assert found["region"]["elimination"]
    ids = [c["id"] for c in found["region"]["codelists"]]
    assert "agg_once_region_county" in ids
    values = api.get_code_list("agg_once_region_county")["values"]
    assert values[0] == {"code": "N1", "label": "Høytland", "valueMap": ["N1-1", "N1-2"]}


def test_pxwebpy_gets_the_figures_of_the_pages(api, site):
    rows = api.get_table_data("once", {"region": "*", "sex": ["F", "M"]})
    expected = truth(site, "rows=region&columns=sex")
    assert {(r["Region"], r["Sex"]): r["value"] for r in rows} == {
        k: v for k, v in expected.items() if k[1] != "Total"
    }


def test_pxwebpy_takes_codes_from_a_code_list(api, site):
    rows = api.get_table_data(
        "once",
        {"region": ["*"], "ContentsCode": ["count"]},
        code_list={"region": "agg_once_region_county"},
    )
    expected = truth(site, "rows=region[county]")
    assert {(r["Region"],): r["value"] for r in rows} == {
        k: v for k, v in expected.items() if k != ("Whole country",)
    }


def test_pxwebpy_gets_the_default_selection(api, site):
    rows = api.get_table_data("once")
    assert rows == api.get_table_data("once", show="value")
    expected = truth(site, site.dataset("once").first.address)
    assert {(r["Region"], r["Sex"]): r["value"] for r in rows} == expected


def test_pxwebpy_gets_a_whole_table(api, site):
    rows = api.get_table_data_all("once", show="code")
    cube = site.dataset("once").answer(Query.parse("rows=region&rows=age&rows=sex")).cube
    assert len(rows) == cube.values.size
    for row in rows:
        place = tuple(a.place(row[a.name.capitalize()]) for a in cube.axes)
        value = cube.values[place].item() if cube.is_shown[place] else None
        assert row["value"] == value or cube.status[place] == 2


def test_pxwebpy_splits_what_is_too_large():
    site = small_site(Policy(max_cells=150))
    with serving(make_app(site)) as found:
        api = PxApi(f"{found}api/pxweb/v2", disable_cache=True, max_workers=1)
        assert api.get_config()["maxDataCells"] == 150
        rows = api.get_table_data_all("once")
        assert len(rows) == 12 * 4 * 3


def test_pxwebpy_is_told_what_is_refused():
    site = small_site(Policy(max_variables=1))
    with serving(make_app(site)) as found:
        api = PxApi(f"{found}api/pxweb/v2", disable_cache=True)
        with pytest.raises(Exception, match=r"403(.|\n)*At most 1 variable"):
            api.get_table_data("once", {"region": "*", "sex": "*"})


def test_pxwebpy_speaks_the_other_language(address):
    api = PxApi(address, language="nb", disable_cache=True)
    assert api.get_table_variables("once")["ContentsCode"]["label"] == "statistikkvariabel"


# By hand


def ask(client, **selection):
    query = "&".join(f"valueCodes[{name}]={value}" for name, value in selection.items())
    return client.get(f"{DATA}?{query}")


@pytest.mark.parametrize(
    ("wish", "codes"),
    [
        ("top(2)", ["ALL", "N"]),
        ("bottom(1)", ["ABROAD"]),
        ("range(N1,N2)", ["N1", "N1-1", "N1-2", "N2"]),
        ("N1-?", ["N1-1", "N1-2"]),
        ("N1-*,S", ["N1-1", "N1-2", "S"]),
        ("ALL", ["ALL"]),
    ],
)
def test_codes_are_chosen_by_expressions(client, wish, codes):
    found = ask(client, region=wish, sex="F").json()
    assert list(found["dimension"]["region"]["category"]["index"]) == codes
    assert found["id"] == ["region", "sex", "ContentsCode"]
    assert len(found["value"]) == len(codes)
    DatasetModel.model_validate(found)


def test_get_and_post_select_the_same(client):
    got = ask(client, region="N1*", age="*").json()
    body = {
        "selection": [
            {"variableCode": "region", "valueCodes": ["N1*"]},
            {"variableCode": "age", "valueCodes": ["*"]},
        ]
    }
    assert client.request("POST", DATA, json=body).json() == got


def test_a_variable_that_is_left_out_gives_its_total(client):
    without = ask(client, sex="*").json()["value"]
    with_total = ask(client, sex="*", age="Total").json()
    assert with_total["value"] == without
    assert with_total["size"] == [1, 3, 1]
    assert ask(client, age="Total").json()["value"] == without[:1]


def test_impossible_cells_have_a_status(client):
    found = ask(client, region="ABROAD", age="65%2B").json()
    assert found["value"] == [None]
    assert found["status"] == {"0": ":z"}


@pytest.mark.parametrize("form", ["csv", "px", "xlsx", "html", "parquet", "json-stat2"])
def test_every_format_is_answered(client, form):
    query = f"valueCodes[region]=top(3)&valueCodes[sex]=F,M&outputFormat={form}"
    answer = client.get(f"{DATA}?{query}")
    assert answer.status_code == 200
    if form == "xlsx":
        sheet = openpyxl.load_workbook(io.BytesIO(answer.content))["Table"]
        assert sheet["C4"].value > 0
    elif form == "parquet":
        assert pq.read_table(io.BytesIO(answer.content)).num_rows == 6
    elif form == "px":
        assert 'CODES("Sex")="F","M";' in answer.text
    elif form == "csv":
        assert answer.text.splitlines()[0] == "Region,Sex,Count"


def test_files_are_laid_out_as_asked(client):
    query = "valueCodes[region]=top(2)&valueCodes[sex]=F,M&outputFormat=csv"
    params = "outputFormatParams=UseCodes,SeparatorSemicolon&heading=sex"
    head, first, *_ = client.get(f"{DATA}?{query}&{params}").text.splitlines()
    assert head == "region;F | count;M | count"
    assert first.startswith("ALL;")
    wrong = client.get(f"{DATA}?{query}&outputFormatParams=UseCodes,UseTexts")
    assert wrong.status_code == 400


def test_metadata_follows_the_code_list_that_is_asked_for(client):
    whole = client.get(f"{ROOT}/tables/once/metadata").json()
    DatasetModel.model_validate(whole)
    assert whole["size"] == [12, 4, 3, 1, 1]
    query = "codelist[region]=agg_once_region_part"
    found = client.get(f"{ROOT}/tables/once/metadata?{query}").json()
    assert list(found["dimension"]["region"]["category"]["index"]) == ["N", "S", "ABROAD"]


def test_a_saved_query_is_run_again(client):
    selection = {"selection": [{"variableCode": "sex", "valueCodes": ["*"]}]}
    body = {"selection": selection, "language": "en", "tableId": "once", "outputFormat": "csv"}
    saved = client.request("POST", f"{ROOT}/savedqueries", json=body)
    assert saved.status_code == 201
    name = saved.json()["id"]
    assert client.get(f"{ROOT}/savedqueries/{name}").json()["savedQuery"]["tableId"] == "once"
    run = client.get(f"{ROOT}/savedqueries/{name}/data")
    assert run.text.splitlines()[0] == "Sex,Count"
    as_json = client.get(f"{ROOT}/savedqueries/{name}/data?outputFormat=json-stat2").json()
    assert as_json["value"] == ask(client, sex="*").json()["value"]
    assert client.get(f"{ROOT}/savedqueries/nothing").status_code == 404


# As the reference server does, where the description says nothing


def post(client, selection, **query):
    return client.request("POST", DATA, json={"selection": selection}, params=query)


@pytest.mark.parametrize(
    ("query", "as_if"),
    [
        ("valueCodes[SEX]=f,M", "valueCodes[sex]=F,M"),
        ("VALUECODES[Sex]=?", "valueCodes[sex]=F,M,T"),
        ("valueCodes[Region]=n1-*", "valueCodes[region]=N1-1,N1-2"),
        ("valueCodes[region]=RANGE(n2,n1)", "valueCodes[region]=range(N1,N2)"),
        ("valueCodes[contentscode]=COUNT&valueCodes[sex]=F", "valueCodes[sex]=F"),
        ("valueCodes[sex]=x*,F", "valueCodes[sex]=F"),
        ("valueCodes[sex]=x*&valueCodes[age]=*", "valueCodes[age]=*"),
        ("codelist[Region]=AGG_once_region_COUNTY", "codelist[region]=agg_once_region_county"),
        ("OUTPUTFORMAT=csv&valueCodes[sex]=*", "outputFormat=csv&valueCodes[sex]=*"),
        ("valueCodes[TID]=2026&valueCodes[sex]=F", "valueCodes[Tid]=top(1)&valueCodes[sex]=F"),
    ],
)
def test_capitals_and_patterns_make_no_difference(client, query, as_if):
    asked, expected = (client.get(f"{DATA}?{text}") for text in (query, as_if))
    assert asked.status_code == expected.status_code == 200
    assert asked.content == expected.content


def test_a_table_is_found_in_capitals(client):
    assert client.get(f"{ROOT}/tables/ONCE").json()["id"] == "once"
    assert client.get(f"{ROOT}/codelists/AGG_ONCE_REGION_PART").status_code == 200


def test_code_lists_are_told_in_both_spellings(client):
    found = client.get(f"{ROOT}/tables/once/metadata").json()["dimension"]["region"]["extension"]
    assert found["codelists"] == found["codeLists"] != []
    body = {"variableCode": "region", "valueCodes": ["*"]}
    asked = [post(client, [{**body, n: "agg_once_region_part"}]) for n in ("codelist", "codeList")]
    assert asked[0].json() == asked[1].json()
    assert asked[0].json()["size"] == [3, 1]


def test_code_lists_tell_no_codes_of_levels_that_are_not_on_offer(site):
    offered = InnerSource(inner_table(), ["region[part]", "region[county]", "sex"])
    some = replace(site, datasets={"once": replace(site.datasets["once"], source=offered)})
    client = Client(make_app(some))
    found = client.get(f"{ROOT}/codelists/agg_once_region_part").json()["values"]
    assert {v["code"]: v["valueMap"] for v in found}["N"] == ["N1", "N2"]
    assert "N1-1" not in client.get(f"{ROOT}/codelists/agg_once_region_county").text
    assert "N1-1" not in client.get(f"{ROOT}/tables/once/metadata").text


PLACED = "valueCodes[region]=*&valueCodes[sex]=F,M&valueCodes[age]=*"


@pytest.mark.parametrize(
    ("placement", "stub", "heading"),
    [
        ("", ["region", "age", "sex"], ["ContentsCode"]),
        ("heading=SEX", ["region", "age"], ["sex", "ContentsCode"]),
        ("stub=age", ["age"], ["region", "sex", "ContentsCode"]),
        ("stub=sex,age&heading=region", ["sex", "age"], ["region", "ContentsCode"]),
        ("stub=ContentsCode", ["ContentsCode"], ["region", "age", "sex"]),
    ],
)
def test_variables_stand_where_they_are_placed(client, placement, stub, heading):
    found = client.get(f"{DATA}?{PLACED}&{placement}").json()
    px = found["extension"]["px"]
    assert (px["stub"], px["heading"]) == (stub, heading)
    assert found["id"] == [*stub, *heading]
    text = client.get(f"{DATA}?{PLACED}&{placement}&outputFormat=csv").text
    assert len(text.splitlines()[0].split(",")) == len(stub) + np.prod(
        [n for name, n in zip(found["id"], found["size"], strict=True) if name in heading]
    )


@pytest.mark.parametrize(
    "placement",
    ["heading=sex&stub=sex", "heading=sex,sex", "stub=nothing", "heading=Tid"],
)
def test_what_cannot_be_placed_is_refused(client, placement):
    answer = client.get(f"{DATA}?{PLACED}&{placement}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_variable_is_selected_once(client):
    twice = [{"variableCode": name, "valueCodes": ["*"]} for name in ("sex", "Sex")]
    assert post(client, twice).status_code == 400


def test_a_title_stands_above_a_csv_file(client):
    plain = f"{DATA}?valueCodes[sex]=*&outputFormat=csv"
    title, empty, *rest = client.get(f"{plain}&outputFormatParams=IncludeTitle").text.split("\n")
    assert title == "Small country: Sex"
    assert empty == ""
    assert "\n".join(rest) == client.get(plain).text


def test_the_older_json_has_a_row_for_each_combination(client, site):
    query = "valueCodes[region]=*&valueCodes[age]=*&valueCodes[Tid]=*&outputFormat=json-px"
    found = client.get(f"{DATA}?{query}").json()
    assert [(c["code"], c["type"]) for c in found["columns"]] == [
        ("region", "d"), ("age", "d"), ("Tid", "t"), ("count", "c"),
    ]  # fmt: skip
    cube = site.dataset("once").answer(Query.parse("rows=region&rows=age")).cube
    assert len(found["data"]) == cube.values.size
    for row in found["data"]:
        place = tuple(a.place(c) for a, c in zip(cube.axes, row["key"][:2], strict=True))
        expected = str(cube.values[place]) if cube.is_shown[place] else ".."
        assert row["values"] == ["." if cube.status[place] == 2 else expected]


def test_time_is_a_variable(client):
    found = client.get(f"{ROOT}/tables/once/metadata").json()
    assert found["role"] == {"time": ["Tid"], "metric": ["ContentsCode"]}
    assert list(found["dimension"]["Tid"]["category"]["index"]) == ["2026"]
    table = client.get(f"{ROOT}/tables/once").json()
    assert (table["firstPeriod"], table["lastPeriod"]) == ("2026", "2026")
    assert table["timeUnit"] == "Annual"


def test_a_variable_of_time_is_that_of_the_data():
    site = small_site(released={"time": "age"})
    client = Client(make_app(site))
    found = client.get(f"{ROOT}/tables/once/metadata").json()
    assert found["role"]["time"] == ["age"]
    assert "Tid" not in found["id"]
    table = client.get(f"{ROOT}/tables/once").json()
    assert (table["firstPeriod"], table["lastPeriod"]) == ("0-14", "65+")
    latest = client.get(f"{DATA}?valueCodes[age]=top(1)").json()
    assert list(latest["dimension"]["age"]["category"]["index"]) == ["65+"]


def test_tables_of_the_last_days_are_found():
    about = replace(ABOUT, updated=datetime.now(UTC).date().isoformat())
    client = Client(make_app(small_site(released={"about": about})))
    found = client.get(f"{ROOT}/tables?pastDays=2").json()["tables"]
    assert [table["id"] for table in found] == ["once"]
    assert found[0]["updated"].endswith("T00:00:00Z")


def test_a_page_beyond_the_last_is_404(client):
    assert client.get(f"{ROOT}/tables?pageNumber=2").status_code == 404
    assert client.get(f"{ROOT}/tables?pageNumber=2&pageSize=1").status_code == 200
    assert client.get(f"{ROOT}/tables?query=nothing-of-the-kind").json()["tables"] == []


def test_a_saved_query_tells_its_codes_and_metadata(client):
    wanted = [
        {"variableCode": "REGION", "codelist": "agg_once_region_part", "valueCodes": ["top(2)"]},
        {"variableCode": "sex", "valueCodes": ["?"]},
    ]
    placed = {"selection": wanted, "placement": {"heading": ["sex"]}}
    body = {"selection": placed, "language": "en", "tableId": "once"}
    saved = client.request("POST", f"{ROOT}/savedqueries", json=body).json()
    assert set(saved) == {"language", "id", "savedQuery", "links"}
    path = f"{ROOT}/savedqueries/{saved['id']}"
    selection = client.get(f"{path}/selection").json()
    told = {part["variableCode"]: part["valueCodes"] for part in selection["selection"]}
    assert told == {"region": ["N", "S"], "sex": ["T", "F", "M"], "ContentsCode": ["count"]}
    again = client.request("POST", DATA, json={k: selection[k] for k in ("selection", "placement")})
    data = client.get(f"{path}/data").json()
    assert again.json()["value"] == data["value"]
    metadata = client.get(f"{ROOT}/tables/once/metadata?savedQuery={saved['id']}").json()
    for part in ("id", "size", "role", "dimension"):
        assert metadata[part] == data[part]
    default = client.get(f"{ROOT}/tables/once/metadata?defaultSelection=true").json()
    assert default["dimension"] == client.get(DATA).json()["dimension"]


def test_pages_of_others_may_send_selections(client):
    asked = {"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
    found = client.request("OPTIONS", DATA, headers=asked)
    assert found.status_code == 204
    assert found.headers["access-control-allow-origin"] == "*"
    assert "POST" in found.headers["access-control-allow-methods"]
    assert "Content-Type" in found.headers["access-control-allow-headers"]
    assert post(client, []).headers["access-control-allow-origin"] == "*"
    refused = post(client, [{"variableCode": "nothing"}])
    assert refused.headers["access-control-allow-origin"] == "*"


def test_pages_of_others_get_nothing_of_a_site_with_accounts():
    site = small_site(accounts=AccountsConfig(who="tokens"))
    found = Client(make_app(site)).request("OPTIONS", DATA)
    assert not [name for name in found.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{ROOT}/tables/nothing", 404),
        (f"{ROOT}/tables/nothing/data", 404),
        (f"{ROOT}/codelists/nothing", 404),
        (f"{ROOT}/navigation/nothing", 404),
        (f"{DATA}?valueCodes[nothing]=*", 400),
        (f"{DATA}?valueCodes[sex]=X", 400),
        (f"{DATA}?codelist[region]=nothing", 400),
        (f"{DATA}?outputFormat=doc", 400),
        (f"{ROOT}/tables?pageNumber=0", 400),
        (f"{ROOT}/tables?lang=xx", 400),
    ],
)
def test_problems_have_the_shape_of_the_protocol(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "instance"} <= set(answer.json())


def test_too_many_cells_are_refused_as_the_protocol_says():
    client = Client(make_app(small_site(Policy(max_cells=20))))
    refused = ask(client, region="*", sex="*")
    assert refused.status_code == 403
    assert "At most 20 cells" in refused.json()["detail"]


def test_lists_come_page_by_page(client):
    found = client.get(f"{ROOT}/tables?pageSize=1").json()
    assert found["page"]["totalPages"] == 2
    assert {one["rel"] for one in found["links"]} == {"self", "next"}
    assert client.get(f"{ROOT}/tables?pastDays=1").json()["tables"] == []
    assert json.dumps(client.get(f"{ROOT}/navigation").json()["folderContents"])


def test_several_units_are_values_of_one_variable(site):
    from discreet.serve import texts
    from discreet.serve.api.pxweb.metadata import with_contents

    cube = site.dataset("once").answer(Query.parse("rows=sex")).cube
    both = with_contents(site.dataset("once"), {"count": cube, "weight": cube}, texts("en"))
    assert both.names == ("sex", "ContentsCode")
    assert both.axis("ContentsCode").codes == ("count", "weight")
    np.testing.assert_array_equal(both.values[:, 0], cube.values)


@pytest.mark.parametrize("code", ["\\ud800", "\\u0000", "=1+1", "'"])
def test_odd_texts_in_a_body_are_refused_in_words(client, code):
    body = '{"selection": [{"variableCode": "sex", "valueCodes": ["' + code + '"]}]}'
    headers = {"Content-Type": "application/json"}
    answer = client.request("POST", DATA, content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["detail"]
