"""Whether two things are the same input: digests of tables, methods, fitters and measures."""

from __future__ import annotations

from typing import Any

from discreet import digests
from discreet.errors import ParameterError
from discreet.facade.table import Table
from discreet.tables.storage import design_to_json

_SHOWN = 16


def digest(*things: Any) -> str:
    """A short hash of the contents; equal contents have equal hashes in every process."""
    try:
        return digests.digest(*things).hex()[:_SHOWN]
    except ParameterError as error:
        raise ParameterError(f"{error} Or leave out resume=.") from None


def table_digest(table: Table) -> str:
    """A hash of the design, the true values and their bounds; keys are redrawn and do not count."""
    values = [table.published, *([] if table.inner is None else [table.inner])]
    numbers = [(v.count, v.weight, v.weight_squared) for v in values]
    rule, bounds = table.convention, table.data_set.bounds
    return digest(_design(table), numbers, rule.name, rule.modulus, bounds)


def _design(table: Table) -> Any:
    design = table.design
    if design.over_variables is not None:
        return [design_to_json(design), design.inner_codes()]
    X = design.matrix()
    return [X.shape, X.indptr, X.indices]
