"""Whether two things are the same input: digests of tables, methods, fitters and measures."""

from __future__ import annotations

from typing import Any

from discreet import digests
from discreet.design.structured import StructuredDesign
from discreet.design.table import Table

_SHOWN = 16


def digest(*things: Any) -> str:
    """A short hash of the contents; equal contents have equal hashes in every process."""
    return digests.digest(*things).hex()[:_SHOWN]


def table_digest(table: Table) -> str:
    """A hash of the design and the true values; keys are redrawn and do not count."""
    values = [table.published, *([] if table.inner is None else [table.inner])]
    numbers = [(v.count, v.weight, v.weight_squared) for v in values]
    return digest(_design(table), numbers, table.convention.name, table.convention.modulus)


def _design(table: Table) -> Any:
    design = table.design
    if isinstance(design, StructuredDesign):
        from discreet.design.storage import design_to_json

        return [design_to_json(design), design.inner_codes()]
    X = design.matrix()
    return [X.shape, X.indptr, X.indices]
