"""Recorded patterns of other programs: the audit finds exactly what is known to be wrong."""

import numpy as np
import pytest

from discreet import audit
from tests.assess.audit.peers import here, peer

FREQUENCIES = [
    ("freq_flat_300", "zeros_protected"),
    ("freq_flat_300", "zeros_open_secondary_zeros"),
    ("freq_flat_300", "sdctable_gauss"),
    ("freq_flat_300", "sdctable_hypercube"),
    ("freq_hier_300", "zeros_protected"),
    ("freq_hier_300", "sdctable_hitas"),
    ("freq_hier_300", "sdctable_simpleheuristic_old"),
    ("freq_hier_3000", "zeros_protected"),
    ("freq_hier_3000", "zeros_open"),
    ("freq_hier_3000", "zeros_open_secondary_zeros"),
    ("freq_flat_3000", "zeros_open_secondary_zeros"),
    ("freq_intervals_150", "range_min_4"),
]
MAGNITUDES = [
    ("mag_skew_500", "dominance_80_90"),
    ("mag_skew_500", "p_percent_10"),
    ("mag_singleton_500", "p10_singleton_none"),
    ("mag_singleton_500", "p10_singleton_sub2Sum"),
    ("mag_intervals_250", "p10_protection_intervals"),
]


def runs(pairs):
    """The runs as parameters; those of tables that are not here are skipped."""
    return [pytest.param(name, label, marks=here(name)) for name, label in pairs]


def _own_alone(pattern, cells):
    """Sums of published inner cells and of a single one that is not, whose value is one."""
    X = pattern.design.matrix().tocsc()
    shown = X[:, np.flatnonzero(~pattern.suppressed & (np.diff(X.indptr) == 1))]
    known = np.asarray(shown.sum(axis=1)).ravel() > 0
    members = {k: X[:, [k]].indices for k in cells}
    sums = {k for k in cells if pattern.z[k] == 1 and len(members[k]) > 1}
    return {k for k in sums if (~known[members[k]]).sum() == 1}


@pytest.mark.parametrize(("name", "label"), runs(FREQUENCIES + MAGNITUDES))
def test_disclosed_cells_and_lone_contributors_are_those_of_the_reference(name, label):
    given = peer(name, label)
    found = audit(given.pattern)
    said = given.audit
    primary = set(np.flatnonzero(given.pattern.primary))
    exact = primary & (set(found.disclosed) | set(found.disclosed_with_signs))
    assert exact == set(said["exact_cells"])
    view = said["lone_contributor_attack"]
    assert found.attackers == view["attackers"]
    expected = set(view["by_equations"]["cells"])
    # What somebody alone in a cell knows of a sum of it and of published cells is not told.
    # The reference knows inner cells alone; ours are also alone in published ones.
    assert set(found.told_to_lone) >= expected - _own_alone(given.pattern, expected)
    if name.startswith("freq"):
        assert len(primary & set(found.one_whole_number)) == said["one_integer_only"]


@pytest.mark.parametrize(("name", "label"), runs(MAGNITUDES))
def test_intervals_too_short_for_their_rule_are_those_of_the_reference(name, label):
    given = peer(name, label)
    found = audit(given.pattern, lone="none")
    short = set(found.too_near_below) | set(found.too_near_above)
    assert short == set(given.audit["at_risk_cells"])
    assert len(found.too_near_above) == given.audit["upper_bound_below_rule_requirement"]
    quick = audit(given.pattern, lone="none", exact=False)
    assert set(quick.too_near_below) | set(quick.too_near_above) == short
    assert not quick.is_exact[found.subject.is_sensitive].all()


@pytest.mark.parametrize(("name", "label"), runs(FREQUENCIES))
def test_intervals_that_fail_the_peers_own_demand_are_as_many(name, label):
    given = peer(name, label)
    found = audit(given.pattern, lone="none")
    some = found.subject.is_sensitive
    value, low, high = (v[some] for v in (found.subject.values, found.low, found.high))
    weak = (high < value + 1 - 1e-6) | (high - low < 2 - 1e-6)
    assert weak.sum() == given.audit["below_peer_requirement_upper_plus1_width2"]


@here("freq_hier_20000")
def test_thirteen_sensitive_cells_of_a_large_table_follow_from_signs():
    given = peer("freq_hier_20000", "zeros_open_secondary_zeros")
    found = audit(given.pattern, lone="none", workers=1)
    assert len(found.disclosed) == 0
    assert sorted(found.disclosed_with_signs) == sorted(given.audit["exact_cells"])
    assert len(found.disclosed_with_signs) == 13
    assert set(found.disclosed_with_signs) <= set(found.one_whole_number)
    assert not found.is_clean


@here("freq_hier_300")
def test_signs_tell_a_lone_contributor_more():
    given = peer("freq_hier_300", "zeros_protected")
    plain = audit(given.pattern)
    more = audit(given.pattern, lone="signs")
    assert set(plain.told_to_lone) <= set(more.told_to_lone)
    signs = [told for told in more.told if told.needs_signs]
    assert (
        len(signs)
        == given.audit["lone_contributor_attack"]["with_signs_in_addition"][
            "further_primaries_disclosed"
        ]
    )


@here("freq_hier_3000")
def test_all_contributors_of_a_larger_table_are_tried_with_signs():
    given = peer("freq_hier_3000", "zeros_protected")
    found = audit(given.pattern, lone="signs", workers=1)
    with_signs = {int(found.positions[k]) for t in found.told if t.needs_signs for k in t.targets}
    recorded = given.audit["lone_contributor_attack"]["with_signs_in_addition"]
    assert recorded["attackers_tried"] < found.attackers == 41
    assert set(recorded["cells"]) < with_signs
