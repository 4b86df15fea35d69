"""Further public tables, summed from released inner cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from discreet.arrays import Array
from discreet.design.base import Design
from discreet.design.formula import Margins, parse, shown
from discreet.errors import DesignError
from discreet.protect.suppress.sentences import shown_is_true
from discreet.release.sums import follow_from_shown, has_true_cells, shows_whole_numbers
from discreet.tables.protected import CellStatus
from discreet.tables.public import PublicTable
from discreet.tables.statement import Step

AnyPublic = TypeVar("AnyPublic", bound=PublicTable)


def tabulate(release: AnyPublic, margins: Margins) -> AnyPublic:
    """A public table of other margins of the released inner cells; see `Release.tabulate`.

    Promise: tables of one release agree with each other, and a further table tells nothing that
    the released inner cells do not. Of a release with decimals in place of suppressed cells, a cell
    is true where cells that are shown give it, and a decimal elsewhere.
    """
    if release.y is None:
        raise DesignError(
            "inner cells are not part of this release, so it gives no further tables. Protect "
            "with a method that releases them (Safe, SmallCountRounding with force_inner=True), or "
            "fit the release first."
        )
    design = release.design.structured("variables to tabulate by").with_margins(margins)
    terms = [shown(term) for term in parse(margins)]
    step = Step("tabulate", {"margins": terms})
    z = design.aggregate(np.asarray(release.y))
    if has_true_cells(release):
        return _with_decimals(release, design, z, step)
    return release.with_parts(
        design=design,
        z=z,
        precision=None,
        statement=release.statement.then(step, changes_values=False),
    )


def _with_decimals(release: AnyPublic, design: Design, z: Array, step: Step) -> AnyPublic:
    """A further table in which cells are true where shown cells give them, else decimals.

    What was said of intervals and small counts was said of the cells of the first table.
    """
    is_true = follow_from_shown(release, design.matrix())
    status = np.where(is_true, CellStatus.published, CellStatus.decimal).astype(np.int8)
    said = replace(step, sentences=(shown_is_true(has_decimals=True),))
    return release.with_parts(
        design=design,
        z=np.where(is_true, np.rint(z), z) if shows_whole_numbers(release) else z,
        precision=None,
        status=status,
        statement=release.statement.then(said, changes_values=True),
    )
