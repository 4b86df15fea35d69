"""What contributors find out, by a search that shares nothing with the library's programs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.attacks import Knowledge
from discreet.attacks.contributors import ATTACKER, Contributor
from discreet.suppress import attackers as module
from discreet.suppress.attackers import attackers, cells_in_doubt
from discreet.suppress.sentences import contributor_sums
from tests.protect.suppress.search import (
    HEXAGON,
    PLANTED,
    SUM_RULE,
    faults,
    intervals,
    random_case,
    union_faults,
)


def hexagon():
    """Six hidden cells form a hexagon; one person is alone in a corner of it."""
    return random_case(HEXAGON).table


def found(case, **options):
    method = dc.Suppress(case.rule, **options)
    pattern = method.pattern(case.table)
    return list(faults(case, pattern, zeros_are_public=method.zeros_are_public))


@pytest.mark.parametrize("way", ["interval", "optimal"])
def test_whoever_is_alone_in_a_published_cell_does_not_read_another(way):
    table = hexagon()
    pattern = dc.Suppress(dc.rules.Threshold(2), way).pattern(table)
    X = pattern.design.matrix().toarray()
    corner, target = (pattern.position({"a": a, "b": b}) for a, b in (("1", "4"), ("2", "3")))
    own = (table.y * X[:, corner]).astype(float)
    low, high = intervals(pattern, X[:, [target]].astype(float), own, zeros_are_public=True)
    assert high - low >= 1 - 1e-6


def test_the_audit_finds_what_a_person_alone_in_a_published_cell_reads(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(module, "owners_of_sums", lambda _, X: np.full(X.shape[1], -1))
        pattern = dc.Suppress(dc.rules.Threshold(2)).pattern(hexagon())
    told = dc.audit(pattern, lone="signs")
    assert not told.is_clean
    assert pattern.position({"a": "2", "b": "3"}) in told.told_to_lone


@pytest.mark.parametrize("number", range(20))
def test_no_contributor_comes_too_close_to_a_sensitive_cell(number):
    assert not found(random_case(number))


@pytest.mark.parametrize(("fault", "number"), list(zip(PLANTED, (HEXAGON, 0, 14), strict=True)))
def test_the_search_finds_attackers_who_were_left_out(fault, number):
    case = random_case(number)
    with PLANTED[fault]():
        pattern = dc.Suppress(case.rule).pattern(case.table)
    close = list(faults(case, pattern, zeros_are_public=True))
    assert close or list(union_faults(case, pattern, SUM_RULE, most=2))
    assert not found(case)


def test_without_contributors_the_search_finds_some():
    assert found(random_case(0), singletons=False)


def test_lone_contributors_without_identifiers_are_met_by_search_and_audit():
    """Owners unknown, as in files of tables: who is alone in a cell is somebody of his own."""
    rows = [("p", "A0", 50.0), ("q", "A1", 40.0)]
    rows += [(f"{act} {k}", act, 20.0 + k) for act in ("A2", "A3") for k in range(5)]
    frame = pd.DataFrame(rows, columns=["firm", "act", "x"])
    named = dc.Table.from_contributions(frame, "act", value="x", contributor="firm")
    given = named.contributions
    published, inner = (
        replace(cells, owner=np.full_like(cells.owner, -1))
        for cells in (given.published, given.inner)
    )
    nameless = replace(given, published=published, inner=inner, owners=())
    for table in (named, replace(named, contributions=nameless)):
        pattern = dc.Suppress(dc.rules.PPercent(10)).pattern(table)
        assert pattern.n_secondary == 1
        assert len(pattern.proofs.unproven(pattern)) == 0
        assert dc.audit(pattern, lone="signs").is_clean
        # Without them each of the two reads the other, which the audit finds.
        careless = dc.Suppress(dc.rules.PPercent(10), singletons=False).pattern(table)
        assert careless.n_secondary == 0
        assert len(dc.audit(careless, lone="signs").told_to_lone) == 2


def test_an_attacker_is_plain_data():
    case = random_case(0)
    everybody = attackers(dc.Suppress(case.rule).pattern(case.table))
    own = [one for one in (everybody[k] for k in range(len(everybody))) if one.kind == "lone"]
    assert own
    assert all(set(one.known) <= set(one.cells) for one in own)
    for k, number in enumerate(everybody.numbers):
        np.testing.assert_allclose(everybody[k].shares, case.parts[number, everybody[k].cells])
    pattern = dc.Suppress(case.rule).pattern(case.table)
    members = tuple(everybody.numbers[:2].tolist())
    pairs = everybody.pool(pattern, [members])
    assert len(pairs) == len(everybody) + 1
    both = pairs[len(everybody)]
    assert both.kind == "coalition"
    assert set(both.known) >= set(pairs[0].known) | set(pairs[1].known)
    # Two who are all that is in a published cell know it, as one alone does.
    X, own = pattern.design.matrix().toarray(), case.parts[list(members)].sum(axis=0)
    theirs = X[:, (X.T @ own > 0) & np.isclose(X.T @ own, pattern.z)].any(axis=1)
    assert set(both.known) >= set(np.flatnonzero(theirs & cells_in_doubt(pattern)))


def test_a_contributor_reads_a_release_that_left_him_out(monkeypatch):
    """The attack sees the release and one attacker's knowledge, and never the truth."""
    table = hexagon()
    target = table.design.position({"a": "2", "b": "3"})
    corner = table.design.position({"a": "1", "b": "4"})

    def surest(release):
        pattern = dc.Suppress(dc.rules.Threshold(2)).pattern(table)
        inside = np.flatnonzero((table.design.matrix().toarray()[:, corner] * table.y) > 0)
        everybody = attackers(pattern)
        (who,) = np.flatnonzero(everybody.numbers == inside[0])
        knowledge = Knowledge(extra={ATTACKER: everybody[int(who)]})
        claims = Contributor()(release, knowledge, rng=np.random.default_rng(1))
        place = claims.targets.index(target)
        return claims.values[place], claims.confidence[place]

    method = dc.Suppress(dc.rules.Threshold(2))
    assert surest(table.protect(method))[1] < 0.6
    with monkeypatch.context() as planted:
        planted.setattr(module, "owners_of_sums", lambda _, X: np.full(X.shape[1], -1))
        careless = table.protect(method)
    assert surest(careless) == pytest.approx((1.0, 1.0))
    public = Contributor()(careless, Knowledge(), rng=np.random.default_rng(1))
    assert public.confidence[0] < 0.6


def test_sums_that_were_not_looked_at_are_not_promised():
    rule = dc.rules.PPercent(10, n=2)
    (said,) = contributor_sums([rule], is_proven=True)
    assert "2 of them pooling what they know" in said.text
    assert "proven for all" in said.text
    (covered,) = contributor_sums([dc.suppress.Exempt(rule)], is_proven=False)
    assert "was to be protected" in covered.text
    assert "not proven for all of them" in covered.text
    (signed,) = contributor_sums([rule], is_covered=False, is_proven=True)
    assert "may be known more closely" in signed.text
