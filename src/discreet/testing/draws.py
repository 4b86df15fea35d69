"""Fresh draws of a method, other tables of the same records, and tests on draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.design.axis import Axis
from discreet.design.formula import Term
from discreet.design.hierarchy import Hierarchy
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.facade.table import Table
from discreet.protect.draws import SecretDraws, SeededDraws
from discreet.protect.publish import in_unit, run
from discreet.randomness import stream
from discreet.tables.data_set import Bounds, DataSet
from discreet.tables.method import Method
from discreet.tables.protected import Protected
from discreet.tables.values import CellValues

FEWEST_EXPECTED = 5.0


def sample_table(*, weights: bool = False, seed: int = 1, unit: str | None = None) -> Table:
    """A table that exercises every promise: zeros, small and large counts, the same cell twice.

    Region has a hierarchy in which one parent has a single child, so 15 published cells occur
    twice; counts run from 0 to several hundred.
    """
    regions = Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
    axes = [
        Axis.from_hierarchies("region", [regions]),
        Axis.flat("age", ["0-17", "18-39", "40-64", "65+"]),
        Axis.flat("sex", ["f", "m"]),
    ]
    design = ProductDesign(axes, "region*age*sex")
    counts = [0, 1, 2, 3, 4, 5, 6, 0, 7, 9, 12, 1, 17, 23, 0, 31, 2, 48, 3, 77, 0, 160, 1, 420]
    rng = stream(seed, "testing.sample_table")
    count = np.array(counts)
    weight = count * rng.uniform(25, 35, len(count)) if weights else None
    squares = None if weight is None else weight**2 / np.maximum(count, 1)
    inner = CellValues(count, weight, squares, np.zeros(len(count), dtype=np.int64))
    table = Table.from_inner(design, inner).rekeyed(rng)
    bounds = Bounds(weight=300.0 if weights else None)
    return replace(table, data_set=DataSet("sample", bounds=bounds), unit=unit)


def published(
    method: Method, table: Table, number: int, seed: int = 1, *, keys: str | None = None
) -> Protected:
    """The method as it publishes, for a custodian and keys of their own for each number.

    Args:
      method: The method.
      table: The table; its keys and secret are replaced.
      number: Tells custodians apart.
      seed: Root of the streams.
      keys: Tells records apart; by default those of the custodian.
    """
    custodian = SeededDraws(seed, f"testing {number}")
    records = custodian if keys is None else SeededDraws(seed, keys)
    secret = custodian.table(table).secret
    fresh = records.table(in_unit(table, method, table.unit))
    return run(method, replace(fresh, secret=secret), SecretDraws())


def releases(method: Method, table: Table, n: int, seed: int) -> Iterator[Protected]:
    """Independent releases, each under keys and a secret of its own."""
    return (published(method, table, k, seed) for k in range(n))


def retabulated(table: Table, terms: Sequence[Term]) -> Table:
    """Another table of the same records: other margins, and the variables in reversed order."""
    design = table.design.structured("variables to tabulate by")
    other = SparseDesign(
        design.axes[::-1],
        [tuple(reversed(term)) for term in terms],
        design.inner_codes()[::-1],
        occurring=design.is_confidential,
    )
    again = Table.from_inner(other, table.require_inner(), table.convention)
    kept = {name: getattr(table, name) for name in ("data_set", "unit", "secret", "ledger")}
    return replace(again, **kept)


def by_cell(release: Protected) -> dict[frozenset[tuple[str, str]], Any]:
    """Published values by the (variable, code) pairs of their cells, totals left out."""
    design = release.design
    columns = []
    for axis, (index, codes) in zip(design.axes, design.published_codes(), strict=True):
        pairs = [None if c in axis.total_codes else (axis.name, c) for c in codes]
        columns.append([pairs[k] for k in index.tolist()])
    names = (frozenset(p for p in row if p is not None) for row in zip(*columns, strict=True))
    return dict(zip(names, release.z.tolist(), strict=True))


def chi_square(drawn: Array, support: Array, probabilities: Array) -> tuple[float, int]:
    """Pearson's statistic of draws against a law, and its degrees of freedom.

    Values that are expected less than five times are taken together. A value that the law does
    not allow makes the statistic infinite.
    """
    observed = np.array([np.count_nonzero(drawn == v) for v in support], dtype=float)
    possible = probabilities > 0
    if observed[possible].sum() < len(drawn):
        return math.inf, 1
    expected = len(drawn) * probabilities
    often = expected >= FEWEST_EXPECTED
    seen = np.append(observed[often], observed[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    if len(wanted) > 1 and wanted[-1] < FEWEST_EXPECTED:
        seen = np.append(seen[:-2], seen[-2:].sum())
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
    return float(((seen - wanted) ** 2 / wanted).sum()), len(wanted) - 1


def chi_square_p(statistic: float, degrees: int) -> float:
    """Probability of a statistic at least as large when the law holds."""
    from scipy.stats import chi2

    return 1.0 if degrees == 0 and statistic < math.inf else float(chi2.sf(statistic, degrees))
