"""Contributions in a confidential file: columns beside the counts, and a few words about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array
from discreet.frames import value_names
from discreet.tables.magnitude import (
    ABSOLUTE,
    CONTRIBUTORS,
    LARGEST_OF,
    NOBODY,
    OWNER_OF,
    CellContributions,
    Contributions,
    sum_column,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.design.base import Design

Stored = tuple["pa.Table", Array]
"""Rows of a file, and the place of each."""


def contributions_header(given: Contributions | None) -> dict[str, Any] | None:
    """What a file says of contributions beside their columns."""
    if given is None:
        return None
    return {
        "value": given.value,
        "largest": given.largest.shape[1],
        "is_weighted": given.is_weighted,
        "may_be_negative": given.may_be_negative,
    }


def read_contributions(
    header: dict[str, Any], design: Design, published: pa.Table, inner: Stored | None
) -> Contributions:
    """Contributions from the rows of a file.

    Args:
      header: What the file says of them.
      design: The table's design.
      published: The rows of the published cells, in the design's order.
      inner: The rows of inner cells that are not empty, with their positions.
    """
    stored: list[Stored] = [(published, np.arange(design.n_published))]
    stored += [] if inner is None else [inner]
    sizes = (design.n_published, design.n_inner)
    names = _names(header, [axis.name for axis in design.axes])
    owners = _all_owners([rows for rows, _ in stored], names)
    cells = [
        _cells(rows, where, n, names, owners)
        for (rows, where), n in zip(stored, sizes, strict=False)
    ]
    return Contributions(
        header["value"],
        cells[0],
        cells[1] if inner is not None else None,
        owners,
        is_weighted=header["is_weighted"],
        may_be_negative=header["may_be_negative"],
    )


def _names(header: dict[str, Any], variables: list[str]) -> dict[str, Any]:
    """The columns of the file by what they hold."""
    largest = range(1, header["largest"] + 1)
    wished = [sum_column(header["value"]), CONTRIBUTORS, ABSOLUTE]
    wished += [f"{kind}{place}" for kind in (LARGEST_OF, OWNER_OF) for place in largest]
    found = value_names(variables, wished)
    return {
        "sum": found[sum_column(header["value"])],
        "count": found[CONTRIBUTORS],
        "absolute": found[ABSOLUTE] if header["may_be_negative"] else None,
        "largest": [found[f"{LARGEST_OF}{place}"] for place in largest],
        "owner": [found[f"{OWNER_OF}{place}"] for place in largest],
    }


def _all_owners(parts: list[pa.Table], names: dict[str, Any]) -> tuple[str, ...]:
    found: set[str] = set()
    for rows in parts:
        for name in names["owner"]:
            found.update(rows.column(name).unique().drop_null().to_pylist())
    return tuple(sorted(found))


def _cells(
    rows: pa.Table, where: Array, n: int, names: dict[str, Any], owners: tuple[str, ...]
) -> CellContributions:
    """Contributions in their places; cells without a row have none."""
    place = {owner: i for i, owner in enumerate(owners)} | {None: NOBODY}
    cells = CellContributions.none(n, len(names["largest"]))
    cells.sum[where] = rows.column(names["sum"]).to_numpy()
    cells.absolute[where] = rows.column(names["absolute"] or names["sum"]).to_numpy()
    cells.count[where] = rows.column(names["count"]).to_numpy()
    for k, (size, owner) in enumerate(zip(names["largest"], names["owner"], strict=True)):
        cells.largest[where, k] = rows.column(size).to_numpy()
        cells.owner[where, k] = [place[who] for who in rows.column(owner).to_pylist()]
    return cells
