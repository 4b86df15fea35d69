"""Records from released inner cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import ConfidentialError, DesignError
from discreet.tables.public import PublicTable

if TYPE_CHECKING:
    import pyarrow as pa

_LARGEST = 500_000_000


def to_microdata(release: PublicTable) -> pa.Table:
    """One row for each person in the released inner cells: its codes, nothing else.

    Cost: memory of the records; `Release.inner_to_arrow` is the same with a count column.
    """
    import pyarrow as pa

    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release becomes records; protect the table first.")
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit and round them first.")
    y = np.asarray(release.y)
    if y.dtype.kind == "f" and (y != np.rint(y)).any():
        raise DesignError("inner cells are not whole numbers; round them first (`release.round`).")
    counts = np.rint(y).astype(np.int64)
    if (counts < 0).any():
        raise DesignError("inner cells are negative; fit them without negative values first.")
    if counts.sum() > _LARGEST:
        raise DesignError(
            f"there would be {counts.sum():,} records; use `inner_to_arrow`, which has a count."
        )
    some = np.flatnonzero(counts)
    return pa.table(release.design.inner_label_columns(np.repeat(some, counts[some])))
