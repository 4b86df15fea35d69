"""PxWebApi 2 by its own description: cases generated from what `tools/pxweb_facts.py` derives.

Every operation is asked for every status that it can give, with every parameter at every value that
its shape allows and at some that it does not; every answer has the shape that the description says.
"""

import itertools
import json
import math
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from discreet.serve import AccountsConfig, Office, Policy, SiteConfig, make_app
from tests.serve.client import Client
from tests.serve.sites import small_site

FACTS = json.loads((Path(__file__).parent / "facts.json").read_text())
SHAPES = Registry().with_resource(
    "facts", Resource.from_contents({"shapes": FACTS["shapes"]}, DRAFT202012)
)
ROOT = "/api/pxweb/v2"
REGION = {"variableCode": "region", "valueCodes": ["*"]}
SELECTION = {"selection": [REGION, {"variableCode": "sex", "valueCodes": ["F"]}]}
QUERY = {"language": "en", "tableId": "once", "selection": SELECTION}
BODIES = {"VariablesSelection": SELECTION, "SavedQuery": QUERY}
GOOD = {  # of parameters whose shape does not say it
    "lang": ["en", "nb"],
    "query": ["country", "nothing"],
    "codelist": {"codelist[region]": "agg_once_region_county"},
    "valuecodes": {"valuecodes[sex]": "F,M"},
    "heading": ["sex"],
    "stub": ["region"],
}
BAD = {
    "lang": "xx",
    "savedQuery": "nothing",
    "codelist": {"codelist[region]": "nothing"},
    "valuecodes": {"valuecodes[sex]": "nothing"},
    "heading": "nothing",
    "stub": "nothing",
}
LABELS = ["UseCodes", "UseTexts", "UseCodesAndTexts"]
SEPARATORS = ["SeparatorTab", "SeparatorSpace", "SeparatorSemicolon"]
WRITTEN = ["csv", "html", "xlsx"]  # the formats that parameters are for; separators are for csv


def validate(answer, name):
    """The body has the shape of this name."""
    shape = {"$ref": f"facts#/shapes/{name}"}
    jsonschema.Draft202012Validator(shape, registry=SHAPES).validate(answer.json())


@pytest.fixture(scope="module")
def saved(client):
    answer = client.request("POST", f"{ROOT}/savedqueries", json=QUERY)
    assert answer.status_code == 201
    return answer.json()["id"]


def address(operation, saved, id=None):
    known = {"tables": "once", "codelists": "agg_once_region_county", "savedqueries": saved}
    kind = operation["path"].split("/")[1]
    return ROOT + operation["path"].replace("{id}", id or known.get(kind, ""))


def ask(client, operation, saved, query=None, body=None, id=None):
    given = {"json": body or BODIES[operation["body"]]} if operation["body"] else {}
    path = address(operation, saved, id)
    return client.request(operation["method"], path, params=query or {}, **given)


def named(operation):
    return f"{operation['method']} {operation['path']}"


def check(answer, operation, status):
    """The status, its media type, and the shape that the description has for both."""
    assert answer.status_code == status, answer.text[:300]
    described = operation["answers"][str(status)]
    if status < 400 and "text/plain" in described:  # data, of which every format has its own type
        return
    ((media, shape),) = described.items()
    assert answer.headers["content-type"] == media
    validate(answer, shape)


# Every operation, by the statuses that it is said to give


@pytest.mark.parametrize("lang", ["en", "nb"])
@pytest.mark.parametrize("operation", FACTS["operations"], ids=named)
def test_an_operation_answers(client, operation, saved, lang):
    is_spoken = any(one["name"] == "lang" for one in operation["parameters"])
    answer = ask(client, operation, saved, {"lang": lang} if is_spoken else {})
    check(answer, operation, min(int(status) for status in operation["answers"]))


def giving(status):
    return [one for one in FACTS["operations"] if str(status) in one["answers"]]


@pytest.mark.parametrize("operation", [o for o in giving(404) if "{id}" in o["path"]], ids=named)
def test_what_there_is_not_is_404(client, operation, saved):
    check(ask(client, operation, saved, id="nothing"), operation, 404)


@pytest.mark.parametrize("operation", giving(403), ids=named)
def test_too_many_cells_are_403(operation, saved):
    client = Client(make_app(small_site(Policy(max_cells=5))))
    whole = {"selection": [REGION, {"variableCode": "age", "valueCodes": ["*"]}]}
    query = {"valuecodes[region]": "*", "valuecodes[age]": "*"}
    if "savedqueries" in operation["path"]:
        body = {**QUERY, "selection": whole}
        saved = client.request("POST", f"{ROOT}/savedqueries", json=body).json()["id"]
    answer = ask(client, operation, saved, query, whole)
    if operation["path"].endswith("/selection"):  # codes are listed, and no cells
        assert answer.status_code == 200
    else:
        check(answer, operation, 403)
        assert answer.json()["title"] == "Forbidden"
        assert "5 cells" in answer.json()["detail"]


@pytest.mark.parametrize("operation", giving(429), ids=named)
def test_too_many_calls_are_429(operation, saved):
    config = SiteConfig(accounts=AccountsConfig(rate=0.01, burst=1))
    client = Client(make_app(small_site(), Office(config)))
    answers = [ask(client, operation, saved) for _ in range(2)]
    check(answers[1], operation, 429)
    assert int(answers[1].headers["retry-after"]) > 0


# Every parameter, at what its shape allows and at what it does not


def values(parameter):
    """Values that are taken and one that is refused; `None` where nothing is."""
    name, shape = parameter["name"], parameter["shape"]
    shape = FACTS["shapes"].get(shape.get("$ref", "").rpartition("/")[2], shape)
    items = FACTS["shapes"].get(shape.get("items", {}).get("$ref", "").rpartition("/")[2], {})
    if "enum" in shape:
        return shape["enum"], "nothing"
    if "enum" in items:
        return items["enum"], "nothing"
    if shape["type"] == "boolean":
        return ["true", "false"], "perhaps"
    if shape["type"] == "integer":
        return [str(shape.get("minimum", 1))], "x"
    good = GOOD.get(name, [])
    return (good if isinstance(good, list) else [good]), BAD.get(name)


def parameters():
    for operation in FACTS["operations"]:
        for parameter in operation["parameters"]:
            if parameter["in"] == "query":
                yield operation, parameter


def query_of(name, value):
    if isinstance(value, dict):
        return value
    query = {name: value}
    if name == "outputFormatParams":
        query["outputFormat"] = "csv"
    if name in ("heading", "stub"):
        query |= {"valuecodes[region]": "*", "valuecodes[sex]": "*"}
    return query


TAKEN = [(o, p, v) for o, p in parameters() for v in values(p)[0]]
REFUSED = [(o, p, values(p)[1]) for o, p in parameters() if values(p)[1] is not None]
REFUSED += [(o, p, "0") for o, p in parameters() if p["shape"].get("minimum") == 1]


@pytest.mark.parametrize("found", TAKEN, ids=lambda f: f"{named(f[0])} {f[1]['name']}={f[2]}")
def test_a_value_that_the_shape_allows_is_taken(client, saved, found):
    operation, parameter, value = found
    answer = ask(client, operation, saved, query_of(parameter["name"], value))
    check(answer, operation, min(int(status) for status in operation["answers"]))


@pytest.mark.parametrize("found", REFUSED, ids=lambda f: f"{named(f[0])} {f[1]['name']}={f[2]}")
def test_a_value_that_it_does_not_is_refused(client, saved, found):
    operation, parameter, value = found
    answer = ask(client, operation, saved, query_of(parameter["name"], value))
    assert answer.status_code == (404 if parameter["name"] == "savedQuery" else 400)
    validate(answer, "Problem")


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_what_is_required_is_refused(client, saved, name):
    operations = [one for one in FACTS["operations"] if one["body"] == name]
    for operation in operations:
        for required in FACTS["shapes"][name]["required"]:
            body = {k: v for k, v in BODIES[name].items() if k != required}
            answer = ask(client, operation, saved, body=body or {"placement": {}})
            check(answer, operation, 400)


# Output formats with their parameters


@pytest.mark.parametrize(
    ("form", "param"),
    list(
        itertools.product(
            FACTS["shapes"]["OutputFormatType"]["enum"],
            FACTS["shapes"]["OutputFormatParamType"]["enum"],
        )
    ),
)
def test_parameters_are_taken_by_the_formats_they_are_for(client, form, param):
    query = {"outputFormat": form, "outputFormatParams": param, "valuecodes[sex]": "*"}
    answer = client.get(f"{ROOT}/tables/once/data", params=query)
    is_for = form == "csv" or (form in WRITTEN and param not in SEPARATORS)
    assert answer.status_code == (200 if is_for else 400)


@pytest.mark.parametrize(
    "pair", [*itertools.combinations(LABELS, 2), *itertools.combinations(SEPARATORS, 2)]
)
@pytest.mark.parametrize("separator", [",", "&"])
def test_parameters_that_contradict_each_other_are_refused(client, pair, separator):
    given = ",".join(pair) if separator == "," else "&outputFormatParams=".join(pair)
    query = f"outputFormat=csv&outputFormatParams={given}"
    assert client.get(f"{ROOT}/tables/once/data?{query}").status_code == 400


def test_an_answer_of_another_shape_is_noticed(client, saved):
    """The control: a list of tables is no single table, and a name too many breaks the shape."""
    answer = client.get(f"{ROOT}/tables")
    with pytest.raises(jsonschema.ValidationError):
        validate(answer, "TableResponse")
    found = client.get(f"{ROOT}/tables/once/metadata")
    changed = json.dumps({**found.json(), "further": 1}).encode()
    found._content = changed
    with pytest.raises(jsonschema.ValidationError):
        validate(found, "Dataset")


def test_the_page_tells_how_many_cases_there_are():
    page = (Path(__file__).parents[4] / "docs" / "http_interface.md").read_text(encoding="utf-8")
    told = page.partition("cases that are generated")[2].partition("together")
    numbers = [int(n) for n in re.findall(r"\| (\d+) \|", told[0])]
    tests = [f for name, f in vars(sys.modules[__name__]).items() if name.startswith("test_")]
    marks = [[m for m in getattr(f, "pytestmark", []) if m.name == "parametrize"] for f in tests]
    cases = sum(math.prod(len(m.args[1]) for m in each) for each in marks if each)
    assert sum(numbers) == cases
    assert told[2].startswith(f" | {cases} |")
