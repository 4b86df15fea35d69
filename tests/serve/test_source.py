"""The door to the confidential side: what is on offer, what is kept, what is refused."""

import ast
from pathlib import Path

import numpy as np
import pytest

import discreet.serve
from discreet.design.release import Release
from discreet.errors import KeysError, ParameterError, UnknownNameError
from discreet.recipe import Choice, Recipe
from discreet.serve.source import RecipeSource, worded
from tests.serve.records import RECIPE, small_country


def offered(source):
    return {v.name: [d.name for d in v.details] for v in source.variables}


def test_a_variable_offers_every_level_and_each(source):
    assert offered(source) == {
        "region": ["region", "region[part]", "region[county]", "region[leaves]"],
        "age": ["age"],
        "sex": ["sex"],
    }


def test_cells_of_a_detail_are_those_of_its_release(source):
    for variable in source.variables:
        for detail in variable.details:
            release = source.release([(detail.name,), ()])
            assert release.design.n_published == detail.cells


def test_a_named_level_offers_that_level_alone(records):
    recipe = RECIPE.of([("region[part]",), ("county", "sex")])
    source = RecipeSource(recipe, records)
    assert offered(source) == {"region": ["region[part]", "county"], "sex": ["sex"]}
    assert [d.label for d in source.variables[0].details] == ["part", "county"]


def test_the_source_gives_releases_and_keeps_them():
    records = small_country()
    source = RecipeSource(RECIPE, records)
    asked = len(records.asked)
    first = source.release([("age", "sex"), ("age",), ()])
    assert isinstance(first, Release)
    assert source.release([("age", "sex"), ("age",), ()]) is first
    assert len(records.asked) == asked + 1


def test_no_more_than_so_many_releases_are_kept():
    records = small_country()
    source = RecipeSource(RECIPE, records, keep=1)
    first = source.release([("age",)])
    source.release([("sex",)])
    again = source.release([("age",)])
    assert again is not first
    np.testing.assert_array_equal(again.z, first.z)


def test_a_release_is_what_the_recipe_makes(source, records):
    margins = [("region", "sex"), ("region",), ("sex",), ()]
    expected = RECIPE.of(margins).run(records)
    np.testing.assert_array_equal(source.release(margins).z, expected.z)


REFUSED = {
    "safe": {},
    "small-count-rounding": {},
    "controlled-rounding": {},
    "pram": {"invariant": True},
    "adjust": {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}},
    "discrete-laplace": {"epsilon": 1.0},
    "discrete-gaussian": {"rho": 0.5},
    "laplace": {"epsilon": 1.0},
}


@pytest.mark.parametrize(("name", "parameters"), REFUSED.items(), ids=REFUSED)
def test_noise_that_could_be_averaged_away_is_refused(records, name, parameters):
    with pytest.raises(ParameterError, match="average it away"):
        RecipeSource(Recipe("age", Choice(name, parameters)), records)


@pytest.mark.parametrize("name", ["drop-add", "pram"])
def test_noise_by_key_is_served(records, name):
    source = RecipeSource(Recipe("age*sex", Choice(name)), records)
    crossed = source.release([("age", "sex"), ("sex",)])
    alone = source.release([("sex",)])
    assert set(alone.z.tolist()) <= set(crossed.z.tolist())


def test_codes_that_were_found_in_the_records_are_refused_at_the_start():
    records = small_country()
    records.declared = False
    with pytest.raises(ParameterError, match="'age' were found in the records") as caught:
        RecipeSource(RECIPE, records)
    assert "--codes codes.toml" in str(caught.value)


def test_margins_that_differ_between_tables_are_refused(records):
    summed = Choice("cell-key", {"D": 5, "V": 3, "js": 2, "margins": "summed"})
    with pytest.raises(ParameterError, match="margins='own'"):
        RecipeSource(Recipe("age", summed), records)


def test_a_recipe_that_offers_nothing_is_refused(records):
    with pytest.raises(ParameterError, match="nothing is on offer"):
        RecipeSource(RECIPE.of([()]), records)


def test_records_without_keys_are_refused_at_the_start():
    records = small_country()
    records.has_keys = False
    with pytest.raises(KeysError, match="no cell keys"):
        RecipeSource(RECIPE, records)


def test_an_unknown_variable_is_refused_at_the_start(records):
    with pytest.raises(UnknownNameError, match="regoin"):
        RecipeSource(RECIPE.of("regoin"), records)


@pytest.mark.parametrize(
    ("name", "shown"), [("major_group", "Major group"), ("sex", "Sex"), ("éducation", "Éducation")]
)
def test_names_are_worded_for_readers(name, shown):
    assert worded(name) == shown


def test_nothing_in_serve_reaches_for_the_confidential_side():
    forbidden = ("discreet.design.table", "discreet.microdata", "discreet.tabulate")
    for path in Path(discreet.serve.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        hints = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
        ]
        skipped = {id(inner) for hint in hints for inner in ast.walk(hint)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in skipped:
                assert not (node.module or "").startswith(forbidden), f"{path.name}: {node.module}"
