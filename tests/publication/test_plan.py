import pickle

import numpy as np
import pytest

import discreet as dc
from discreet import Release, registry
from discreet.errors import (
    DataError,
    KeysError,
    LedgerError,
    NotConvergedError,
    ParameterError,
    UnknownNameError,
)
from discreet.publication import Choice, Publication
from discreet.tables import Protected, Statement, Step


class AddOne:
    """A method made for these tests."""

    name, source = "add-one", "table"

    def __init__(self, amount: int = 1):
        self.amount = amount

    def __call__(self, table, *, draws):
        rng = draws.generator(self, table)
        noise = self.amount * rng.integers(0, 2, table.design.n_published)
        return Protected.of(table.design, table.z + noise, Statement((Step("protect:add-one"),)))


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "add-one", f"{__name__}:AddOne")


SECRET = dc.Secret(b"a secret that is made for tests only")


@pytest.fixture
def table():
    frame = {"a": ["x", "x", "y"], "b": ["u", "v", "u"], "n": [4, 5, 6]}
    return dc.Table.from_counts(frame, count="n", margins="a*b", name="letters")


RECIPE = Publication("a*b", Choice("add-one", {"amount": 2}))


def test_a_recipe_is_replayed_exactly_under_the_same_secret(table):
    first, second = RECIPE.run(table, secret=SECRET), RECIPE.run(table, secret=SECRET)
    assert isinstance(first, Release)
    np.testing.assert_array_equal(first.z, second.z)
    assert set(first.z - table.z) <= {0, 2}
    others = [RECIPE.run(table, secret=dc.Secret.generate()).z for _ in range(20)]
    assert any((other != first.z).any() for other in others)


def test_a_recipe_that_draws_needs_a_secret(table):
    with pytest.raises(KeysError, match="publication draws from a secret"):
        RECIPE.run(table)


def test_a_recipe_enters_its_release_in_the_ledger(table, tmp_path):
    ledger = dc.Ledger(tmp_path / "discreet.db")
    first = RECIPE.run(table, secret=SECRET, ledger=ledger)
    np.testing.assert_array_equal(RECIPE.run(table, secret=SECRET, ledger=ledger).z, first.z)
    other = Publication("a*b", Choice("add-one", {"amount": 3}))
    with pytest.raises(LedgerError, match="again=True"):
        other.run(table, secret=SECRET, ledger=ledger)
    second = other.run(table, secret=SECRET, ledger=ledger, again=True)
    assert second.statement.says("released-again")


def test_the_unit_of_a_recipe_decides_what_is_published():
    frame = {"a": ["x", "y"], "n": [4, 5], "w": [40.0, 50.0], "k": [3, 4]}
    table = dc.Table.from_counts(frame, count="n", margins="a", weight="w", key="k", mean_weight=10)
    with pytest.raises(ParameterError, match="unit='weight'"):
        Publication("a", Choice("cell-key", {"D": 5, "V": 2})).run(table)
    method = Choice("cell-key", {"D": 5, "V": 2, "grid": 10})
    release = Publication("a", method, unit="weight").run(table)
    assert release.unit == "weight"
    assert not (release.z % 10).any()


def test_a_seed_for_the_protecting_step_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text("[tabulate]\nmargins='a'\n[protect]\nmethod='add-one'\nseed=1\n")
    with pytest.raises(ParameterError, match="publication draws from a secret") as caught:
        Publication.read(path)
    for word in ("publication.run(data, secret=...)", "[data] secret = 'keys.secret'", "[fit]"):
        assert word in str(caught.value)


def test_a_seed_is_for_the_rounding_and_nothing_else():
    with pytest.raises(ParameterError, match="exactly when it rounds"):
        Publication("a*b", Choice("add-one"), seed=1)
    with pytest.raises(ParameterError, match="exactly when it rounds"):
        Publication("a*b", Choice("add-one"), Choice("non-negative"), rounding="total")


def test_a_recipe_may_end_in_whole_numbers(table):
    fitter = Choice("non-negative")
    release = Publication("a*b", Choice("add-one"), fitter, rounding="margins", seed=7).run(
        table, secret=SECRET
    )
    assert release.y.dtype.kind == "i"
    np.testing.assert_array_equal(release.z, release.design.aggregate(release.y))
    with pytest.raises(ParameterError, match="name a fitter"):
        Publication("a*b", Choice("add-one"), rounding="margins", seed=7)


def test_an_unknown_rounding_is_refused_before_anything_runs():
    with pytest.raises(UnknownNameError, match="'margins'") as caught:
        Publication("a*b", Choice("add-one"), Choice("non-negative"), rounding="margin", seed=7)
    assert caught.value.known == ["margins", "near", "unbiased", "total", "cube", "multinomial"]


@pytest.mark.parametrize("rounding", [None, "total"])
def test_a_fit_that_did_not_converge_is_released_with_a_word_on_it(table, rounding):
    fitter = Choice("poisson", {"max_steps": 1, "tolerance": 1e-12})
    seed = None if rounding is None else 7
    recipe = Publication("a*b", Choice("add-one"), fitter, rounding=rounding, seed=seed)
    release = recipe.run(table, secret=SECRET)
    assert "did not reach its goal (it ended as max_steps" in release.statement.text
    assert "stopped before it was perfect" in " ".join(repr(release).split())
    np.testing.assert_allclose(release.z, release.design.aggregate(release.y))
    with pytest.raises(NotConvergedError, match="max_steps"):
        table.with_secret(SECRET).protect(AddOne()).fit(
            dc.solve.Poisson(max_steps=1, tolerance=1e-12), require=True
        )


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        Publication([("a", "b"), ()], Choice("add-one"), support="occurring"),
        Publication(
            "a", Choice("add-one"), Choice("auto", {"x": 1}), "weight", "total", 3, {"a": "a.hrc"}
        ),
    ],
)
def test_recipes_survive_toml_and_pickling(recipe, tmp_path):
    again = Publication.read(recipe.write(tmp_path / "recipe.toml"))
    assert again.to_dict() == recipe.to_dict()
    assert pickle.loads(pickle.dumps(recipe)).to_dict() == recipe.to_dict()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[tabulate]\nmargins='a'", ParameterError, "no \\[protect\\]"),
        ("[protect]\nmethod='add-one'", ParameterError, "has no tables"),
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
        Publication.read(path)


def test_a_missing_recipe_file_is_explained(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        Publication.read(tmp_path / "none.toml")


def test_misspelled_methods_and_parameters_are_never_ignored(table):
    with pytest.raises(UnknownNameError, match="'add-one'"):
        Publication("a", Choice("add-oen")).run(table)
    with pytest.raises(UnknownNameError, match="'amount'"):
        Publication("a", Choice("add-one", {"amuont": 2})).run(table)


def test_a_recipe_cannot_be_changed():
    with pytest.raises(TypeError):
        RECIPE.method.parameters["amount"] = 3
    assert RECIPE.of("a").margins == "a"


def test_everything_registered_can_be_loaded():
    for kind, entries in registry.KINDS.items():
        for name in entries:
            assert callable(registry.load(kind, name)), (kind, name)
