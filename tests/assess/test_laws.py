"""What holds for every measure, whatever the table."""

import doctest
import importlib
import math
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
import discreet.assessment
from discreet import registry
from tests.assess.helpers import TEST, identity, measure, perturbed, value
from tests.strategies import designs

NAMES = sorted(registry.MEASURES)
# Properties of the release or its mechanism alone: the truth does not make them better or worse.
OF_THE_RELEASE = {"l-diversity", "t-closeness", "mechanism-epsilon", "mechanism-delta"}
OF_THE_RELEASE |= {"adjusted-chi-square", "additivity-error", "withheld-cells"}
REFITS = {"disclosure-probability-refit", "exact-disclosure-refit"}


@st.composite
def tables(draw, kinds=("product", "sparse")):
    design = draw(designs(kinds=kinds))
    seed = draw(st.integers(0, 2**32 - 1))
    counts = np.random.default_rng(seed).choice([0, 0, 1, 1, 2, 3, 8, 120], design.n_inner)
    return dc.Table.from_inner(design, counts), np.random.default_rng(seed + 1)


@settings(max_examples=60)
@given(tables())
def test_values_lie_in_their_range(case):
    table, rng = case
    for release in (identity(table), perturbed(table, rng)):
        for score in dc.assess(table, release, sensitive=table.design.axes[-1].name):
            low, high = score.range
            assert math.isfinite(score.value)
            assert low - 1e-12 <= score.value <= high + 1e-12, score


@settings(max_examples=60)
@given(tables())
def test_publishing_the_truth_is_best_in_utility_and_worst_in_risk(case):
    table, rng = case
    truth, other = identity(table), perturbed(table, rng)
    for name in sorted(set(NAMES) - OF_THE_RELEASE - REFITS):
        best, noisy = (
            measure(name, table)(table, r) if value(name, table, r) is not None else None
            for r in (truth, other)
        )
        if best is None or noisy is None:
            continue
        if name == "targeted-attribution" and best.value == 0:
            continue  # nothing is certain in truth, so only a false certainty can be attributed
        sign = 1 if best.kind == "utility" else -1
        assert sign * best.loss <= sign * noisy.loss + 1e-9, name


@settings(max_examples=40)
@given(tables(kinds=("product",)))
def test_the_order_of_categories_does_not_matter(case):
    table, rng = case
    release = perturbed(table, rng)
    design = table.design
    flat = {axis.name: list(axis.leaves) for axis in design.axes}
    plain = dc.Design.product(flat, [tuple(flat), *design.terms])
    orders = [rng.permutation(len(axis)) for axis in design.axes]
    turned = dc.Design.product(
        {k: [v[i] for i in o] for (k, v), o in zip(flat.items(), orders, strict=True)}, plain.terms
    )
    move = np.ravel_multi_index(np.ix_(*orders), design.shape).ravel()
    first = dc.Table.from_inner(plain, table.y), _released(plain, release.y)
    second = dc.Table.from_inner(turned, table.y[move]), _released(turned, release.y[move])
    for name in sorted(set(NAMES) - REFITS):
        one, two = value(name, *first), value(name, *second)
        assert one == two or one == pytest.approx(two, abs=1e-9), name


def _released(design, y):
    return dc.Release.of(design, design.aggregate(y), TEST, y=y)


def test_measures_do_not_touch_their_input():
    table = dc.Table.from_inner(dc.Design.product({"a": 3, "b": 4}, "a*b"), np.arange(12))
    release = perturbed(table, np.random.default_rng(1))
    before = [array.copy() for array in (table.z, table.y, release.z, release.y)]
    dc.assess(table, release, sensitive="b")
    after = [table.z, table.y, release.z, release.y]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


MODULES = [
    m.name for m in pkgutil.walk_packages(discreet.assessment.__path__, "discreet.assessment.")
]


@pytest.mark.parametrize("module", [m for m in MODULES if m.count(".") > 2 or "cells" in m])
def test_the_worked_examples_of_the_docstrings(module):
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_says_what_it_is(name):
    made = registry.build("measure", name)
    text = " ".join(made.__doc__.split())
    assert made.name == name
    assert made.kind in ("risk", "utility")
    assert ">>>" in text, "a worked example"
    assert re.search(r"Range: ", text), "the range"
    assert re.search(r"(Higher|Lower|Nearer zero) is (better|safer)", text), "the direction"
    assert re.search(r":math:|\.\. math::|share|Share", text), "the formula"
    direction = {"higher": "Higher", "lower": "Lower", "zero": "Nearer zero"}[made.direction]
    assert f"{direction} is {'safer' if made.kind == 'risk' else 'better'}" in text


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_is_documented(name):
    page = (Path(__file__).parents[2] / "docs" / "measures.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page
