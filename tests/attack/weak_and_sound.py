"""For every registered attack a planted weak release, and a sound one beside it.

A setting is made of what `dc.attack` takes. Weak ones are weak on purpose, most of them in ways
that the library refuses; sound ones are what it makes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from discreet.attacks.differencing import Differencing
from discreet.attacks.editions import Leavers
from discreet.attacks.insiders import ClusterInsider
from discreet.attacks.leverage import FittedValues
from discreet.attacks.patterns import PatternInversion
from discreet.design.axis import Axis, Level
from discreet.synthesis import ipso
from discreet.synthesis.hybrid import hybrid
from discreet.tables import CellStatus, Statement
from tests.attacks.test_editions import people, tabulated
from tests.attacks.test_large_units import firms, giant, matrices, released
from tests.attacks.test_weights import sampled_records, to_the_last_digit
from tests.attacks.victims import MODULUS, PTABLE, SECRET, country, flat_axes, keyed_table


@dataclass
class Setting:
    """A release and everything that its custodian has."""

    table: Any
    release: Any
    attack: Any = None
    options: dict[str, Any] = field(default_factory=dict)


def plain(table, seed=0):
    """The truth as it stands, as if somebody had released it."""
    return dc.Trial(table.design, table.z, Statement())


def with_inner(table, seed=0):
    """The truth with its inner cells."""
    return replace(plain(table), y=table.y)


def fitted(table, seed):
    """Private counts and the whole inner table that is fitted to them."""
    return table.simulate(dc.DiscreteLaplace(0.1), seed=seed).fit("least-squares")


def small_cells_hidden(table, seed=0):
    """Counts below three are hidden, and nothing protects them."""
    hidden = (table.z > 0) & (table.z < 3)
    status = np.where(hidden, CellStatus.suppressed, CellStatus.published).astype(np.int8)
    return dc.Trial(table.design, np.where(hidden, 0, table.z), Statement(), status=status)


def sparse(region=30, age=10, work=3, mean=0.35):
    """A few people in many cells, published one by one, with all margins."""
    return country(mean=mean, terms="region*age*work", region=region, age=age, work=work)


def crossed(seed=1):
    """People of four variables, most of whom are alone in their combination."""
    rng = np.random.default_rng(seed)
    sizes = {"region": 8, "age": 5, "work": 4, "sex": 2}
    counts = rng.poisson(rng.gamma(0.3, 1.0, 320))
    terms = "region*age*work + region*age*sex + region*work*sex + age*work*sex"
    return keyed_table(counts, flat_axes(**sizes), terms, seed)


def private(table, epsilon=0.1):
    return Setting(table, table.simulate(dc.DiscreteLaplace(epsilon), seed=1))


def open_as(table, make=plain):
    return Setting(table, make(table, 1), options={"method": make})


def by(method, table):
    return Setting(table, table.simulate(method, seed=1))


def drawn_again(method, table, others):
    """A release, and other draws of the same table beside it."""
    earlier = tuple(table.simulate(m, seed=k) for k, m in others)
    known = dc.Knowledge(earlier=earlier)
    return Setting(table, table.simulate(method, seed=1), options={"knowledge": known})


LAWS = [dc.perturbation_table(*each) for each in ((5, 2, 0), (6, 4, 2), (3, 1, 0))]


def blocks_of_people(level, has_all=True, seed=1):
    """People of small blocks: by district, or by school zones of which some took in a block more.

    Without all of them, the few who live in institutions are missing.
    """
    rng = np.random.default_rng(seed)
    district = np.arange(60) // 2
    zone = district - (np.arange(60) % 4 == 2)
    groups = {"district": district, "zone": zone, "block": np.arange(60)}
    names = {name: [f"{name}{k}" for k in np.unique(group)] for name, group in groups.items()}
    levels = [Level(f"area[{n}]", tuple(names[n]), g.astype("int32")) for n, g in groups.items()]
    axes = [Axis("area", tuple(names["block"]), levels), *flat_axes(age=6, work=5, sex=2)]
    cell = rng.integers(60 * 60, size=1_000)
    keys, stays = rng.integers(MODULUS, size=1_000), rng.random(1_000) >= 0.08
    cell, keys = (x if has_all else x[stays] for x in (cell, keys))
    sums = np.zeros(60 * 60, dtype=np.int64)
    np.add.at(sums, cell, keys)
    counts = np.bincount(cell, minlength=60 * 60)
    return keyed_table(counts, axes, f"area[{level}]*age*work*sex", keys=sums % MODULUS)


def two_tables(make, other, outside=False):
    """The districts of everybody beside a second release that overlaps them."""
    table = blocks_of_people("district")
    known = dc.Knowledge(earlier=(make(other, 2),))
    options = {"knowledge": known, "before": [other]}
    options |= {"method": plain} if make is plain else {}
    return Setting(table, make(table, 1), Differencing(outside=outside), options)


def by_key(table, seed):
    return table.protect(dc.CellKey(PTABLE))


def with_noise(table, seed):
    return table.simulate(dc.DiscreteLaplace(0.1), seed=seed)


def leavers(keys, churn):
    """Two editions between which a share of the people leaves."""
    codes, ids = people(), np.arange(3_000)
    stays = np.random.default_rng(1).random(3_000) >= churn
    tables = [tabulated(codes, ids, keys), tabulated(codes[:, stays], ids[stays], keys, "2")]
    releases = [t.protect(dc.CellKey(PTABLE)) for t in tables]
    options = {"knowledge": dc.Knowledge(earlier=(releases[0],)), "before": [tables[0]]}
    return Setting(tables[1], releases[1], Leavers(churn=churn), options)


def unchanged(keys):
    """Twelve editions of the same people."""
    codes, ids = people(), np.arange(3_000)
    tables = [tabulated(codes, ids, keys, str(k)) for k in range(12)]
    *earlier, release = (t.protect(dc.CellKey(PTABLE)) for t in tables)
    return Setting(tables[-1], release, options={"knowledge": dc.Knowledge(earlier=tuple(earlier))})


def patterns(is_kept):
    """A table hidden three times, by another secret each time or by the same pattern."""
    counts = np.random.default_rng(4).poisson(6, (20, 12))
    design = dc.Design.product({"a": 20, "b": 12}, "a*b")
    table, method = dc.Table.from_inner(design, counts.ravel()), dc.Suppress("threshold(3)")
    secrets = [dc.Secret(b"%d secret of thirty-two bytes or so" % k) for k in range(6)]
    made = [table.with_secret(s).protect(method) for s in secrets]
    if is_kept:
        made = [made[-1]] * 6
    options = {"knowledge": dc.Knowledge(earlier=tuple(made[:-1])), "method": method}
    return Setting(table, made[-1], options=options)


def sampled(grid):
    """A survey of 700 people of whom everybody stands for some 45, in steps of a grid."""
    table = sampled_records()
    release = table.simulate(dc.CellKey(PTABLE, grid=grid), unit="weight", seed=1)
    known = dc.Knowledge(extra={"mean_weight": 45.0})
    return Setting(table, release, options={"knowledge": known})


def fine_weights():
    table = sampled_records()
    mean = table.published.weight.max() / table.z.max()
    options = {"knowledge": dc.Knowledge(extra={"mean_weight": mean}), "method": to_the_last_digit}
    return Setting(table, to_the_last_digit(table), options=options)


def graded(**options):
    """Large counts with classes of how far they were moved."""
    table = country(smallest=60, mean=40.0, region=40, age=12, sex=2)
    return by(dc.protect.Quality(dc.CellKey(PTABLE), **options), table)


def inverted(secret, copies):
    """Tables of each of which fifteen fit the shown cells, and one is hidden like this."""
    terms = [("of", "a", "b"), ("of", "a"), ("of", "b"), ("of",)]
    design = dc.Design.product({"of": copies, "a": 3, "b": 4}, terms)
    table = dc.Table.from_inner(design, [1, 3, 0, 21, 4, 6, 4, 6, 2, 11, 8, 13] * copies)
    table, method = table.with_secret(secret), dc.Suppress("threshold(3)")
    options = {"knowledge": dc.Knowledge(extra={"program": method})}
    return Setting(table, table.protect(method), PatternInversion(runs=100), options)


def near_files(method, files=0, **options):
    """Synthetic values that keep some of the original ones, and further draws of them."""
    frame = firms(1.0, n=60)
    made = [
        dc.synthesize(frame, "sales ~ size", method, simulate=True, seed=k + 1, **options)
        for k in range(files + 1)
    ]
    known = dc.Knowledge(earlier=tuple(made[1:]))
    return Setting(frame, made[0], options={"knowledge": known})


def firms_of(frame, checked, attack=None):
    if checked:
        made = dc.synthesize(frame, "sales ~ size", large="top-code", secret=SECRET)
    else:
        Y, X = matrices(frame)
        made = released(frame, ipso(Y, X, rng=np.random.default_rng(1)).Y)
    return Setting(frame, made, attack)


def members(method, **options):
    """A file with three synthetic columns, made of the first of two sets of firms."""
    frames = []
    for seed in (1, 2):
        frame, rng = firms(1.0, seed=seed, n=300), np.random.default_rng(50 + seed)
        moved = {"staff": rng.lognormal(0, 0.7, 300), "profit": rng.normal(1, 0.5, 300)}
        frames.append(frame.assign(**{name: frame["sales"] * by for name, by in moved.items()}))
    model = "sales + staff + profit ~ size"
    made = dc.synthesize(frames[0], model, method, simulate=True, seed=1, **options)
    known = dc.Knowledge(extra={"outside": frames[1]})
    return Setting(frames[0], made, options={"knowledge": known})


def clusters(size):
    rng = np.random.default_rng(1)
    Y, number = rng.lognormal(10, 1, (100 * size, 1)), np.repeat(np.arange(100), size)
    frame = pd.DataFrame({"sales": Y.ravel(), "cluster": number})
    made = released(frame, hybrid(Y, None, None, number, rng=rng).Y, "sales ~ 1")
    return Setting(frame, made, ClusterInsider("cluster"))


Pair = tuple[Callable[[], Setting], Callable[[], Setting], float]
SETTINGS: dict[str, Pair] = {
    "integer-reconstruction": (lambda: open_as(crossed()), lambda: private(crossed()), 0.3),
    "refit-least-squares": (lambda: open_as(crossed()), lambda: private(crossed()), 0.3),
    "refit-least-absolute": (lambda: open_as(crossed()), lambda: private(crossed()), 0.3),
    "refit-log-linear": (lambda: open_as(crossed()), lambda: private(crossed()), 0.3),
    "refit-noise-likelihood": (
        lambda: by(dc.Pram(epsilon=5.0), sparse(8, 5, mean=1.0)),
        lambda: private(sparse(6, 4, mean=1.0), 0.5),
        0.3,
    ),
    "inner-table": (
        lambda: open_as(crossed(), with_inner),
        lambda: open_as(country(mean=4.0), fitted),
        0.9,
    ),
    "bounds": (
        lambda: by(dc.CellKey(dc.perturbation_table(1, 0.3)), sparse(14, 6, 2, mean=0.8)),
        lambda: by(dc.CellKey(PTABLE), country(mean=4.0)),
        0.3,
    ),
    "averages": (
        lambda: drawn_again(
            dc.DropAdd(0.05), country(mean=8), [(k, dc.DropAdd(0.05)) for k in range(2, 42)]
        ),
        lambda: drawn_again(dc.DropAdd(0.05), country(mean=8), [(1, dc.DropAdd(0.05))] * 40),
        0.2,
    ),
    "several-laws": (
        lambda: drawn_again(
            dc.CellKey(PTABLE), country(mean=3.0), [(1, dc.CellKey(m)) for m in LAWS]
        ),
        lambda: drawn_again(dc.CellKey(PTABLE), country(mean=3.0), [(1, dc.CellKey(PTABLE))] * 3),
        0.3,
    ),
    "weighted-steps": (lambda: sampled(1.0), lambda: sampled(45.0), 0.3),
    "decimals": (fine_weights, lambda: sampled(45.0), 0.6),
    "quality-classes": (
        lambda: graded(edges=(0, 1), keep=0.999),
        lambda: graded(keep=0.05),
        0.1,
    ),
    "complements": (
        lambda: open_as(country(mean=4.0), small_cells_hidden),
        lambda: by("suppress", country(mean=4.0)),
        0.3,
    ),
    "contributor": (
        lambda: open_as(country(mean=4.0), small_cells_hidden),
        lambda: by("suppress", country(mean=4.0)),
        0.3,
    ),
    "group-attributes": (
        lambda: open_as(sparse()),
        lambda: private(sparse()),
        0.3,
    ),
    "nested-crossings": (
        lambda: open_as(sparse()),
        lambda: private(sparse()),
        0.3,
    ),
    "differencing": (
        lambda: two_tables(plain, blocks_of_people("zone")),
        lambda: two_tables(with_noise, blocks_of_people("zone")),
        0.3,
    ),
    "leavers": (lambda: leavers("kept", 0.01), lambda: leavers("fresh", 0.2), 0.3),
    "unchanged-cells": (lambda: unchanged("fresh"), lambda: unchanged("kept"), 0.3),
    "pattern-difference": (lambda: patterns(False), lambda: patterns(True), 0.2),
    "pattern-intersection": (lambda: patterns(False), lambda: patterns(True), 0.2),
    "pattern-inversion": (lambda: inverted(None, 2), lambda: inverted(SECRET, 1), 0.3),
    "copies": (lambda: near_files("romm", lambda_=0.01), lambda: near_files("ipso"), 0.3),
    "fitted-values": (
        lambda: firms_of(firms(60), False, FittedValues(most=1)),
        lambda: firms_of(firms(60), True, FittedValues(most=1)),
        0.9,
    ),
    "longest-column": (lambda: firms_of(giant(), False), lambda: firms_of(giant(), True), 0.9),
    "membership": (lambda: members("romm", lambda_=0.001), lambda: members("ipso"), 0.6),
    "cluster-insider": (lambda: clusters(3), lambda: clusters(8), 0.9),
}
"""By attack: a weak setting, a sound one, and the lift above which the weak one must lie."""
