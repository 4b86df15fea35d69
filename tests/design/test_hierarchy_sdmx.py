"""SDMX structure messages of other people's programs."""

import json
import re
import sys

import pytest
from pysdmx.io import read_sdmx

from discreet import Hierarchy
from discreet.errors import (
    CodeError,
    DataError,
    MissingDependencyError,
    ParameterError,
    UnknownNameError,
)

CODES = [
    ("A", "Alpha", None),
    ("A1", "Alpha one", "A"),
    ("B", "Beta", None),
    ("A2", "Größe", "A"),
    ("_T", "Total", None),
]


def message_xml(version, codelists):
    base = f"http://www.sdmx.org/resources/sdmxml/schemas/{version}"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<m:Structure xmlns:m="{base}/message" xmlns:s="{base}/structure" xmlns:c="{base}/common">
<m:Header><m:ID>X</m:ID><m:Test>false</m:Test><m:Prepared>2024-01-01T00:00:00Z</m:Prepared>
<m:Sender id="ME"/></m:Header>
<m:Structures><s:Codelists>{codelists}</s:Codelists></m:Structures></m:Structure>"""


def codelist_xml(version, codes, name="CL_X", release="1.0"):
    def parent_xml(parent):
        if parent is None:
            return ""
        inner = f'<Ref id="{parent}"/>' if version == "v2_1" else parent
        return f"<s:Parent>{inner}</s:Parent>"

    items = "".join(
        f'<s:Code id="{code}"><c:Name xml:lang="en">{label}</c:Name>{parent_xml(parent)}</s:Code>'
        for code, label, parent in codes
    )
    return (
        f'<s:Codelist id="{name}" agencyID="ME" version="{release}">'
        f'<c:Name xml:lang="en">x</c:Name>{items}</s:Codelist>'
    )


def write_xml(path, version, *codelists):
    path.write_text(message_xml(version, "".join(codelists)), encoding="utf-8")
    return path


def write_json(path, codes):
    items = [{"id": c, "name": n} | ({"parent": p} if p else {}) for c, n, p in codes]
    schema = "https://json.sdmx.org/2.1/sdmx-json-structure-schema.json"
    meta = {"schema": schema, "id": "X", "prepared": "2024-01-01T00:00:00Z", "sender": {"id": "ME"}}
    codelist = {"id": "CL_X", "agencyID": "ME", "version": "1.0", "name": "x", "codes": items}
    path.write_text(json.dumps({"meta": meta, "data": {"codelists": [codelist]}}), encoding="utf-8")
    return path


@pytest.fixture(params=["v2_1", "v3_0", "v3_1", "json"])
def write(request, tmp_path):
    def write_codes(codes):
        if request.param == "json":
            return write_json(tmp_path / "codes.json", codes)
        return write_xml(tmp_path / "codes.xml", request.param, codelist_xml(request.param, codes))

    return write_codes


def test_the_total_may_stand_beside_the_other_codes(write):
    tree = Hierarchy.from_sdmx(write(CODES))
    assert tree.to_dict() == {"_T": {"A": ["A1", "A2"], "B": []}}
    assert tree.labels == {
        "_T": "Total",
        "A": "Alpha",
        "A1": "Alpha one",
        "B": "Beta",
        "A2": "Größe",
    }


def test_the_total_may_be_absent(write):
    path = write(CODES[:-1])
    assert Hierarchy.from_sdmx(path).root == "Total"
    assert Hierarchy.from_sdmx(path, root="All").to_dict() == {"All": {"A": ["A1", "A2"], "B": []}}


def test_the_total_may_be_the_one_code_above_all(write):
    above = [(code, label, parent or "_T") for code, label, parent in CODES[:-1]]
    tree = Hierarchy.from_sdmx(write([*above, CODES[-1]]))
    assert tree.to_dict() == {"_T": {"A": ["A1", "A2"], "B": []}}


def test_flat_code_lists_are_flat_trees(write):
    tree = Hierarchy.from_sdmx(write([("M", "Men", None), ("W", "Women", None)]))
    assert tree.to_dict() == {"Total": ["M", "W"]}
    assert Hierarchy.from_sdmx(write([("M", "M", None)])).to_dict() == {"Total": ["M"]}


def test_parents_that_are_no_codes_are_named(write):
    with pytest.raises(CodeError, match="parent 'Z' of code 'A1'"):
        Hierarchy.from_sdmx(write([("A", "a", None), ("B", "b", None), ("A1", "a", "Z")]))


def test_one_of_several_code_lists_is_chosen_by_name(tmp_path):
    sexes = [("M", "Men", None), ("W", "Women", None)]
    moved = [("A", "Alpha", None), ("A1", "Alpha one", "B"), ("B", "Beta", None)]
    path = write_xml(
        tmp_path / "two.xml",
        "v2_1",
        codelist_xml("v2_1", CODES),
        codelist_xml("v2_1", moved, release="2.0"),
        codelist_xml("v2_1", sexes, name="CL_SEX"),
    )
    assert Hierarchy.from_sdmx(path, "CL_SEX").leaves == ("M", "W")
    assert Hierarchy.from_sdmx(path, "ME:CL_X(2.0)").to_dict() == {"Total": {"A": [], "B": ["A1"]}}
    assert Hierarchy.from_sdmx(path, "ME:CL_X(1.0)").leaves_of("A") == ("A1", "A2")
    with pytest.raises(ParameterError, match=re.escape("ME:CL_X(1.0), ME:CL_X(2.0)")):
        Hierarchy.from_sdmx(path, "CL_X")
    with pytest.raises(ParameterError, match="codelist="):
        Hierarchy.from_sdmx(path)
    with pytest.raises(UnknownNameError, match="Did you mean 'CL_SEX'"):
        Hierarchy.from_sdmx(path, "CL_SEXX")


@pytest.mark.parametrize("suffix", [".xml", ".json"])
def test_written_messages_are_sdmx_for_others(tmp_path, suffix):
    path = tmp_path / f"codes{suffix}"
    tree = Hierarchy("_T", {"A": "_T", "A1": "A"}, {"A": "Alpha"}, ("all", "region", "county"))
    tree.to_sdmx(path, "CL_REGION", "ME", version="2.0")
    codelist, hierarchy = read_sdmx(path, validate=suffix == ".xml").structures
    assert [(code.id, code.name) for code in codelist] == [
        ("_T", "_T"),
        ("A", "Alpha"),
        ("A1", "A1"),
    ]
    assert hierarchy.codes[0].codes[0].codes[0].id == "A1"
    assert hierarchy.level.level.name == "region"
    assert str(codelist.version) == "2.0"


@pytest.mark.parametrize("code", ["85+", "(missing)", "Tromsø", "a b"])
def test_codes_sdmx_does_not_allow_are_not_written(tmp_path, code):
    path = tmp_path / "codes.xml"
    with pytest.raises(CodeError, match=re.escape(repr(code))):
        Hierarchy.flat([code]).to_sdmx(path, "CL_X", "ME")
    assert not path.exists()


@pytest.mark.parametrize("name", ["broken.xml", "broken.json"])
def test_damaged_messages_are_told_by_file(tmp_path, name):
    path = tmp_path / name
    text = message_xml("v2_1", codelist_xml("v2_1", CODES))
    path.write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match=name):
        Hierarchy.from_sdmx(path)


def test_messages_without_code_lists_are_refused(tmp_path):
    path = write_json(tmp_path / "none.json", [])
    content = json.loads(path.read_text())
    content["data"] = {}
    path.write_text(json.dumps(content))
    with pytest.raises(UnknownNameError, match="code list"):
        Hierarchy.from_sdmx(path)


def test_without_pysdmx_the_remedy_is_told(tmp_path, monkeypatch):
    path = write_json(tmp_path / "codes.json", CODES)
    monkeypatch.setitem(sys.modules, "pysdmx.io", None)
    with pytest.raises(MissingDependencyError, match=re.escape("pip install 'discreet[sdmx]'")):
        Hierarchy.from_sdmx(path)
    with pytest.raises(MissingDependencyError, match="writing SDMX"):
        Hierarchy.flat("ab").to_sdmx(tmp_path / "new.xml", "CL_X", "ME")


def test_a_code_in_two_groups_is_named(tmp_path):
    tree = Hierarchy.from_dict({"W": {"EU": ["BE"], "EA": ["BX"]}})
    path = tmp_path / "groups.json"
    tree.to_sdmx(path, "CL_AREA", "ME")
    path.write_text(path.read_text().replace('"BX"', '"BE"').replace(".BX", ".BE"))
    with pytest.raises(CodeError, match="code 'BE' stands under 'EU' and under 'EA'"):
        Hierarchy.from_sdmx(path)
