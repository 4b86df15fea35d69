"""Controlled tabular adjustment proper: protection intervals, bounds and weights of cells."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import InfeasibleError, ParameterError
from discreet.protect import SeededDraws
from discreet.protect.sentences import is_additive
from discreet.testing import sample_table
from tests.protect.tables import SECRET

SHAPES = [({"a": 2, "b": 3}, "a*b"), ({"a": 2, "b": 2, "c": 2}, "a*b*c"), ({"a": 5}, "a")]


def random_table(shape, seed, largest=5):
    design = dc.Design.product(*SHAPES[shape])
    return dc.Table.from_inner(
        design, np.random.default_rng(seed).integers(0, largest, design.n_inner)
    )


def least_loss(table, method, reach=4):
    """The smallest loss over all tables there are, straight from the definition."""
    X, z = table.design.matrix().toarray(), np.asarray(table.z)
    choices = [
        [v for v in range(y + reach + 1) if v == 0 or v >= method.claims.blocked[-1] + 1]
        if method.claims.blocked else list(range(y + reach + 1))
        for y in table.y
    ]  # fmt: skip
    choices = [[0] if y == 0 else c for y, c in zip(table.y, choices, strict=True)]
    every = np.array(list(product(*choices))) @ X
    (below, above), s = method.protection, method.sensitive or 0
    is_sensitive = (z >= 1) & (z <= s)
    inside = ((every > z - below) & (every < z + above))[:, is_sensitive].any(axis=1)
    weights = np.ones(len(z))
    for value, weight in (method.value_weights or {}).items():
        weights[z == value] *= weight
    orders = table.design.orders
    for order, weight in (method.weights or {}).items():
        weights[orders == order] *= weight
    kept = ~inside
    for order, bound in (method.bounds or {}).items():
        kept &= (np.abs(every - z)[:, orders == order] <= bound).all(axis=1)
    loss = (np.abs(every - z) * weights).sum(axis=1)[kept]
    return loss.min() if len(loss) else None


METHODS = {
    "away": dc.Adjust(None, min_count=1, sensitive=2, protection=(1, 2)),
    "far away": dc.Adjust(None, min_count=1, sensitive=1, protection=(1, 3)),
    "no small counts": dc.Adjust(None),
    "weights of values": dc.Adjust(
        None, min_count=1, sensitive=2, protection=(1, 1), value_weights={3: 16, 4: 4}
    ),
    "weights and bounds": dc.Adjust(
        None, min_count=1, sensitive=1, protection=(1, 2), weights={0: 16, 1: 4}, bounds={0: 2}
    ),
}


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("name", METHODS)
def test_the_loss_is_the_smallest_of_all_tables(name, shape):
    method, certified = METHODS[name], 0
    for seed in range(2):
        table = random_table(shape, seed, largest=4)
        best = least_loss(table, method)
        if best is None:
            with pytest.raises(InfeasibleError):
                method.search(table, draws=SeededDraws(seed))
            continue
        found = method.search(table, draws=SeededDraws(seed))
        assert found.loss == pytest.approx(best)
        assert found.lower_bound <= best + 1e-6
        certified += found.is_optimal
    if method.sensitive is not None:
        assert certified >= 1


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 3)])
def test_sensitive_cells_leave_and_others_hardly_move(shape):
    design = dc.Design.product(dict(zip("abc", shape, strict=False)), "*".join("abc"[: len(shape)]))
    table = dc.Table.from_inner(design, np.random.default_rng(7).poisson(2.5, design.n_inner))
    method = dc.Adjust(None, min_count=1, sensitive=2, protection=(1, 2), max_move=6)
    release = table.simulate(method, seed=1)
    z, move = np.asarray(table.z), np.asarray(release.z - table.z)
    sensitive = (z >= 1) & (z <= 2)
    assert ((move <= -1) | (move >= 2))[sensitive].all()
    assert np.abs(move).max() <= 6
    assert is_additive([release])
    assert not release.z[z == 0].any()
    assert np.abs(move[~sensitive]).mean() < 1.5
    # A planted fault: without protection they stay where they are.
    plain = table.simulate(dc.Adjust(None, min_count=1), seed=1)
    np.testing.assert_array_equal(plain.z, table.z)


def test_the_audit_knows_what_protection_intervals_tell():
    table = random_table(0, 3, largest=7)
    method = dc.Adjust(None, min_count=1, sensitive=2, protection=(1, 2), max_move=4)
    release = table.simulate(method, seed=3)
    found = dc.audit(release, table, intervals="all")
    assert (found.low <= table.z).all()
    assert (found.high >= table.z).all()


@pytest.mark.parametrize("method", [dc.Adjust(None), dc.Adjust(None, min_count=1, sensitive=2)])
def test_promises_hold_and_the_order_of_cells_makes_no_difference(method):
    table = sample_table().with_secret(SECRET)
    release = table.protect(method, unit="count")
    assert is_additive([release])
    assert not release.z[np.asarray(table.z) == 0].any()
    assert not np.isin(release.z, method.claims.blocked).any()
    np.testing.assert_array_equal(release.z, table.protect(method, unit="count").z)
    moved = np.asarray(release.z) != table.z
    assert 0 < moved.mean() < 0.9


def test_statement_and_options_say_what_was_done():
    table = sample_table().with_secret(SECRET)
    release = table.protect(dc.Adjust(None, sensitive=3, protection=(2, 3)), unit="count")
    for kind in ("sensitive-moved", "no-noise", "adds-up", "differs-between-tables"):
        assert release.statement.says(kind)
    said = next(s for s in release.statement.sentences if s.kind == "sensitive-moved")
    evidence = SimpleNamespace(truth=np.asarray(table.z), finals=[release])
    assert said.holds(evidence)
    unmoved = SimpleNamespace(truth=np.asarray(table.z), finals=[replace(release, z=table.z)])
    assert not said.holds(unmoved)
    for options in ({"value_weights": {3: 5.5}}, {"protection": (4, 4)}, {"bounds": {1: 2.25}}):
        with pytest.raises(ParameterError, match="without a ledger"):
            table.protect(dc.Adjust(None, sensitive=3, **options), unit="count")
    built = registry.build("method", "adjust", {"method": None, "sensitive": 2})
    assert built.claims.blocked == (1, 2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sensitive": 0}, "sensitive"),
        ({"protection": 3}, "pair"),
        ({"protection": (0, 1)}, "protection"),
        ({"bounds": {1: -1}}, "bounds must not be negative"),
        ({"value_weights": {1: 0}}, "value_weights must be positive"),
    ],
)
def test_nonsense_is_refused(options, why):
    with pytest.raises(ParameterError, match=why):
        dc.Adjust(None, **options)
