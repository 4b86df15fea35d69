"""One order for every table: variables by name, categories and margins by their codes.

Methods that draw for a whole table work on it in this order, so that `region*sex` and `sex*region`
give the same release.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from discreet.arrays import Array, Index, Whole
from discreet.design.axis import LEAVES, OUTSIDE, Axis, Level
from discreet.design.base import Design
from discreet.design.formula import Term
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.design.structured import StructuredDesign
from discreet.frames import fresh_name
from discreet.tables.protected import Protected
from discreet.tables.truth import TrueTable

AnyProtected = TypeVar("AnyProtected", bound=Protected)


@dataclass(frozen=True, eq=False)
class Arrangement:
    """A design with its cells in another order."""

    design: StructuredDesign  # the design in the new order
    published: Index  # for each published cell its place in the old order
    inner: Index  # for each inner cell its place in the old order


def canonical_order(design: Design) -> Arrangement | None:
    """The canonical order of a design; cells of a matrix have no names, so they stay in theirs."""
    structured = design.over_variables
    if structured is None:
        return None
    axes = [_canonical_axis(axis) for axis in sorted(design.axes, key=lambda axis: axis.name)]
    return arrange(structured, axes, _canonical_terms(structured, axes))


def canonical_table(table: TrueTable, order: Arrangement | None = None) -> TrueTable:
    """The table in canonical order, which is found where it is not given."""
    new, given = order or canonical_order(table.design), table.contributions
    if new is None:
        return table
    return replace(
        table,
        design=new.design,
        published=table.published.rearrange(lambda values: values[new.published]),
        inner=table.inner and table.inner.rearrange(lambda values: values[new.inner]),
        contributions=given and given.take(new.published, new.inner),
    )


def as_requested(protected: AnyProtected, design: Design) -> AnyProtected:
    """Protected values in the order of the design that was asked for."""
    given = protected.design.over_variables
    if given is None or design.over_variables is None:
        return protected
    new = arrange(given, design.axes, design.terms)
    moved: dict[str, Any] = {"design": new.design, "z": protected.z[new.published]}
    for name in ("status", "precision", "quality"):
        values = getattr(protected, name)
        moved[name] = None if values is None else values[new.published]
    moved["y"] = None if protected.y is None else protected.y[new.inner]
    return replace(protected, **moved)


def table_digest(table: TrueTable) -> bytes:
    """A hash of the variables, their codes and the counts of a table in canonical order.

    Only non-empty inner cells count, so that neither the formula nor the way empty cells are held
    matters; where inner cells are not known, the published ones take their place.
    """
    found = hashlib.sha256()
    for axis in table.design.axes:
        for text in (axis.name, *axis.leaves):
            found.update(len(text.encode()).to_bytes(8, "big") + text.encode())
        found.update(b"\0" * 8)
    if table.inner is None:
        coded = table.design.published_codes() if table.design.axes else []
        ids: list[Array] = [_node_ids(*codes)[0] for codes in coded]
        counts = table.z
    else:
        some = np.flatnonzero(table.inner.count)
        ids = [codes[some] for codes in table.design.inner_codes()]
        counts = table.inner.count[some]
    for column in (*ids, counts):
        found.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    if not table.design.axes:
        found.update(table.z.astype("<i8").tobytes())
    if table.contributions is not None:
        found.update(table.contributions.value.encode() + b"\0")
        found.update(table.contributions.sum.astype("<f8").tobytes())
    return found.digest()


def arrange(design: StructuredDesign, axes: Sequence[Axis], terms: Sequence[Term]) -> Arrangement:
    """The same cells over the same variables, with axes and margins written in another order."""
    by_name = {axis.name: a for a, axis in enumerate(design.axes)}
    order = [by_name[axis.name] for axis in axes]
    to_new = [
        np.array([axis.leaf_position[code] for code in design.axes[a].leaves], dtype=np.intp)
        for axis, a in zip(axes, order, strict=True)
    ]
    if design.product_form is None:
        codes = [to_new[k][design.inner_codes()[a]] for k, a in enumerate(order)]
        inner = np.lexsort(codes[::-1]) if codes else np.zeros(1, dtype=np.intp)
        listed = [column[inner] for column in codes]
        new: StructuredDesign = SparseDesign(axes, terms, listed, occurring=design.is_confidential)
    else:
        places = np.arange(math.prod(design.shape)).reshape(design.shape).transpose(order)
        for k, positions in enumerate(to_new):
            places = places.take(np.argsort(positions), axis=k)
        inner, new = places.ravel(), ProductDesign(axes, terms)
    return Arrangement(new, _published_places(new, design, by_name), inner)


def _published_places(
    new: StructuredDesign, old: StructuredDesign, by_name: dict[str, int]
) -> Index:
    """For each published cell of the new design its place in the old one, by its codes."""
    ids_new, ids_old = [], []
    codes_new, codes_old = new.published_codes(), old.published_codes()
    for k, axis in enumerate(new.axes):
        here, numbers = _node_ids(*codes_new[k])
        there, others = _node_ids(*codes_old[by_name[axis.name]])
        rank = {code: i for i, code in enumerate(numbers)}
        ids_new.append(here)
        ids_old.append(np.array([rank[code] for code in others], dtype=np.int64)[there])
    if not ids_new:
        return np.arange(new.n_published)
    places = np.empty(new.n_published, dtype=np.intp)
    places[np.lexsort(ids_new)] = np.lexsort(ids_old)
    return places


def _node_ids(index: Array, codes: Sequence[str]) -> tuple[Whole, list[str]]:
    """A number for the code of each published cell along one axis, and the codes in their order."""
    known = sorted(set(codes))
    rank = {code: i for i, code in enumerate(known)}
    return np.array([rank[code] for code in codes], dtype=np.int64)[index], known


def _canonical_axis(axis: Axis) -> Axis:
    """The axis with leaves and levels sorted by their codes; levels keep names that tell them."""
    order = sorted(range(len(axis)), key=lambda i: axis.leaves[i])
    taken, levels = {f"{axis.name}[{LEAVES}]"}, []
    for level in axis.levels:
        name = fresh_name(level.name, taken)  # a name of two levels would make terms ambiguous
        taken.add(name)
        by_code = sorted(range(len(level)), key=lambda k: level.codes[k])
        rank = np.append(np.argsort(by_code), OUTSIDE).astype(np.int32)
        codes = tuple(level.codes[k] for k in by_code)
        levels.append(Level(name, codes, rank[level.group[order]]))
    levels.sort(key=lambda level: (len(level), level.codes))
    return replace(axis, leaves=tuple(axis.leaves[i] for i in order), levels=tuple(levels))


def _canonical_terms(design: StructuredDesign, axes: Sequence[Axis]) -> list[Term]:
    """One term for each block, in an order that does not depend on how they were written."""
    known = {
        axis.name: {level.codes: (k, axis.short_name(level)) for k, level in enumerate(axis.levels)}
        for axis in axes
    }
    terms: dict[tuple[tuple[str, int], ...], Term] = {}
    for block in design.blocks:
        found = sorted(
            (axis.name, *known[axis.name].get(tuple(sorted(level.codes)), (-1, LEAVES)))
            for axis, level in zip(design.axes, block.levels, strict=True)
            if level is not None
        )
        place = tuple((name, k) for name, k, _ in found)
        terms[place] = tuple(f"{name}[{short}]" for name, _, short in found)
    return [terms[place] for place in sorted(terms, key=lambda place: (len(place), place))]


def margin_codes(design: Design) -> list[list[tuple[str, ...] | None]]:
    """What each margin shows, by its codes: whatever its levels are called."""
    return [[None if level is None else level.codes for level in b.levels] for b in design.blocks]
