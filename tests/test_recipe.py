import pickle

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.design.release import Statement, Step
from discreet.errors import DataError, NotConvergedError, ParameterError, UnknownNameError
from discreet.recipe import Choice, Recipe


class AddOne:
    """A method made for these tests."""

    name, source = "add-one", "seed"

    def __init__(self, amount: int = 1):
        self.amount = amount

    def __call__(self, table, *, rng):
        noise = self.amount * rng.integers(0, 2, table.design.n_published)
        return dc.Release.of(
            table.design, table.z + noise, Statement((Step(self.name),), "Test noise.")
        )


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "add-one", f"{__name__}:AddOne")


@pytest.fixture
def table():
    frame = {"a": ["x", "x", "y"], "b": ["u", "v", "u"], "n": [4, 5, 6]}
    return dc.Table.from_counts(frame, count="n", margins="a*b")


RECIPE = Recipe("a*b", Choice("add-one", {"amount": 2}), seed=7)


def test_a_recipe_is_replayed_exactly(table):
    first, second = RECIPE.run(table), RECIPE.run(table)
    np.testing.assert_array_equal(first.z, second.z)
    assert set(first.z - table.z) <= {0, 2}


def test_a_recipe_may_end_in_whole_numbers(table):
    recipe = Recipe("a*b", Choice("add-one"), Choice("non-negative"), "margins", seed=7)
    release = recipe.run(table)
    assert release.y.dtype.kind == "i"
    np.testing.assert_array_equal(release.z, release.design.aggregate(release.y))
    with pytest.raises(ParameterError, match="name a fitter"):
        Recipe("a*b", Choice("add-one"), rounding="margins")


def test_an_unknown_rounding_is_refused_before_anything_runs():
    with pytest.raises(UnknownNameError, match="'margins'") as caught:
        Recipe("a*b", Choice("add-one"), Choice("non-negative"), "margin", seed=7)
    assert caught.value.known == ["margins", "unbiased", "total", "cube"]


@pytest.mark.parametrize("rounding", [None, "total"])
def test_a_fit_that_did_not_converge_is_not_released(table, rounding):
    fitter = Choice("poisson", {"max_steps": 1, "tolerance": 1e-12})
    with pytest.raises(NotConvergedError, match="max_steps"):
        Recipe("a*b", Choice("add-one"), fitter, rounding, seed=7).run(table)


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        Recipe([("a", "b"), ()], Choice("add-one"), support="occurring"),
        Recipe("a", Choice("add-one"), Choice("auto", {"x": 1}), "total", 3, {"a": "a.hrc"}),
    ],
)
def test_recipes_survive_toml_and_pickling(recipe, tmp_path):
    again = Recipe.read(recipe.write(tmp_path / "recipe.toml"))
    assert again.to_dict() == recipe.to_dict()
    assert pickle.loads(pickle.dumps(recipe)).to_dict() == recipe.to_dict()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[tabulate]\nmargins='a'", ParameterError, "no \\[protect\\]"),
        ("[protect]\nmethod='add-one'", ParameterError, "no \\[tabulate\\]"),
        ("[tabulate]\n[protect]\nmethod='x'", ParameterError, "'margins'"),
        ("[tabulate]\nmargin='a'\n[protect]\nmethod='x'", UnknownNameError, "'margins'"),
        ("[tabulate]\nmargins='a'\n[protect]\nmethod='x'\n[fitt]", UnknownNameError, "'fit'"),
        ("[tabulate]\nmargins='a +'\n[protect]\nmethod='x'", ParameterError, "ends too early"),
        ("[tabulate\n", DataError, "not valid TOML"),
        ("[tabulate]\nmargins='a'\n[protect]\nmethod='x'\nparameters=3", ParameterError, "got 3"),
        ("fit=3\n[tabulate]\nmargins='a'\n[protect]\nmethod='x'", ParameterError, "no \\[fit\\]"),
    ],
)
def test_a_wrong_recipe_is_explained(text, error, words, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    with pytest.raises(error, match=words):
        Recipe.read(path)


def test_a_missing_recipe_file_is_explained(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        Recipe.read(tmp_path / "none.toml")


def test_misspelled_methods_and_parameters_are_never_ignored(table):
    with pytest.raises(UnknownNameError, match="'add-one'"):
        Recipe("a", Choice("add-oen"), seed=1).run(table)
    with pytest.raises(UnknownNameError, match="'amount'"):
        Recipe("a", Choice("add-one", {"amuont": 2}), seed=1).run(table)


def test_a_recipe_cannot_be_changed():
    with pytest.raises(TypeError):
        RECIPE.method.parameters["amount"] = 3
    assert RECIPE.of("a").margins == "a"


def test_everything_registered_can_be_loaded():
    for kind, entries in registry._KINDS.items():
        for name in entries:
            assert callable(registry.load(kind, name)), (kind, name)
