"""Hierarchies in tables: codes beside their parents, a column per level, or columns that nest."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Index, Mask, Whole32
from discreet.columns import Column
from discreet.design.codes import MISSING, canonical, canonical_array, factorise, natural_order
from discreet.design.formats.tree import CodeTree, depths_of, plant, reading_order
from discreet.errors import CodeError, ColumnError, ParameterError, check_known
from discreet.frames import Frame, is_lazy, is_pandas, read_frame

if TYPE_CHECKING:
    from discreet.design.hierarchy import Hierarchy

MOST_CATEGORIES = 100_000
"""Columns with more categories are taken for identifiers or measurements."""
_MEASURED = ("float", "timestamp", "duration", "time", "binary", "fixed", "array", "struct", "map")
_NEARLY = 0.05  # share of the codes that may stand against a nesting that is worth a note


def read_parent_child(
    table: object,
    child: str,
    parent: str,
    label: str | None,
    root: str | None,
    level: str | None = None,
) -> CodeTree:
    """A frame with a row per code, or pairs (code, parent); no parent means the top."""
    if isinstance(table, (list, tuple, Iterator)):
        return plant([_pair(entry) for entry in table], root)
    names = [name for name in (child, parent, label, level) if name is not None]
    columns = dict(zip(names, text_columns(table, names), strict=True))
    codes, nothing = columns[child], [None] * len(columns[child])
    tree = plant([(c or "", above) for c, above in zip(codes, columns[parent], strict=True)], root)
    labels, levels = (
        {
            c: text
            for c, text in zip(codes, columns.get(name or "", nothing), strict=True)
            if c and text
        }
        for name in (label, level)
    )
    return tree._replace(labels=labels, level_names=_level_names(tree, levels) if levels else ())


def _level_names(tree: CodeTree, levels: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the depths, from the names beside the codes; each depth has one.

    The level of a root that has no row is called by its code.
    """
    depths = depths_of(tree.root, reading_order(tree.root, tree.pairs))
    found: dict[int, str] = {}
    for code, depth in sorted(depths.items(), key=lambda item: item[1]):
        name = levels.get(code, tree.root if code == tree.root else None)
        if name is not None and found.setdefault(depth, name) != name:
            raise CodeError(
                f"codes {depth} steps below the total belong to levels {found[depth]!r} and "
                f"{name!r}, but each depth has one name; rename a column 'level' that means "
                "something else"
            )
    is_complete = set(found) == set(depths.values())
    return tuple(found[depth] for depth in sorted(found)) if is_complete else ()


def _pair(entry: Sequence[object]) -> tuple[str, str | None]:
    try:
        code, parent = entry
    except (TypeError, ValueError):
        raise ParameterError(f"expected pairs (code, parent), got {entry!r:.60}") from None
    above = canonical(parent)
    is_top = not above.strip() or (above == MISSING and parent != MISSING)
    return canonical(code), None if is_top else above


def write_parent_child(tree: CodeTree) -> Any:
    """A frame of child and parent, with labels and levels if there are any; root first."""
    root, parents, labels, names = tree.root, dict(tree.pairs), tree.labels, tree.level_names
    columns: dict[str, list[str | None]] = {
        "child": [root, *parents],
        "parent": [None, *parents.values()],
    }
    if labels:
        columns["label"] = [labels.get(code or "") for code in columns["child"]]
    if names:
        depths = depths_of(root, parents)
        columns["level"] = [names[depths[code or ""]] for code in columns["child"]]
    return Frame(columns, dict.fromkeys(columns, "string"))


def read_columns(frame: object, columns: Sequence[str], root: str) -> CodeTree:
    """Nested columns, coarsest first; a row ends at an empty cell or a repeated code."""
    if not isinstance(columns, str) and not columns:
        raise ParameterError("a hierarchy has no columns; its first line names them.")
    if isinstance(columns, str) or len(set(columns)) < len(columns):
        message = f"columns must be a list of different names, coarsest first; got {columns!r}"
        raise ParameterError(message)
    rows = zip(*_text_columns(distinct_rows(frame, columns)), strict=True)
    return tree_of_rows(rows, columns, root)


def tree_of_rows(
    rows: Iterable[Sequence[str | None]], columns: Sequence[str], root: str
) -> CodeTree:
    """The tree of rows that list a path from the coarsest code to the finest."""
    found: dict[str, tuple[str, int]] = {}
    for row in rows:
        parent = root
        for level, code in enumerate(_path(row, columns, root)):
            if found.setdefault(code, (parent, level)) != (parent, level):
                raise CodeError(_conflict_message(code, parent, level, found[code], columns))
            parent = code
    pairs = [(code, parent) for code, (parent, _) in found.items()]
    return CodeTree(root, pairs, level_names=(root, *columns))


def _path(row: Sequence[str | None], columns: Sequence[str], root: str) -> Sequence[str]:
    """The codes of a row down to its last one; deeper cells may be empty or repeat it."""
    path, last = [], root
    for code in row:
        if code is None or code == last:
            break
        path.append(code)
        last = code
    for position in range(len(path), len(row)):
        if row[position] not in (None, last):
            raise CodeError(
                f"code {row[position]!r} of column {columns[position]!r} stands below {last!r}, "
                f"but column {columns[len(path)]!r} between them is empty or repeats {last!r}; "
                "fill the gap with a code of its own"
            )
    return path


def _conflict_message(
    code: str, parent: str, level: int, earlier: tuple[str, int], columns: Sequence[str]
) -> str:
    other_parent, other_level = earlier
    if other_level == level:
        return (
            f"code {code!r} of column {columns[level]!r} stands under {other_parent!r} and under "
            f"{parent!r}; nested columns need one parent per code"
        )
    return (
        f"code {code!r} occurs in column {columns[other_level]!r} and in column "
        f"{columns[level]!r}; make them distinct, e.g. put the column's name before the code"
    )


def distinct_rows(frame: Any, columns: Sequence[str]) -> Frame:
    """Distinct rows of some columns: by first appearance, or sorted if the frame is lazy.

    Raises:
        UnknownNameError: The frame has no such column.
    """
    if not is_lazy(frame):
        return _chosen(frame, columns).distinct()
    check_known("column", columns, frame.collect_schema().names())
    rows = read_frame(frame.select(list(columns)).unique(), columns)
    texts = zip(*_text_columns(rows), strict=True)
    keyed = sorted((tuple((t is not None, t or "") for t in row), k) for k, row in enumerate(texts))
    return rows.take([place for _, place in keyed])


def text_columns(frame: object, names: Sequence[str]) -> list[list[str | None]]:
    """These columns of a frame as codes, row by row; None where missing or blank."""
    return _text_columns(_chosen(frame, names))


def _chosen(frame: Any, columns: Sequence[str]) -> Frame:
    """Some columns; those of pandas that hold several types as codes."""
    if not is_pandas(frame):
        return read_frame(frame, columns)
    check_known("column", columns, list(map(str, frame.columns)))
    return Frame({name: _coded(frame[name]) for name in columns})


def _coded(values: Any) -> Column:
    try:
        return Column(values)
    except ColumnError:
        codes, positions = factorise(values)
        return Column.of_codes(positions, codes)


def _text_columns(rows: Frame) -> list[list[str | None]]:
    """The columns of a frame as codes; None where missing or blank."""
    columns: list[list[str | None]] = []
    for column in rows.columns:
        codes, positions = factorise(column)
        texts = [*(code if code.strip() else None for code in codes), None]  # -1 finds the last
        columns.append([texts[i] for i in positions.tolist()])
    return columns


def frame_categories(frame: object) -> dict[str, list[str]]:
    """The codes of pandas categoricals and polars enums, by column and in their order.

    They are a code list, but no declaration: `astype("category")` collects them from the records.
    Arrow dictionaries and polars categoricals list what was found while they were filled, so they
    have none; neither have categories that include a blank one, which cannot be a code.
    """
    found = {
        str(name): list(dict.fromkeys(map(canonical, categories)))
        for name, categories in _categories(frame)
    }
    return {name: codes for name, codes in found.items() if codes and all(map(str.strip, codes))}


def _categories(frame: Any) -> Iterator[tuple[object, Iterable[object]]]:
    """The columns whose type lists categories, not what was found."""
    if is_pandas(frame):
        kinds = zip(frame.columns, frame.dtypes, strict=True)
        yield from ((name, kind.categories) for name, kind in kinds if hasattr(kind, "categories"))
    elif hasattr(frame, "collect_schema"):
        for name, kind in frame.collect_schema().items():
            if type(kind).__name__ == "Enum":
                yield name, kind.categories


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
            with more than `MOST_CATEGORIES` categories.
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
    names = list(columns) if columns is not None else _categorical_columns(frame, notes)
    given = frame if is_lazy(frame) else _chosen(frame, names)
    counts = {name: len(distinct_rows(given, [name])) for name in names}
    for name, count in counts.items():
        if count > MOST_CATEGORIES:
            notes.append(f"{name} was left out: {count} categories are more than {MOST_CATEGORIES}")
        if count <= 1:
            notes.append(f"{name} was left out: it has one category only")
    return [name for name, count in counts.items() if 1 < count <= MOST_CATEGORIES]


def _categorical_columns(frame: Any, notes: list[str]) -> list[str]:
    names = []
    for name, kind in read_frame(frame.head(0) if is_lazy(frame) else frame).kinds.items():
        if kind.startswith(_MEASURED):
            notes.append(f"{name} was left out: type {kind}; name it in columns= to look at it")
        else:
            names.append(name)
    return names


def _partitions(rows: Frame, names: Sequence[str], notes: list[str]) -> dict[str, _Partition]:
    """Columns as partitions of the distinct rows, one for each different partition."""
    kept: dict[str, _Partition] = {}
    for name in names:
        partition = _Partition.of(rows.column(name))
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
