"""Releases fitted in whole numbers, from Python, recipes and the command line."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.publication import Publication
from tests.release.test_zeros import noisy_release, under_a_zero


@pytest.mark.parametrize("zeros", ["all", "margins"])
def test_the_statement_says_that_values_are_whole(zeros):
    release = noisy_release()
    whole = release.fit(dc.solve.WholeNumber(seed=1, max_nonzero=12), zeros=zeros)
    assert whole.z.dtype == whole.y.dtype == np.int64
    assert np.count_nonzero(whole.y) <= 12
    assert whole.statement.says("whole-numbers")
    assert whole.statement.says("not-negative")
    assert whole.statement.steps[-1].parameters["max_nonzero"] == 12
    assert not release.fit(decimals=True).statement.says("whole-numbers")
    if zeros == "margins":
        assert not whole.y[under_a_zero(release)].any()


def test_the_loss_is_not_larger_than_that_of_the_rounded_release_with_the_same_seed():
    release = noisy_release(formula="a*b*c")
    whole = release.fit(dc.solve.WholeNumber(seed=5))
    rounded = release.fit("non-negative", decimals=True).round(seed=5)
    loss = [((r.z - release.z) ** 2).sum() for r in (whole, rounded)]
    assert loss[0] <= loss[1] == whole.fit_result.notes["rounded"]


def test_a_recipe_says_which_cells_may_be_filled_and_asks_for_whole_numbers(tmp_path):
    fit = {"fitter": "whole-number", "parameters": {"seed": 2}, "zeros": "margins"}
    spec = {
        "tabulate": {"margins": "province*sex", "support": "all"},
        "protect": {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}},
        "fit": fit,
    }
    recipe = Publication.read(Publication.from_dict(spec).write(tmp_path / "recipe.toml"))
    assert recipe.to_dict() == spec
    release = recipe.run(dc.demo.census(persons=2_000))
    assert release.statement.says("whole-numbers")
    assert release.statement.says("zeros-kept")
    with pytest.raises(ParameterError, match="zeros must be"):
        Publication.from_dict(spec | {"fit": fit | {"zeros": "none"}})
    with pytest.raises(ParameterError, match="name a fitter"):
        Publication("province", recipe.method, zeros="margins")


@pytest.mark.parametrize("fitter", ["least-squares", "additive"])
def test_publications_have_whole_counts_whatever_the_fitter(fitter):
    spec = {
        "data": {"source": "people.csv"},
        "tabulate": {"margins": "province*sex"},
        "protect": {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}},
        "fit": {"fitter": fitter},
    }
    table = dc.demo.census(persons=20_000).tabulate("province*sex")
    published = Publication.from_dict(spec).run(table)
    assert published.z.dtype.kind == "i"
    assert published.statement.says("whole-numbers")
    # a fit whose errors are known keeps its decimals for experts
    fitted = table.protect("cell-key", D=5, V=3, js=2).fit(fitter)
    assert fitted.z.dtype.kind == "f"
    assert abs(published.z - fitted.z).max() < 1
    trial = table.simulate("cell-key", D=5, V=3, js=2, seed=1)
    assert Publication.from_dict(spec).fit(trial).z.dtype.kind == "f"
