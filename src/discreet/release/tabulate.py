"""Further public tables, sums and records: from released inner cells, or margins that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csc_array

from discreet.arrays import Array, Index, Mask
from discreet.columns import Column
from discreet.design.base import Design
from discreet.design.codes import canonical
from discreet.design.formula import Margins, margin_name, parse, resolve
from discreet.design.inner import ListedTable
from discreet.design.parts import DesignPart
from discreet.design.structured import StructuredDesign
from discreet.errors import (
    ConfidentialError,
    DesignError,
    ParameterError,
    UnknownNameError,
    check_known,
)
from discreet.frames import Frame
from discreet.solve.linear.elimination import find_spanned
from discreet.solve.linear.unknowns import Unknowns, combination, unknowns
from discreet.suppress.sentences import SHOWN_IS_TRUE, shown_is_true
from discreet.tables.protected import CellStatus, Protected, PublicTable
from discreet.tables.statement import Step

AnyPublic = TypeVar("AnyPublic", bound=PublicTable)


def tabulate(release: AnyPublic, margins: Margins) -> AnyPublic:
    """A public table of other margins of the released inner cells; see `Release.tabulate`.

    Promise: tables of one release agree with each other, and a further table tells nothing that
    the released inner cells do not. Of a release with decimals in place of suppressed cells, a cell
    is true where cells that are shown give it, and a decimal elsewhere. Without inner cells the
    margins must be among the published ones, and their values are those of the release.
    """
    listed = listed_records(release)
    whole = release.design.require_variables("variables to tabulate by")
    if release.y is None and listed is None:
        return _tabulate_published(release, whole, margins)
    design = whole.with_margins(margins)
    step = Step("tabulate", {"margins": [margin_name(term) for term in parse(margins)]})
    z = listed.aggregate(design) if listed else design.aggregate(np.asarray(release.y))
    if not has_true_cells(release):
        statement = release.statement.then(step, changes_values=False)
        made = release.with_parts(design=design, z=z, precision=None, statement=statement)
        return made if listed else take_part(made, margins)
    system = _system(release)
    is_true = find_spanned(system.equations, system.restrict(design.matrix()))
    status = np.where(is_true, CellStatus.published, CellStatus.decimal).astype(np.int8)
    said = replace(step, sentences=(shown_is_true(has_decimals=True),))
    made = release.with_parts(
        design=design,
        z=np.where(is_true, np.rint(z), z) if shows_whole_numbers(release) else z,
        precision=None,
        status=status,
        # Intervals and small counts were spoken of for the cells of the first table.
        statement=release.statement.then(said, changes_values=True),
    )
    return take_part(made, margins)


def _tabulate_published(
    release: AnyPublic, design: StructuredDesign, margins: Margins
) -> AnyPublic:
    """A table of margins that are published; others cannot be made without inner cells."""
    wanted = resolve(design.axes, parse(margins))  # unknown names are another error
    published = {block.levels for block in design.blocks}
    if not all(block.levels in published for block in wanted):
        raise DesignError(
            "inner cells are not part of this release, so it gives no tables but those of its "
            f"margins ({', '.join(margin_name(term) for term in design.terms)}). Protect with a "
            "method that releases inner cells (Safe, SmallCountRounding with force_inner=True), or "
            "fit the release first."
        )
    step = Step("tabulate", {"margins": [margin_name(term) for term in parse(margins)]})
    part = take_part(release, margins)
    return replace(part, statement=release.statement.then(step, changes_values=False))


def take_part(release: AnyPublic, margins: Margins, name: str = "") -> AnyPublic:
    """Some published margins of a release over their own variables: its values, nothing drawn.

    Inner cells are summed over the variables that are gone, where they are held as an array.

    Args:
      release: The release.
      margins: Margins that it publishes.
      name: The name of the table that they are, where the release knows it by one.
    """
    design = release.design.require_variables("variables to take a table by")
    part = design.part(margins)
    taken: dict[str, Any] = {
        field: None if (values := getattr(release, field)) is None else values[part.cells]
        for field in ("status", "precision", "quality")
    }
    y = _sum_over_others(design, part, release.y) if isinstance(release.y, np.ndarray) else None
    z = release.z[part.cells]
    if hasattr(release, "table_name"):  # a trial is no table of a release
        taken["table_name"] = name
    return replace(release, design=part.design, z=z, y=y, fit_result=None, **taken)


def _sum_over_others(design: StructuredDesign, part: DesignPart, y: Array) -> Array:
    """Inner cells of a part: those of the whole, summed over the variables that are gone."""
    if len(part.axes) == len(design.axes):
        return y
    if design.product_form is not None:
        gone = tuple(a for a in range(len(design.axes)) if a not in part.axes)
        return np.asarray(y.reshape(design.shape).sum(axis=gone)).reshape(-1)
    codes = [design.inner_codes()[a].astype(np.int64) for a in part.axes]
    flat = np.ravel_multi_index(codes, part.design.shape) if codes else np.zeros(len(y), np.int64)
    sums = np.zeros(part.design.n_inner, dtype=y.dtype)
    np.add.at(sums, part.design.inner_at(flat), y)
    return sums


def listed_records(release: Protected) -> ListedTable | None:
    """The records that a fit of margins drew, where the crossing is too large for inner cells."""
    cells = getattr(release.fit_result, "cells", None)
    return cells if release.y is None and isinstance(cells, ListedTable) else None


CellsLike = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def exact_sum(release: Protected, cells: CellsLike) -> float | None:
    """The value of a sum where published cells give it; see `Release.exact_sum`."""
    target = csc_array(_members(release.design, cells).astype(np.int64)[:, None])
    if not has_true_cells(release):
        raise DesignError(
            "values of this release were changed, so that no sum of them is known to be true. "
            "Further tables of released inner cells are made by `release.tabulate`."
        )
    system = _system(release)
    open_part = system.restrict(target)
    if not find_spanned(system.equations, open_part)[0]:
        return None
    value = float(system.constant(target)[0])
    if open_part.nnz:  # equations with several unknown cells give the rest
        wanted = open_part.toarray().ravel().astype(np.float64)
        value += float(combination(system.equations, wanted) @ system.right)
    return float(round(value)) if shows_whole_numbers(release) else value


def has_true_cells(release: Protected) -> bool:
    """Whether all cells of a release have their true values, but those that are not shown."""
    return release.statement.says(SHOWN_IS_TRUE)


def shows_whole_numbers(release: Protected) -> bool:
    """Whether all cells that are shown are whole numbers, as counts are."""
    values = release.z[_shown_cells(release)]
    return bool((values == np.rint(values)).all())


def _shown_cells(release: Protected) -> Index:
    return np.flatnonzero(~(release.hidden | release.replaced))


def _system(release: Protected) -> Unknowns:
    """What shown cells leave open of the inner cells."""
    shown = _shown_cells(release)
    columns = release.design.matrix().tocsc()[:, shown]
    return unknowns(columns, release.z[shown].astype(np.float64))


def _members(design: Design, cells: CellsLike) -> Mask:
    """The inner cells of a sum."""
    listed = [cells] if isinstance(cells, Mapping) else cells
    if not isinstance(listed, Sequence) or not all(isinstance(c, Mapping) for c in listed):
        raise ParameterError(
            'a sum is given by the codes of its cells, such as {"sex": "f"} or a list of such, '
            f"got {cells!r}."
        )
    found = np.zeros(design.n_inner, dtype=np.int64)
    for cell in listed:
        found += _inside(design, cell)
    if found.max(initial=0) > 1:
        raise DesignError("the cells of the sum overlap; an inner cell would count twice.")
    return found.astype(bool)


def _inside(design: Design, cell: Mapping[str, Any]) -> Mask:
    """The inner cells with given codes; a variable may have several."""
    inside = np.ones(design.n_inner, dtype=bool)
    by_name = {axis.name: k for k, axis in enumerate(design.axes)}
    codes = design.inner_codes()
    for name, given in cell.items():
        check_known("variable", [name], by_name)
        axis = design.axes[by_name[name]]
        leaves = axis.node_leaves
        wanted = given if isinstance(given, (list, tuple, set)) else [given]
        chosen = np.zeros(len(axis), dtype=bool)
        for code in map(canonical, wanted):
            if code not in leaves and code not in axis.total_codes:
                raise UnknownNameError(f"code of {name}", code, leaves)
            chosen[leaves[code] if code in leaves else slice(None)] = True
        inside &= chosen[codes[by_name[name]]]
    return inside


_LARGEST = 500_000_000  # records; a fit that went wrong would fill the memory with them


def to_microdata(release: PublicTable) -> Frame:
    """One row for each person in the released inner cells: its codes, nothing else.

    Cost: memory of the records; `Release.inner_to_frame` is the same with a count column.
    """
    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release becomes records; protect the table first.")
    listed = listed_records(release)
    if listed is not None:
        codes = zip(release.design.axes, listed.records.T, strict=True)
        return Frame({axis.name: Column.of_codes(leaf, axis.leaves) for axis, leaf in codes})
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
            f"there would be {counts.sum():,} records; use `inner_to_frame`, which has a count."
        )
    some = np.flatnonzero(counts)
    return Frame(release.design.inner_label_columns(np.repeat(some, counts[some])))
