"""From records to a protected inner table; it touches records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.serve.data.inner import InnerTable

if TYPE_CHECKING:
    from discreet.design.table import Table
    from discreet.microdata.microdata import Microdata
    from discreet.recipe import Recipe


def inner_table(recipe: Recipe, data: Microdata | Table, made_from: str = "") -> InnerTable:
    """The protected inner table of a recipe."""
    release = recipe.run(data)
    zeros = getattr(data, "structural_zeros", ())
    return InnerTable.of(release, data.data_set.edition, zeros, made_from)
