"""Headings keep upper and lower case as the data have it."""

import pytest

import discreet as dc
from discreet.recipe import Choice, Recipe
from discreet.serve.request import TableRequest
from discreet.serve.settings import Settings
from discreet.serve.source import RecipeSource
from tests.serve.records import Records


@pytest.fixture(scope="module")
def source():
    region = dc.Hierarchy("T", {"N": "T", "N1": "N"}, {}, ("all", "NUTS_1", "town"))
    columns = {"INDP_CAT": ("a", "b"), "SEX": ("m", "f"), "region": ("N1",)}
    recipe = Recipe("INDP_CAT*SEX*region", Choice("cell-key", {"D": 5, "V": 3, "js": 2}))
    return RecipeSource(recipe, Records(columns, {"region": (region,)}))


def test_names_inside_a_heading_are_spelt_as_they_are(source):
    request = TableRequest.checked(source, Settings(), ["INDP_CAT", "SEX"], ["region[NUTS_1]"])
    assert request.title == "INDP CAT and SEX by region (NUTS 1)"
    turned = TableRequest.checked(source, Settings(), ["region[NUTS_1]"], ["SEX"])
    assert turned.title == "Region (NUTS 1) by SEX"
