"""Every pattern of ours passes the audit, and none of its cells is suppressed in vain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import Design, Hierarchy, Secret, Table
from discreet.design import Axis

REGIONS = Hierarchy.from_dict({"N": ["n1", "n2", "n3"], "S": ["s1", "s2"]}, root="all")


def random_table(seed):
    rng = np.random.default_rng(seed)
    region = Axis.from_hierarchies("region", [REGIONS])
    age, sex = Axis.flat("age", ["1", "2", "3"]), Axis.flat("sex", ["f", "m"])
    margins = ["region*age", "region*age + age*sex", "region*sex + age*sex"][seed % 3]
    design = Design.product([region, age, sex], margins)
    return Table.from_inner(design, rng.negative_binomial(1, 0.15, design.n_inner))


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_audit_finds_no_sensitive_cell_by_equations(seed, singletons):
    method = dc.Suppress(singletons=singletons)
    pattern = method.pattern(random_table(seed))
    found = dc.audit(pattern, intervals="none", lone="equations" if singletons else "none")
    sensitive = np.flatnonzero(pattern.primary)
    assert not np.intersect1d(found.disclosed, sensitive).size
    assert not found.told_to_lone.size


def test_a_cell_that_is_somebodys_own_but_for_cells_shown_to_be_empty_is_not_told_to_him():
    pattern = dc.Suppress().pattern(random_table(171))
    own = pattern.position({"region": "S", "age": "1"})
    assert (pattern.z[own], pattern.state[own]) == (1, 1)
    assert dc.audit(pattern, intervals="none").is_clean
    assert not dc.audit(pattern, intervals="none", non_negative=False).is_clean


@pytest.mark.parametrize("seed", range(4))
def test_decimals_of_a_pattern_of_ours_are_whole_only_where_cells_are_shown(seed):
    table = random_table(seed).with_secret(Secret.demo())
    release = table.protect(dc.Suppress(decimals=dc.suppress.Decimals()))
    sums = release.design.aggregate(release.y)
    whole = np.abs(sums - np.rint(sums)) < 1e-9
    np.testing.assert_array_equal(whole, ~release.replaced)
    np.testing.assert_allclose(sums, release.z, atol=1e-8)
    found = dc.audit(release, table, intervals="none", lone="none")
    assert len(found.disclosed) == 0
