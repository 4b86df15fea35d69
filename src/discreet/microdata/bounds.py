"""What one unit can contribute to a table, checked when it is said."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from discreet.errors import ParameterError
from discreet.tables.data_set import Bounds


def changed_bounds(
    bounds: Bounds, weight: float | None, person: str | None, max_records: int | None
) -> Bounds:
    """Bounds with what is given; what is left out stays as it is."""
    given = {"weight": weight, "person": person, "max_records": max_records}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(bounds, **changes)


def check_bounds(bounds: Bounds, weight: str | None, id: str | None) -> None:
    """Refuse bounds that mean nothing for records with these columns of weights and ids."""
    if bounds.weight is not None and not 0 < bounds.weight < math.inf:
        raise ParameterError(f"weight_bound must be a number above 0, got {bounds.weight!r}.")
    if bounds.weight is not None and weight is None:
        raise ParameterError("weight_bound= needs weights: name their column with weight=.")
    if not isinstance(bounds.max_records, int) or bounds.max_records < 1:
        raise ParameterError(
            f"max_records must be a whole number of at least 1, got {bounds.max_records!r}."
        )
    if bounds.person is None:
        if bounds.max_records > 1:
            raise ParameterError("max_records= needs persons: name their column with person=.")
    elif id is None or id == bounds.person:
        raise ParameterError(
            "person= needs ids that tell the records of one person apart, so that the same ones "
            "are counted every time: name another column with id=."
        )
