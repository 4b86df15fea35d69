"""Where empty cells are shown, everybody knows that a hidden count is at least one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import discreet as dc
from discreet.suppress.plan import room_below

FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
GIVEN_AWAY = [[1, 1, 9], [0, 1, 1], [0, 9, 7], [8, 9, 9]]


def table_of(counts, margins="row*col"):
    counts = np.asarray(counts)
    design = dc.Design.product(
        dict(zip(["row", "col", "more"], counts.shape, strict=False)), margins
    )
    return dc.Table.from_inner(design, counts.ravel())


def widths(release, positive=True):
    """Widths of hidden cells by plain programs on what is public: shown cells, nothing else."""
    X, hidden = release.design.matrix().toarray(), release.hidden
    least = X[:, hidden].T if positive else np.zeros((0, len(X)))
    rest = {
        "A_eq": X[:, ~hidden].T,
        "b_eq": release.z[~hidden],
        "A_ub": -least if len(least) else None,
        "b_ub": -np.ones(len(least)) if len(least) else None,
    }
    ends = []
    for k in np.flatnonzero(hidden):
        low, high = (linprog(sign * X[:, k], **rest) for sign in (1, -1))
        ends.append(np.inf if high.status == 3 else -high.fun - low.fun)
    return dict(zip(np.flatnonzero(hidden).tolist(), ends, strict=True))


@st.composite
def counted(draw):
    shape = draw(st.sampled_from([(3, 4), (4, 4), (2, 3, 3)]))
    counts = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 20])
    listed = draw(st.lists(counts, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    margins = (
        "row*col"
        if len(shape) == 2
        else draw(
            st.sampled_from(["row*col*more", "row*col + col*more", "row*col + col*more + row*more"])
        )
    )
    return table_of(np.reshape(listed, shape), margins)


@FEW
@given(counted(), st.integers(1, 3))
def test_nobody_narrows_a_small_count_by_knowing_that_it_is_not_zero(table, most):
    method = dc.Suppress(dc.rules.Threshold(most))
    release, pattern = table.protect(method), method.pattern(table)
    found = widths(release)
    for k in np.flatnonzero(pattern.primary):
        assert found[int(k)] >= 2 - 1e-6
    assert dc.audit(pattern, workers=1).is_clean
    assert not len(pattern.proofs.unproven(pattern))


def test_a_pattern_that_forgets_it_is_caught_by_the_programs_and_by_the_audit(monkeypatch):
    table = table_of(GIVEN_AWAY)
    method = dc.Suppress(dc.rules.Threshold(2))
    careful = method.pattern(table)
    monkeypatch.setattr(dc.Suppress, "_hidden_counts_are_positive", lambda self, table: False)
    release, careless = table.protect(method), method.pattern(table)
    primary = np.flatnonzero(careless.primary)
    assert min(widths(release, positive=False)[int(k)] for k in primary) >= 1
    assert min(widths(release)[int(k)] for k in primary) < 1e-6
    known = replace(careless, bounds=careful.bounds)
    assert len(dc.audit(known, workers=1).disclosed_with_signs)
    assert len(careless.proofs.unproven(known))


def test_an_outsider_s_audit_knows_it_from_the_statement(monkeypatch):
    table = table_of(GIVEN_AWAY)
    method = dc.Suppress(dc.rules.Threshold(2))
    assert not len(dc.audit(table.protect(method)).disclosed_with_signs)
    monkeypatch.setattr(dc.Suppress, "_hidden_counts_are_positive", lambda self, table: False)
    assert len(dc.audit(table.protect(method)).disclosed_with_signs)


def test_room_below_is_what_programs_leave():
    rng = np.random.default_rng(5)
    for margins in ("row*col*more", "row*col + col*more", "row + col + more"):
        table = table_of(rng.integers(0, 4, (3, 3, 2)), margins)
        X, z = table.design.matrix().toarray(), table.z
        for k in range(len(z)):
            found = linprog(X[:, k], A_ub=-X.T, b_ub=-(z > 0).astype(float))
            assert z[k] - room_below(table.design, z)[k] <= found.fun + 1e-9
            if margins == "row*col*more":
                assert z[k] - room_below(table.design, z)[k] == pytest.approx(found.fun)


def test_empty_cells_that_may_be_hidden_leave_the_count_open():
    pattern = dc.Suppress(dc.rules.Threshold(2), zeros=True).pattern(table_of(GIVEN_AWAY))
    assert pattern.bounds is None
