"""Sums of cells that a user defines: published cells give them, or they cannot be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Index, Mask
from discreet.design.base import Design
from discreet.design.codes import canonical
from discreet.errors import DesignError, ParameterError, UnknownNameError
from discreet.protect.suppress.sentences import SHOWN_IS_TRUE
from discreet.solve.linear.elimination import spanned
from discreet.solve.linear.projection import combination
from discreet.solve.linear.unknowns import Unknowns, unknowns
from discreet.tables.protected import Protected

Cells = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def published_sum(release: Protected, cells: Cells) -> float | None:
    """The value of a sum where published cells give it; see `Release.publish`."""
    from scipy.sparse import csc_array

    target = csc_array(_members(release.design, cells).astype(np.int64)[:, None])
    if not has_true_cells(release):
        raise DesignError(
            "values of this release were changed, so that no sum of them is known to be true. "
            "Further tables of released inner cells are made by `release.tabulate`."
        )
    system = _system(release)
    open_part = system.restrict(target)
    if not spanned(system.equations, open_part)[0]:
        return None
    value = float(system.constant(target)[0]) + _open_value(system, open_part)
    return float(round(value)) if shows_whole_numbers(release) else value


def has_true_cells(release: Protected) -> bool:
    """Whether all cells of a release have their true values, but those that are not shown."""
    return release.statement.says(SHOWN_IS_TRUE)


def follow_from_shown(release: Protected, sums: Any) -> Mask:
    """Which sums of inner cells, given as sparse columns, are combinations of shown cells."""
    system = _system(release)
    return spanned(system.equations, system.restrict(sums))


def shows_whole_numbers(release: Protected) -> bool:
    """Whether all cells that are shown are whole numbers, as counts are."""
    values = release.z[_shown(release)]
    return bool((values == np.rint(values)).all())


def _shown(release: Protected) -> Index:
    return np.flatnonzero(~(release.hidden | release.replaced))


def _system(release: Protected) -> Unknowns:
    """What shown cells leave open of the inner cells."""
    shown = _shown(release)
    columns = release.design.matrix().tocsc()[:, shown]
    return unknowns(columns, release.z[shown].astype(np.float64))


def _open_value(system: Unknowns, open_part: Any) -> float:
    """The part of the sum that equations with several unknown cells give."""
    if not open_part.nnz:
        return 0.0
    target = open_part.toarray().ravel().astype(np.float64)
    return float(combination(system.equations, target) @ system.right)


def _members(design: Design, cells: Cells) -> Mask:
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
        if name not in by_name:
            raise UnknownNameError("variable", name, by_name)
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
