"""Cells and clusters that are too small, merged until none is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from discreet.arrays import Mask, Whole
from discreet.frames import fresh_name
from discreet.synthesize.model.columns import Column, Factor
from discreet.synthesize.safety.sets import Unsafe

OTHER = "(other)"


def merged_columns(columns: Mapping[str, Column], found: list[Unsafe]) -> dict[str, Column] | None:
    """Columns in which levels of small cells are one level, `(other)`; `None` if none can be.

    Of the factors whose cell is too small, the one with the most levels gives way. A single small
    level takes the rarest of the others with it.
    """
    pooled: dict[str, set[int]] = {}
    for unsafe in found:
        factors = {n: c for n in unsafe.crossing if isinstance(c := columns[n], Factor)}
        if factors:
            name = max(factors, key=lambda n: (len(factors[n].levels), n))
            levels = np.unique(factors[name].codes[unsafe.rows]).tolist()
            pooled.setdefault(name, set()).update(levels)
    changed = {
        name: _pooled_levels(column, levels)
        for name, levels in pooled.items()
        if isinstance(column := columns[name], Factor) and len(column.levels) > 1
    }
    return {**columns, **changed} if changed else None


def merged_labels(labels: Whole, within: Whole, find_small: Callable[[Whole], Whole]) -> Whole:
    """Labels of which the small ones are one, as often as needed.

    Small ones that stay alone, or small together, take the smallest of the others with them.
    Labels are numbered from 0, and merged `within` sets only.
    """
    while len(small := find_small(labels)):
        before = len(np.unique(labels))
        is_small = np.isin(labels, small)
        for part in np.unique(within[is_small]):
            here = within == part
            labels = _pooled_labels(labels, here, is_small & here)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if len(np.unique(labels)) == before:
            break
    return labels


def _pooled_levels(column: Factor, levels: set[int]) -> Factor:
    if len(levels) == 1:
        sizes = np.bincount(column.codes, minlength=len(column.levels)).astype(float)
        sizes[list(levels)] = np.inf
        levels = {*levels, int(np.argmin(sizes))}
    kept = [k for k in range(len(column.levels)) if k not in levels]
    names = [column.levels[k] for k in kept]
    earlier = {column.levels[k] for k in levels}
    pool = OTHER if OTHER in earlier else fresh_name(OTHER, names)
    place = np.full(len(column.levels), len(kept))
    place[kept] = np.arange(len(kept))
    return Factor((*names, pool), place[column.codes])


def _pooled_labels(labels: Whole, here: Mask, small: Mask) -> Whole:
    """Labels with the small ones of one set made one."""
    chosen = np.unique(labels[small])
    others, sizes = np.unique(labels[here & ~small], return_counts=True)
    joined = labels.copy()
    if len(chosen) == 1 and len(others):
        chosen = np.append(chosen, others[np.argmin(sizes)])
    joined[here & np.isin(labels, chosen)] = chosen[0]
    return joined
