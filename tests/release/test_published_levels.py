"""Fits over the groups that are published: the same published cells, far fewer inner ones."""

import numpy as np
import pytest

import discreet as dc
from discreet.assessment.cells import true_values
from discreet.design import complete_design
from discreet.design.parts import sum_to_levels
from discreet.randomness import stream
from discreet.registry import build
from tests.release.test_zeros import release_of

REGION = dc.Hierarchy.from_columns(
    {"province": ["N"] * 5 + ["S"] * 2, "municipality": [f"m{i}" for i in range(7)]},
    ["province", "municipality"],
)
AGE = dc.Hierarchy.from_columns(
    {"broad": ["child", "child", "adult"], "year": ["a1", "a2", "b1"]}, ["broad", "year"]
)
LINKED = "region[province]*age[broad] + region[province]*sex"


def axes():
    return dc.Design.product({"region": REGION, "age": AGE, "sex": 2}, "sex").axes


def design(margins, rules=()):
    return complete_design(axes(), margins, rules)


@pytest.mark.parametrize(
    ("margins", "rules", "shape"),
    [
        (LINKED, [], (2, 2, 2)),
        ("region[province]*age", [], (2, 3)),
        ("region*sex", [], None),
        (LINKED, [{"age": ["child"], "sex": ["1"]}], (2, 2, 2)),
        (LINKED, [{"age": ["a1"], "sex": ["1"]}], (2, 3, 2)),
        (LINKED, [{"region": ["m1"], "sex": ["1"]}, {"age": ["a1"], "sex": ["1"]}], None),
    ],
)
def test_leaves_are_joined_where_nothing_tells_them_apart(margins, rules, shape):
    used = [axis for axis in axes() if axis.name in margins]
    fine = complete_design(used, margins, rules)
    coarse = fine.at_published_levels()
    assert (coarse and coarse.shape) == shape
    if coarse is not None:
        counts = stream(1, "counts").integers(0, 9, fine.n_inner)
        sums = sum_to_levels(fine, coarse, counts)
        assert np.array_equal(coarse.aggregate(sums), fine.aggregate(counts))
        assert [c for _, c in coarse.published_codes()] == [c for _, c in fine.published_codes()]
        assert [b.name for b in coarse.blocks] == [b.name for b in fine.blocks]


@pytest.mark.parametrize("rules", [[], [{"age": ["child"], "sex": ["1"]}]])
@pytest.mark.parametrize("fitter", ["non-negative", "least-squares", "log-linear", "auto"])
def test_published_cells_are_fitted_as_before(fitter, rules):
    fine = design(LINKED, rules)
    z = fine.aggregate(stream(2, "truth").integers(0, 20, fine.n_inner)).astype(float)
    noisy = z + (stream(2, "noise").normal(0, 2, len(z)) if fitter != "log-linear" else 0)
    coarse = fine.at_published_levels()
    ours, before = (build("fitter", fitter)(d, noisy) for d in (coarse, fine))
    assert np.abs(ours.z - before.z).max() < 1e-5 * z.max()


def test_a_fitted_release_has_whole_counts_and_is_assessed():
    people = dc.demo.census(persons=2_000)
    table = people.tabulate("region[province]*sex + region[province]*age[broad_age]")
    release = table.protect(dc.CellKey(dc.perturbation_table(D=5, V=3, js=2)))
    fitted = release.fit()
    assert fitted.z.dtype.kind == "i"
    assert fitted.design.shape[0] == len(fitted.design.axis("region").levels[0])
    assert np.array_equal(true_values(table, fitted.design, "published"), table.z)
    inner = true_values(table, fitted.design, "inner")
    assert np.array_equal(fitted.design.aggregate(inner), table.z)
    assert "hellinger-distance" in str(dc.assess(table, fitted))


@pytest.mark.parametrize("option", ["start", "variance"])
def test_values_for_inner_cells_keep_them(option):
    fine = dc.Design.product({"region": REGION, "sex": 2}, "region[province] + sex")
    release = release_of(fine, np.array([5.0, 4.0, 4.0, 5.0, 9.0]))
    assert release.fit("non-negative").design.n_inner == 4
    fitter = dc.NonNegative(**{option: np.ones(fine.n_inner)})
    assert release.fit(fitter).design.n_inner == fine.n_inner
