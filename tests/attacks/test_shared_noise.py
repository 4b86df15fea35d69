"""Noise that two tables share can be subtracted; noise that is drawn anew can be averaged."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.design import ProductDesign
from discreet.errors import LedgerError
from discreet.protect.cells import NoiseCells
from discreet.protect.keyed_noise import noise_by_draw
from discreet.randomness import stream
from discreet.tables import DataSet
from tests.attacks.victims import (
    MODULUS,
    PTABLE,
    correlation,
    country,
    exact_share,
    flat_axes,
    keyed_table,
)

BY_KEY = [dc.CellKey(PTABLE), dc.DropAdd(0.05), dc.Pram()]
FOR_A_TABLE = [
    dc.Safe(),
    dc.SmallCountRounding(),
    dc.ControlledRounding(),
    dc.Pram(invariant=True),
    dc.Pram(invariant=True, realised=True),
    dc.Adjust(dc.CellKey(PTABLE)),
]
RELEASES = 20


def name_of(value):
    named = [value.name] if hasattr(value, "name") else []
    return "-".join(named + [o for o in ("invariant", "realised") if getattr(value, o, False)])


@pytest.mark.parametrize("method", [*BY_KEY, *FOR_A_TABLE], ids=name_of)
def test_two_tables_under_one_secret_share_no_noise(method):
    one, other = country(seed=1, mean=8.0), country(seed=2, mean=8.0)
    noise = [table.protect(method).z - table.z for table in (one, other)]
    assert abs(correlation(*noise)) < 4 / np.sqrt(len(one.z))


def test_two_tables_under_one_stream_share_their_noise():
    law = dc.DropAdd(0.05).law
    tables = [country(seed=seed, smallest=40) for seed in (1, 2)]
    noise = [noise_by_draw(NoiseCells(table), law, stream(1, "drop-add")) for table in tables]
    assert correlation(*noise) > 0.8


@pytest.mark.parametrize("method", [*BY_KEY, *FOR_A_TABLE], ids=name_of)
def test_making_a_release_again_gives_nothing_to_average(method):
    table = country(mean=8.0)
    again = table.protect(method)
    assert all((table.protect(method).z == again.z).all() for _ in range(3))
    other_order = ProductDesign(table.design.axes[::-1], "sex*age*region")
    shape = table.design.shape
    inner = {
        name: getattr(table.inner, name).reshape(shape).transpose(2, 1, 0).ravel()
        for name in ("count", "key")
    }
    turned = dc.Table.from_inner(other_order, replace(table.inner, **inner))
    assert by_name(turned.with_secret(table.secret).protect(method)) == by_name(again)


def by_name(release):
    frame = release.to_pandas().astype(str)
    codes = [column for column in frame.columns if column != release.unit]
    return {frozenset(row[codes].items()): row[release.unit] for _, row in frame.iterrows()}


@pytest.mark.parametrize(
    "method",
    [
        dc.Safe(),
        dc.SmallCountRounding(force_inner=True),
        dc.ControlledRounding(),
        dc.DropAdd(0.05),
    ],
    ids=name_of,
)
def test_fresh_draws_average_to_the_truth(method):
    """Beside them a release that is made again has the same figures, whoever asks for it."""
    table = country(mean=8.0)
    found = dc.attack_method(table, method, ["averages"], replicates=1, reruns=RELEASES)
    assert found["averages"].lift > 0.3
    assert found["averages"].is_above()


def test_a_release_that_differs_by_a_parameter_is_refused(tmp_path):
    """A change of a parameter draws anew, so that the ledger lets one such release pass."""
    ledger = dc.Ledger(tmp_path / "ledger.db")
    table = replace(country(mean=8.0), data_set=DataSet("census"))
    first, *others = (dc.Safe(max_move=3 + k) for k in (0, 1, 2, 3, 5, 7, 12, 17))
    release = table.protect(first, ledger=ledger)
    assert (table.protect(first, ledger=ledger).z == release.z).all()
    for method in (others[0], dc.ControlledRounding(), dc.Pram(invariant=True)):
        with pytest.raises(LedgerError, match="averaged"):
            table.protect(method, ledger=ledger)
    again = table.protect(others[0], ledger=ledger, again=True)
    assert "This is release 2 of this edition" in again.statement.text
    alone = [table.protect(method) for method in others]  # the control: nobody counts
    assert "Nobody counts releases" in alone[0].statement.text
    single = np.mean([exact_share(r.z, table.z) for r in alone])
    assert exact_share(np.mean([r.z for r in alone], axis=0), table.z) > single + 0.1


# One table under two settings


@pytest.mark.parametrize(
    ("methods", "is_shared"),
    [
        ((dc.DropAdd(0.05, cap=2), dc.DropAdd(0.05, cap=7)), False),
        ((dc.Pram(epsilon=1.0), dc.Pram(epsilon=0.5)), False),
        ((dc.DropAdd(0.05, cap=2), dc.DropAdd(0.05, cap=7)), True),
    ],
)
def test_two_settings_share_no_number(methods, is_shared):
    """The control is a table without a secret, whose keys look the noise up in any setting."""
    table = country(smallest=150, mean=100.0)
    table = table.with_secret(None) if is_shared else table
    first, second = (table.protect(method) for method in methods)
    one_point = dc.Knowledge((first,), extra={"laws": (tuple(m.law for m in methods),)})
    found = dc.attack(table, second, ["several-laws"], knowledge=one_point)["several-laws"]
    alone = exact_share(first.z, table.z)
    right = found.tally.recall
    assert right > 0.65 if is_shared else right < alone + 0.1
    assert "with other parameters" in first.statement.text


# One margin in ten tables

SIZES = {"region": 9, "sex": 2, **{f"v{k}": 3 for k in range(6)}}
TENTH = [("v0",), ("v1",), ("v2",), ("v3",), ("v4",), ("v5",), ("v0", "v1"), ("v2", "v3")]
TENTH += [("v4", "v5"), ("v0", "v5")]


@pytest.fixture(scope="module")
def records():
    """Inner cells of many variables, and their keys."""
    rng = np.random.default_rng(5)
    shape = tuple(SIZES.values())
    counts = rng.poisson(0.02 * rng.exponential(1.0, shape))
    return counts, rng.integers(MODULUS, size=shape) * (counts > 0)


def crossed_with(records, others):
    """The table of region, sex and some other variables, with all margins."""
    names = list(SIZES)
    kept = ["region", "sex", *others]
    dropped = tuple(k for k, name in enumerate(names) if name not in kept)
    counts, keys = (values.sum(axis=dropped) for values in records)
    axes = flat_axes(**{name: SIZES[name] for name in names if name in kept})
    return keyed_table(counts, axes, "*".join(a.name for a in axes), keys=keys.ravel() % MODULUS)


def margin_of(table, z):
    """Values of the cells of region and sex."""
    labels = table.design.label_columns()
    total = np.ones(len(z), dtype=bool)
    for axis in table.design.axes:
        column = np.asarray(labels[axis.name].to_pylist())
        is_total = np.isin(column, list(axis.total_codes))
        total &= ~is_total if axis.name in ("region", "sex") else is_total
    return z[total]


@pytest.mark.parametrize("method", BY_KEY, ids=name_of)
def test_a_margin_is_the_same_in_ten_tables(records, method):
    tables = [crossed_with(records, others) for others in TENTH]
    shown = [margin_of(t, t.protect(method).z) for t in tables]
    assert len(shown[0]) == 18
    assert all((one == shown[0]).all() for one in shown)


def test_with_noise_of_its_own_in_every_table_a_margin_could_be_averaged(records):
    tables = [crossed_with(records, others) for others in TENTH]
    truth = margin_of(tables[0], tables[0].z)
    single, averaged = [], []
    for k in range(20):
        trials = [t.simulate(dc.Pram(), seed=10 * k + i).z for i, t in enumerate(tables)]
        shown = [margin_of(t, z) for t, z in zip(tables, trials, strict=True)]
        single.append(exact_share(shown[0], truth))
        averaged.append(exact_share(np.mean(shown, axis=0), truth))
    assert np.mean(single) < 0.8
    assert np.mean(averaged) > 0.9
