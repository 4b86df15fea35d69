"""Maximum entropy tables against the peer, a general solver, the laws they promise."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.errors import DiscreetError, InfeasibleError, ParameterError
from discreet.noise import perturbation_table, variance_range
from discreet.noise.checks import admissible, free, rising_both, rising_left, table_rows
from discreet.noise.entropy import PRESETS
from discreet.noise.linear import linear_table

GOLDEN = sorted(Path(__file__).parents[1].joinpath("golden").glob("ptable_*.json"))


def slow_row(count, D, V, js, tails, *, exact=True, pstay=0.0):
    """A general solver on the same problem; slow and obvious."""
    support = admissible(count, D, js)
    v = np.array(support.deviations, dtype=float)
    conditions = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "eq", "fun": lambda p: p @ v},
        {"type": "eq" if exact else "ineq", "fun": lambda p: V - p @ v**2},
    ]
    for outer, inner in tails(support).steps():
        conditions.append({"type": "ineq", "fun": lambda p, o=outer, i=inner: p[i] - p[o]})
    bounds = [(max(1e-9, pstay if x == 0 else 0.0), 1.0) for x in v]
    found = minimize(
        lambda p: float(np.sum(p * np.log(p))),
        np.full(len(v), 1 / len(v)),
        jac=lambda p: np.log(p) + 1,
        bounds=bounds,
        constraints=conditions,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    for condition in conditions:
        gap = condition["fun"](found.x)
        assert abs(gap) < 1e-8 if condition["type"] == "eq" else gap > -1e-8
    return found.x


def row_of(table, count, D, js):
    support = admissible(count, D, js)
    return table.probabilities(count)[[table.max_move + v for v in support.deviations]]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_the_peer_s_tables_are_reproduced(path):
    golden = json.loads(path.read_text())
    table = perturbation_table(**golden["parameters"], variant="ptable")
    ours = table.dense(max(golden["targets"]) + 1)[: len(golden["matrix"])]
    np.testing.assert_allclose(ours[:, golden["targets"]], golden["matrix"], atol=1e-6)


def test_golden_tables_are_all_there():
    assert len(GOLDEN) == 8


def test_printed_rows_of_ptable_with_D2():
    """Check 2 of the peer's published output, 8 digits."""
    table = perturbation_table(2, 1, variant="ptable")
    first = [0.36648551, 0.36648551, 0.16757247, 0.09945652]
    np.testing.assert_allclose(row_of(table, 1, 2, 0), first, atol=1e-8)
    np.testing.assert_allclose(
        row_of(table, 2, 2, 0)[:3], [0.06382714, 0.24469145, 0.38296282], atol=1e-8
    )
    assert table.audit().variance[1] == pytest.approx(0.93188, abs=1e-5)
    smaller = perturbation_table(2, 0.9, variant="ptable")
    np.testing.assert_allclose(
        row_of(smaller, 1, 2, 0), [0.3625, 0.3625, 0.1875, 0.0875], atol=1e-8
    )
    np.testing.assert_allclose(
        row_of(smaller, 2, 2, 0)[:3], [0.05154609, 0.24381564, 0.40927654], atol=1e-8
    )


def test_printed_row_with_one_blocked_value():
    row = row_of(perturbation_table(2, 1.08, 1, variant="ptable"), 1, 2, 1)
    np.testing.assert_allclose(row, [0.5133, 0.4600, 0.0267], atol=5e-5)


def test_pstay_is_kept_and_the_variance_met():
    audit = perturbation_table(4, 1, pstay=0.5).audit()
    np.testing.assert_allclose(audit.variance[1:], 1, atol=1e-9)
    np.testing.assert_allclose(audit.stay[1:], 0.5, atol=1e-9)


def test_the_last_row_is_a_discrete_normal():
    """log p = -1.47490 - 0.16400 v^2 for D=5, V=3, js=2."""
    table = perturbation_table(5, 3, 2)
    expected = np.exp(-1.47490 - 0.16400 * table.deviations**2)
    np.testing.assert_allclose(table.probabilities(8), expected, rtol=1e-4)


GRID = [
    (D, js, share, mono)
    for D in (2, 4, 6)
    for js in (0, 1, 2)
    for share in (0.15, 0.9)
    for mono in (True, False)
    if js < D
]


@pytest.mark.parametrize(("D", "js", "share", "mono"), GRID)
def test_rows_agree_with_a_general_solver(D, js, share, mono):
    low, high = variance_range(D, js, mono=mono)
    V = low + share * (high - low)
    table = perturbation_table(D, V, js, mono=mono)
    order = rising_both if mono else free
    counts = sorted({1, max(js, 1), js + 1, D, table_rows(D, js)[-1]})
    for count in counts:
        slow = slow_row(count, D, V, js, order)
        np.testing.assert_allclose(row_of(table, count, D, js), slow, atol=2e-6)


@pytest.mark.parametrize(("D", "V", "js"), [(3, 1.7, 0), (5, 2.5, 1), (6, 3.3, 2), (4, 3.9, 0)])
def test_bounded_variance_agrees_with_a_general_solver(D, V, js):
    table = perturbation_table(D, V, js, variant="ptable")
    for count in table_rows(D, js):
        slow = slow_row(count, D, V, js, rising_left, exact=False)
        np.testing.assert_allclose(row_of(table, count, D, js), slow, atol=2e-5)


def test_stay_bound_agrees_with_a_general_solver():
    table = perturbation_table(5, 1.2, pstay=0.55)
    for count in range(1, 6):
        slow = slow_row(count, 5, 1.2, 0, rising_both, pstay=0.55)
        np.testing.assert_allclose(row_of(table, count, 5, 0), slow, atol=2e-5)


@pytest.mark.parametrize(
    ("D", "V", "js"), [(5, 3, 2), (5, 1, 0), (10, 5, 2), (4, 2.5, 2), (3, 2, 1)]
)
def test_promises_hold(D, V, js):
    table = perturbation_table(D, V, js)
    audit = table.audit()
    np.testing.assert_allclose(audit.mean, 0, atol=1e-10)
    np.testing.assert_allclose(audit.variance[1:], V, atol=1e-9)
    P = table.dense(3 * D + 10)
    assert P[0, 0] == 1
    assert not P[1:, 1 : js + 1].any()
    assert table.max_move == D
    for count in table_rows(D, js):
        row = row_of(table, count, D, js)
        for outer, inner in rising_both(admissible(count, D, js)).steps():
            assert row[outer] <= row[inner] + 1e-15


def test_our_rows_fall_on_both_sides_and_the_peer_s_do_not():
    theirs = perturbation_table(3, 1.3, variant="ptable", optim=4, mono=True)
    ours = perturbation_table(3, 1.3)
    entropy = [t.audit().entropy for t in (ours, theirs)]
    assert np.all(entropy[0] <= entropy[1] + 1e-12)


@pytest.mark.parametrize(
    ("D", "js", "span"),
    [(3, 2, (2, 3)), (4, 2, (2, 4)), (5, 2, (2, 5)), (4, 3, (4, 4)), (4, 1, (1, 4))],
)
def test_feasible_variances_without_order(D, js, span):
    """Closed form: from the largest i(js + 1 - i) to D (for D > js)."""
    assert variance_range(D, js, mono=False) == pytest.approx(span)


def test_both_ends_of_the_range_can_be_met():
    for mono in (True, False):
        low, high = variance_range(5, 2, mono=mono)
        for V in (low, high):
            audit = perturbation_table(5, V, 2, mono=mono).audit()
            np.testing.assert_allclose(audit.variance[1:], V, atol=1e-8)


def test_infeasible_variance_names_the_range():
    with pytest.raises(InfeasibleError, match=r"count 1 .*V must lie in \[0, 2\]"):
        perturbation_table(5, 3, 0)
    with pytest.raises(InfeasibleError, match=r"V must lie in \[2, "):
        perturbation_table(5, 1.9, 2)
    with pytest.raises(InfeasibleError, match="no variance can be met"):
        perturbation_table(2, 3, 2)
    with pytest.raises(InfeasibleError, match="no law at all"):
        perturbation_table(1, 1, 3)


def test_a_table_of_endless_rows_is_refused():
    for make in (perturbation_table, variance_range, linear_table):
        given = (10**30,) if make is variance_range else (10**30, 3)
        with pytest.raises(ParameterError, match="D must be at most 1,000"):
            make(*given)


def test_the_least_counts_are_blocked_that_allow_the_variance():
    given = ((2, 1), (5, 3), (5, 3, 2))
    assert [perturbation_table(*each).blocked for each in given] == [0, 1, 2]
    with pytest.raises(InfeasibleError, match=r"V must lie in \[0, 2\]"):
        perturbation_table(5, 40)


def test_presets_have_their_parameters_and_a_source_in_the_bibliography():
    references = (Path(__file__).parents[2] / "docs" / "references.md").read_text()
    for name, preset in PRESETS.items():
        table = perturbation_table(name)
        audit = table.audit()
        assert table.blocked == preset.js
        assert np.allclose(audit.variance[1:], preset.V, atol=1e-8)
        assert abs(table.deviations).max() == preset.D
        author, year = re.match(r"(\w+) .*?\((\d{4})\)", preset.source).groups()
        assert any(author in line and f"({year})" in line for line in references.splitlines())
    assert perturbation_table().parameters == perturbation_table(5, 3, 2).parameters


def test_rows_of_giessing_and_hoehne_are_those_of_their_appendix():
    law = perturbation_table("giessing-hoehne-3").law
    assert sorted(law[4]) == pytest.approx([0, 0, 0.099, 0.1, 0.1, 0.1, 0.601], abs=6e-4)
    assert law[5] == pytest.approx([0, 0.167, 0.167, 0.416, 0.083, 0.083, 0.083], abs=6e-4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"D": "census"}, "unknown preset"),
        ({"D": 5}, "needs the variance"),
        ({"V": 3}, "goes with D="),
        ({"D": 5, "preset": "no-small-counts"}, "D= of its own"),
        ({"D": "no-small-counts", "js": 1}, "js= goes with D="),
        ({"D": "no-small-counts", "preset": "giessing-hoehne-3"}, "two presets"),
    ],
)
def test_a_preset_has_all_parameters_or_none(given, words):
    with pytest.raises(DiscreetError, match=words):
        perturbation_table(**given)


def test_stay_bound_too_high_is_infeasible():
    with pytest.raises(InfeasibleError, match="pstay"):
        perturbation_table(3, 1.3, pstay=0.9)


def test_range_ends_where_the_tables_end():
    low, high = variance_range(4, 0)
    perturbation_table(4, high * (1 - 1e-7))
    with pytest.raises(InfeasibleError):
        perturbation_table(4, high * (1 + 1e-6), 0)
    assert low == pytest.approx(0, abs=1e-12)


def test_options_per_row():
    table = perturbation_table(3, 1, pstay=[None, 0.5, None], mono=[True, False, True])
    assert table.audit().stay[2] == pytest.approx(0.5)
    with pytest.raises(ParameterError, match="3 rows"):
        perturbation_table(3, 1, pstay=[0.5])


@pytest.mark.parametrize(
    "bad",
    [
        {"D": 0, "V": 1},
        {"D": 2.5, "V": 1},
        {"D": 3, "V": 0},
        {"D": 3, "V": math.nan},
        {"D": 3, "V": 1, "js": -1},
        {"D": 3, "V": 1, "pstay": 1.5},
        {"D": 3, "V": 1, "variant": "sas"},
        {"D": 3, "V": 1, "optim": 1},
        {"D": 3, "V": 1, "variant": "ptable", "optim": 5},
    ],
)
def test_bad_options_are_refused(bad):
    with pytest.raises(ParameterError):
        perturbation_table(**bad)


# Small reaches, where few variances can be met or none; large ones, where rows are many; each
# number of blocked values with both.
REACHES = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (4, 3), (5, 0), (5, 3)]
REACHES += [(8, 1), (13, 2), (20, 0), (30, 3), (40, 1)]


@pytest.mark.parametrize(("D", "js"), REACHES)
def test_every_feasible_variance_is_met(D, js):
    """From a thousandth to the largest variance, both ends included."""
    span = variance_range(D, js)
    if span is None:
        with pytest.raises(InfeasibleError, match="no variance can be met"):
            perturbation_table(D, 1.0, js)
        return
    low, high = max(span[0], 1e-3), span[1] * (1 - 1e-9)
    for V in {*np.geomspace(low, max(high, low), 6), *(x for x in (0.002, 0.003) if x > low)}:
        audit = perturbation_table(D, float(V), js).audit()
        np.testing.assert_allclose(audit.mean, 0, atol=1e-9)
        np.testing.assert_allclose(audit.variance[1:], V, atol=1e-9)


@pytest.mark.parametrize(("D", "js"), [(5, 0), (5, 3), (9, 1), (9, 2), (30, 0), (40, 3)])
def test_every_other_variance_is_refused(D, js):
    low, high = variance_range(D, js)
    for V in (0.999 * low, 1.001 * high, 3 * high):
        if V > 0:
            with pytest.raises(InfeasibleError, match="V must lie in"):
                perturbation_table(D, V, js)
