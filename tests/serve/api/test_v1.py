"""The interface for programs: what is listed, what is answered, and how it says no."""

import csv
import io
import json
import re

import openpyxl
import pytest

from discreet.release import writers
from discreet.serve import Policy, make_app
from tests.serve.client import Client
from tests.serve.sites import small_site

ROOT = "/api/v1/datasets/once"
QUERY = "rows=region&columns=sex&where.age=0-14"


def cells(found):
    return {tuple(row[:-2]): row[-2] for row in found["cells"]}


def test_the_index_leads_everywhere(client):
    links = client.get("/api/v1").json()["links"]
    for link in links.values():
        path = link.removeprefix("http://here")
        if not path.endswith("pxweb/v2"):
            assert client.get(path).status_code == 200


def test_data_sets_are_listed_page_by_page(client):
    first = client.get("/api/v1/datasets?page_size=1").json()
    assert [d["name"] for d in first["datasets"]] == ["once"]
    assert first["page"] == {"number": 1, "size": 1, "pages": 2, "items": 2}
    second = client.get(first["links"]["next"].removeprefix("http://here")).json()
    assert [d["name"] for d in second["datasets"]] == ["live"]
    assert second["links"]["next"] is None
    assert client.get("/api/v1/datasets?query=fly").json()["page"]["items"] == 1


def test_metadata_says_what_can_be_asked(client):
    found = client.get(ROOT).json()
    assert [v["name"] for v in found["variables"]] == ["region", "age", "sex"]
    assert found["limits"]["max_variables"] == 3
    table = client.get(f"{ROOT}/table?{found['first_table']}")
    assert table.status_code == 200
    codes = client.get(found["variables"][1]["codes"].removeprefix("http://here")).json()
    assert codes["codes"][0]["depth"] == 0


def test_a_table_is_what_its_answer_says(client, site):
    from discreet.serve import Query

    found = client.get(f"{ROOT}/table?{QUERY}").json()
    cube = site.dataset("once").answer(Query.parse(QUERY)).cube
    for (region, sex), value in cells(found).items():
        place = cube.axis("region").place(region), cube.axis("sex").place(sex)
        assert cube.values[place] == value
    assert len(found["cells"]) == cube.values.size
    assert found["statement"]["text"]
    assert found["footnotes"] == ["Persons abroad have no town."]
    assert "edition 2026" in found["citation"]
    assert "http://here/d/once/table?rows=region" in found["citation"]


def test_long_tables_come_page_by_page(client):
    whole = client.get(f"{ROOT}/table?rows=region&columns=age").json()
    path, found = f"{ROOT}/table?rows=region&columns=age&page_size=7", []
    while path:
        part = client.get(path).json()
        found += part["cells"]
        path = (part["links"]["next"] or "").removeprefix("http://here")
    assert found == whole["cells"]
    assert len(found) > 7


FILES = [w for w in writers() if w.name != "json"]


@pytest.mark.parametrize("writer", FILES, ids=lambda w: w.name)
def test_files_are_the_same_for_programs_and_people(client, writer):
    program = client.get(f"{ROOT}/table?{QUERY}&format={writer.name}")
    person = client.get(f"/d/once/table{writer.ending}?{QUERY}")
    assert program.status_code == person.status_code == 200
    if writer.name != "csvw":  # metadata name the address or the file that they describe
        assert program.content == person.content
    assert program.headers["content-type"] == writer.media_type
    name = f'filename="once-region-sex{writer.ending}"'
    assert name in person.headers["content-disposition"]


def test_a_csv_file_names_its_metadata_and_they_name_it(client):
    asked = client.get(f"{ROOT}/table?{QUERY}&format=csv")
    address, *_ = re.findall(
        "<(.+)>; rel=.describedby.; type=.application/csvm", asked.headers["link"]
    )
    said = client.get(address).json()
    assert client.get(said["url"]).content == asked.content
    assert said["rdfs:comment"] == ["Persons abroad have no town."]
    local = client.get(f"/d/once/table.csv-metadata.json?{QUERY}").json()
    assert {**local, "url": said["url"]} == said
    assert local["url"] == "once-region-sex.csv"


def test_files_can_be_laid_out(client):
    text = client.get(f"{ROOT}/table?{QUERY}&format=csv&layout=wide&labels=labels").text
    head = next(csv.reader(io.StringIO(text)))
    assert head == ["Region", "Total", "Women", "Men"]
    refused = client.get(f"{ROOT}/table?{QUERY}&format=csv&layout=tall")
    assert refused.status_code == 400


def test_shares_and_tables_without_totals_are_written_as_shown(client):
    shares = client.get(f"{ROOT}/table?{QUERY}&show=row").json()
    assert shares["measure"] == "row_percent"
    totals = [v for (_, sex), v in cells(shares).items() if sex == "T"]
    assert set(totals) <= {100.0, None}
    inner = client.get(f"{ROOT}/table?{QUERY}&totals=0").json()
    assert {sex for _, sex in cells(inner)} == {"F", "M"}


def test_an_excel_file_has_notes_in_the_language_asked_for(client):
    content = client.get(f"/d/once/table.xlsx?{QUERY}&lang=nb").content
    notes = openpyxl.load_workbook(io.BytesIO(content))["Notes"]
    told = {row[0]: row[1] for row in notes.iter_rows(values_only=True)}
    assert "utgave" in told["Citation"]
    assert told["Contact"] == "statistics@example.org"


def test_what_a_program_has_is_not_sent_again(client):
    first = client.get(f"{ROOT}/table?{QUERY}")
    again = client.get(f"{ROOT}/table?{QUERY}", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert not again.content
    assert "max-age" in again.headers["cache-control"]
    other = client.get(f"{ROOT}/table?rows=age", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


def test_long_answers_are_packed(client):
    found = client.get(f"{ROOT}/table?rows=region", headers={"Accept-Encoding": "gzip"})
    assert found.headers["content-encoding"] == "gzip"
    assert found.json()["cells"]


def test_limits_citation_and_contact_come_from_one_place(client):
    found = client.get("/api/v1/limits").json()
    assert found["contact"] == "statistics@example.org"
    assert found["rate"]["burst"] >= 1
    assert found["datasets"][0]["limits"]["max_cells"] == 10_000
    assert "json-stat" in found["formats"]
    assert found["citation"]


def test_an_office_may_keep_parameters_to_itself():
    policy = Policy(max_cells=50, public_parameters=("max_variables",))
    found = Client(make_app(small_site(policy))).get("/api/v1/limits").json()
    assert found["datasets"][0]["limits"] == {"max_variables": 3}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/v1/datasets/nothing", 404, "unknown_dataset"),
        (f"{ROOT}/table?rows=agee", 400, "unknown_name"),
        (f"{ROOT}/table?row=age", 400, "unknown_parameter"),
        (f"{ROOT}/table?rows=age&page=0", 422, "unreadable"),
        (f"{ROOT}/table?rows=age&format=doc", 404, "unknown_format"),
        (f"{ROOT}/table?rows=age&lang=xx", 400, "unknown_language"),
        (f"{ROOT}/variables/agee", 404, "unknown_name"),
        ("/api/v1/nothing", 404, "not_found"),
    ],
)
def test_every_error_has_the_one_shape(client, path, status, code):
    answer = client.get(path)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["what_is_allowed"]
    assert error["offers"] == []


def test_a_refusal_offers_tables_that_are_answered():
    client = Client(make_app(small_site(Policy(max_variables=1))))
    refused = client.get(f"{ROOT}/table?rows=region&columns=sex")
    assert refused.status_code == 400
    offers = refused.json()["error"]["offers"]
    assert offers
    for offer in offers:
        assert client.get(f"{ROOT}/table?{offer['address']}").status_code == 200


def test_links_begin_with_the_address_of_the_site():
    site = small_site(address="https://tables.office.example/")
    links = Client(make_app(site)).get("/api/v1").json()["links"]
    assert links["datasets"] == "https://tables.office.example/api/v1/datasets"


def test_a_host_that_is_no_name_is_not_repeated(client):
    answer = client.get("/api/v1", headers={"Host": "evil.example/<script>"})
    assert "evil" not in answer.text


def test_the_document_describes_every_answer(client):
    import jsonschema

    document = client.get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, method in document["paths"].items():
        for status, answer in method.get("get", {}).get("responses", {}).items():
            assert answer["description"], (path, status)
    table = client.get(f"{ROOT}/table?{QUERY}").json()
    schema = {"$ref": "#/components/schemas/TableModel", "components": document["components"]}
    jsonschema.validate(table, schema)


def test_the_reference_page_is_drawn_from_the_document(client):
    page = client.get("/api/")
    document = client.get("/api/openapi.json").json()
    assert page.headers["content-type"].startswith("text/html")
    for path in document["paths"]:
        assert path in page.text
    assert "http" not in page.text.replace("http://here", "").replace("https://json-stat", "")


def test_a_saved_query_makes_the_same_address(client):
    from discreet.serve.api.saved import SavedQuery

    query = "rows=region[county]&columns=sex&where.age=0-14&show=row&totals=0&group.sex=all|F|M"
    text = client.get(f"{ROOT}/query.toml?{query}").text
    saved = SavedQuery.parse(text)
    assert (saved.dataset, saved.edition, saved.url) == ("once", "2026", "http://here")
    expected = client.get(f"{ROOT}/table?{query}")
    found = client.get(saved.address("", "json"))
    assert json.loads(found.text)["cells"] == expected.json()["cells"]


def test_a_method_that_is_not_allowed_says_which_are(client):
    answer = client.request("DELETE", "/api/v1/datasets")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert answer.json()["error"]["code"] == "method_not_allowed"
