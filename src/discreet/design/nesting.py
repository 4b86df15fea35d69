"""Hierarchies found in data: which columns refine which."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Index, Mask, Whole32
from discreet.design.codes import canonical_array, natural_order
from discreet.design.formats.tables import chosen_columns, distinct_rows, tree_of_rows
from discreet.frames import open_frame

if TYPE_CHECKING:
    from discreet.design.formats.tree import CodeTree
    from discreet.design.hierarchy import Hierarchy

LARGEST = 100_000
"""Columns with more categories are taken for identifiers or measurements."""

_NEARLY = 0.05  # share of the codes that may stand against a nesting that is worth a note


@dataclass(frozen=True)
class Nesting(Mapping[str, "list[Hierarchy]"]):
    """Finest variable to its hierarchies; printed, it is a report.

    Args:
        chains: Finest variable to its chains of columns, each from coarse to fine.
        trees: The hierarchy of each chain.
        notes: What was left out or only nearly nests, one sentence each.
    """

    chains: Mapping[str, list[tuple[str, ...]]]
    trees: Mapping[str, list[Hierarchy]]
    notes: tuple[str, ...] = ()

    def __getitem__(self, variable: str) -> list[Hierarchy]:
        return self.trees[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self.trees)

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def report(self) -> str:
        """The chains found, coarse to fine, and the notes."""
        lines = []
        for variable, chains in self.chains.items():
            for chain, tree in zip(chains, self.trees[variable], strict=True):
                sizes = [str(len(tree.codes_at(depth))) for depth in range(1, tree.depth + 1)]
                lines.append(f"{' > '.join(chain)}  ({' > '.join(sizes)} codes)")
        return "\n".join([*(lines or ["no column refines another"]), *self.notes])

    def __str__(self) -> str:
        return self.report


def find_nesting(
    frame: object,
    columns: Sequence[str] | None = None,
    root: str = "Total",
    *,
    of_tree: Callable[[CodeTree], Hierarchy],
) -> Nesting:
    """Hierarchies that columns form among themselves.

    Column f refines column c when every code of f lies in one code of c only (missing values are
    a code of their own). A variable that no other column refines gets a hierarchy for each longest
    chain of ever coarser columns above it: several, where the chains branch (regions beside EU and
    non-EU). Columns of equal partition count once, by the first of them. A coarser code that some
    other column of the variable has too is shown as ``column=code``. Codes stand in natural order.

    Args:
        frame: A frame of any library, eager or lazy, or a dict of columns.
        columns: Columns to look at; by default all but floats, times and nested values, and none
            with more than `LARGEST` categories.
        root: Code of the total.
        of_tree: Makes a hierarchy of a tree.

    Cost: one pass for the distinct combinations of the columns, then k² comparisons of arrays of
    that length for k columns.
    """
    notes: list[str] = []
    names = _usable_columns(frame, columns, notes)
    partitions = _partitions(distinct_rows(frame, names), names, notes) if names else {}
    coarser = _refinement(partitions, notes)
    refined = {coarse for above in coarser.values() for coarse in above}
    finest = [name for name, above in coarser.items() if above and name not in refined]
    chains = {name: _chains(name, coarser) for name in finest}
    hierarchies = {}
    for name in finest:
        shown = _distinct_codes(chains[name], partitions)
        trees = (_tree(chain, partitions, shown, root) for chain in chains[name])
        hierarchies[name] = [of_tree(tree) for tree in trees]
    return Nesting(chains, hierarchies, tuple(notes))


@dataclass(frozen=True)
class _Partition:
    """A column: its codes in natural order and the code of each distinct row."""

    codes: list[str]
    group: Whole32

    @classmethod
    def of(cls, values: object) -> _Partition:
        codes, positions = canonical_array(values)
        ordered = natural_order(codes)
        rank = {code: position for position, code in enumerate(ordered)}
        new_position = np.array([rank[code] for code in codes], dtype=np.int32)
        return cls(ordered, new_position[positions])

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def example_row(self) -> Index:
        """A row of each code."""
        rows = np.empty(len(self), dtype=np.intp)
        rows[self.group] = np.arange(len(self.group))
        return rows

    def split_by(self, other: _Partition) -> Mask:
        """Rows that share a code here with a row of another code there."""
        seen: Mask = other.group != other.group[self.example_row][self.group]
        return seen


def _usable_columns(frame: object, columns: Sequence[str] | None, notes: list[str]) -> list[str]:
    """Columns of categories: named, or of a fitting type; and not too many categories."""
    import narwhals as nw

    names = list(columns) if columns is not None else _categorical_columns(frame, notes)
    if not names:
        return []
    counted = chosen_columns(frame, names).select(*(nw.col(name).n_unique() for name in names))
    if isinstance(counted, nw.LazyFrame):
        counted = counted.collect(backend="pyarrow")
    counts = {name: int(counted[name][0]) for name in names}
    for name, count in counts.items():
        if count > LARGEST:
            notes.append(f"{name} was left out: {count} categories are more than {LARGEST}")
        if count <= 1:
            notes.append(f"{name} was left out: it has one category only")
    return [name for name, count in counts.items() if 1 < count <= LARGEST]


def _categorical_columns(frame: object, notes: list[str]) -> list[str]:
    import narwhals as nw

    names = []
    for name, kind in open_frame(frame).collect_schema().items():
        is_measured = kind.is_float() or kind.is_nested()
        if is_measured or isinstance(kind, (nw.Datetime, nw.Duration, nw.Time, nw.Binary)):
            notes.append(f"{name} was left out: type {kind}; name it in columns= to look at it")
        else:
            names.append(name)
    return names


def _partitions(rows: Any, names: Sequence[str], notes: list[str]) -> dict[str, _Partition]:
    """Columns as partitions of the distinct rows, one for each different partition."""
    kept: dict[str, _Partition] = {}
    for name in names:
        partition = _Partition.of(rows[name].to_native())
        same_size = ((o, p) for o, p in kept.items() if len(p) == len(partition))
        twin = next((other for other, p in same_size if not p.split_by(partition).any()), None)
        if twin is None:
            kept[name] = partition
        else:
            notes.append(f"{name} was left out: it has the same categories as {twin}")
    return kept


def _refinement(partitions: Mapping[str, _Partition], notes: list[str]) -> dict[str, list[str]]:
    """Each column with all columns it refines."""
    coarser: dict[str, list[str]] = {name: [] for name in partitions}
    for fine, partition in partitions.items():
        for coarse, other in partitions.items():
            if len(other) >= len(partition):
                continue
            split = partition.split_by(other)
            if not split.any():
                coarser[fine].append(coarse)
            elif note := _near_miss(fine, coarse, partition, other, split):
                notes.append(note)
    return coarser


def _near_miss(
    fine: str, coarse: str, partition: _Partition, other: _Partition, split: Mask
) -> str | None:
    """A sentence when few codes stand against the nesting of two columns."""
    torn = np.unique(partition.group[split])
    if len(torn) > _NEARLY * len(partition):
        return None
    row = int(np.flatnonzero(split)[0])
    code = partition.codes[partition.group[row]]
    usual = other.codes[other.group[partition.example_row[partition.group[row]]]]
    return (
        f"{fine} nearly refines {coarse}: {len(torn)} of {len(partition)} codes lie in several, "
        f"such as {code!r} in {usual!r} and {other.codes[other.group[row]]!r}"
    )


def _chains(finest: str, coarser: Mapping[str, list[str]]) -> list[tuple[str, ...]]:
    """Longest chains, coarse to fine; a step goes to a next coarser column, none between."""
    chains: list[tuple[str, ...]] = []
    waiting: list[tuple[str, ...]] = [(finest,)]
    while waiting:
        chain = waiting.pop(0)
        above = coarser[chain[0]]
        beyond = {far for near in above for far in coarser[near]}
        steps = [(near, *chain) for near in above if near not in beyond]
        chains += [] if steps else [chain]
        waiting += steps
    return chains


def _distinct_codes(
    chains: Sequence[tuple[str, ...]], partitions: Mapping[str, _Partition]
) -> dict[str, list[str]]:
    """Codes of each column, told apart where another column of the chains has them too."""
    family, finest = dict.fromkeys(itertools.chain(*chains)), chains[0][-1]
    columns_with = Counter(code for name in family for code in partitions[name].codes)
    return {
        name: [
            f"{name}={code}" if name != finest and columns_with[code] > 1 else code
            for code in partitions[name].codes
        ]
        for name in family
    }


def _tree(
    chain: tuple[str, ...],
    partitions: Mapping[str, _Partition],
    shown: Mapping[str, list[str]],
    root: str,
) -> CodeTree:
    rows = partitions[chain[-1]].example_row
    groups = [partitions[name].group[rows] for name in chain]
    order = np.lexsort(groups[::-1])  # the coarsest column sorts first; lexsort's last key does
    columns = [
        [shown[name][position] for position in group[order].tolist()]
        for name, group in zip(chain, groups, strict=True)
    ]
    return tree_of_rows(zip(*columns, strict=True), chain, root)
