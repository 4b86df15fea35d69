"""A tree of codes over the categories of one variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from discreet.design.codes import canonical, nearest_codes
from discreet.design.formats import files, tables
from discreet.design.formats.tables import Nesting, find_nesting
from discreet.design.formats.tree import (
    CodeTree,
    children_of,
    depths_of,
    quote_codes,
    read_nested,
    reading_order,
    write_nested,
)
from discreet.display import Display, Displayed, Grid, Heading
from discreet.errors import CodeError, ParameterError, UnknownNameError
from discreet.files import write_text
from discreet.frames import Frame

_MOST_SHOWN, _MOST_OPEN = 2_000, 30  # codes in a piece of HTML, and those that stand open


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(Displayed):
    """A tree over the codes of one variable: leaves are inner categories, the root is the total.

    Branches may end at different depths. Because codes are kept depth first, the leaves under any
    code stand side by side (`leaf_span`). Groups that overlap need a hierarchy each.

    Promise: every code has one parent and leads to the root; codes are text (see
    `discreet.design.codes.canonical`). Cost: time and memory linear in the number of codes, for any
    depth.

    Args:
        root: Code shown for the total.
        parents: Code to parent code, for every code but the root; kept in reading order (depth
            first, siblings in the order given).
        labels: Code to a label for people; may be incomplete.
        level_names: Names of the depths 0, 1, …, root level first; or none.
        total_aliases: Further codes that mean the total, such as ``T`` and ``_T``.
    """

    root: str
    parents: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    level_names: tuple[str, ...] = ()
    total_aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        root = canonical(self.root)
        pairs = ((canonical(code), canonical(parent)) for code, parent in self.parents.items())
        aliases = dict.fromkeys(map(canonical, self.total_aliases))
        aliases.pop(root, None)
        checked = {
            "root": root,
            "parents": reading_order(root, pairs),
            "labels": {canonical(code): str(label) for code, label in self.labels.items()},
            "level_names": tuple(self.level_names),
            "total_aliases": tuple(aliases),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for alias in self.total_aliases:
            if alias in self.parents:
                message = f"code {alias!r} is a code of the tree and cannot also mean the total"
                raise CodeError(message)
        for code in self.labels:
            if code not in self.parents and code not in self.total_codes:
                message = f"a label is given for code {code!r}, which {self._unknown_message(code)}"
                raise CodeError(message)
        names = self.level_names
        if names and (len(names) != self.depth + 1 or len(set(names)) != len(names)):
            raise ParameterError(
                f"level_names must be {self.depth + 1} different names, one for each depth from "
                f"the root to the deepest leaf; got {list(names)}"
            )

    @classmethod
    def of_tree(cls, tree: CodeTree) -> Hierarchy:
        """A tree as a reader returned it; level names are kept if they reach the deepest leaf."""
        parents = reading_order(tree.root, tree.pairs)
        depth = max(depths_of(tree.root, parents).values())
        names = tree.level_names[: depth + 1]
        return cls(tree.root, parents, tree.labels, names if len(names) > depth else ())

    @classmethod
    def flat(cls, codes: Iterable[object], root: str = "Total") -> Hierarchy:
        """Codes right under the total."""
        return cls.of_tree(CodeTree(root, [(canonical(code), root) for code in codes]))

    @classmethod
    def from_dict(cls, tree: Mapping[Any, Any], root: str | None = None) -> Hierarchy:
        """Nested dicts and lists: ``{"Total": {"A": ["A1", "A2"], "B": []}}``.

        Args:
            tree: Every key is a code over its value: a dict, a list of codes, or nothing.
            root: Code of the total when the dict does not have it as its only key.
        """
        return cls.of_tree(read_nested(tree, root))

    @classmethod
    def from_parent_child(
        cls,
        table: object,
        child: str = "child",
        parent: str = "parent",
        label: str | None = None,
        root: str | None = None,
        level: str | None = None,
    ) -> Hierarchy:
        """A row per code, with its parent.

        Args:
            table: A frame of any library, a dict of columns, or pairs (code, parent).
            child: Column of the codes.
            parent: Column of their parents; empty at the top.
            label: Column of labels.
            root: Code of the total, over all codes without a parent. By default the one code
                without a parent, or the one parent that has no row.
            level: Column of the names of the levels, one name for each depth.
        """
        return cls.of_tree(tables.read_parent_child(table, child, parent, label, root, level))

    @classmethod
    def from_columns(cls, frame: object, columns: Sequence[str], root: str = "Total") -> Hierarchy:
        """Nested columns, whose names become the names of the levels.

        Args:
            frame: A frame of any library or a dict of columns; rows may repeat.
            columns: Names, coarsest first. A branch ends early where the deeper cells are empty or
                repeat its last code.
            root: Code of the total.
        """
        return cls.of_tree(tables.read_columns(frame, columns, root))

    @classmethod
    def from_hrc(cls, source: str | Path, root: str = "Total", leading: str = "@") -> Hierarchy:
        """A τ-ARGUS `.hrc` file, or its text when the string has a line break.

        Every line is a code; `leading` is repeated once for each level below the first.
        """
        return cls.of_tree(files.read_hrc(source, root, leading))

    @classmethod
    def from_digits(
        cls, codes: Iterable[object], digits: str | Iterable[int], root: str = "Total"
    ) -> Hierarchy:
        """Codes whose leading characters are their groups, τ-ARGUS' other form.

        With ``digits="2 1 2"``, code ``01101`` lies under ``011``, and that under ``01``.
        """
        return cls.of_tree(files.read_digits(codes, digits, root))

    @classmethod
    def from_sdmx(
        cls, path: str | Path, codelist: str | None = None, root: str | None = None
    ) -> Hierarchy:
        """A hierarchy or code list of an SDMX-ML or SDMX-JSON structure message.

        Args:
            path: The message (SDMX-ML 2.1, 3.0, 3.1; SDMX-JSON 2.0, 2.1 with suffix `.json`).
            codelist: Id of the hierarchy or code list, or ``AGENCY:ID(VERSION)``; needed when
                there are several.
            root: Code of the total. By default the one code above all others; else ``_T`` if it
                stands beside them, else ``Total``.
        """
        return cls.of_tree(files.read_sdmx(Path(path), codelist, root))

    @classmethod
    def read(cls, source: object, root: str | None = None) -> Hierarchy:
        """A hierarchy from a file, by its extension, or from a frame.

        `.hrc`; `.xml` (SDMX-ML); `.json` (SDMX-JSON or nested dicts); frames, `.csv` and `.parquet`
        with columns `child`, `parent` and perhaps `label` and `level` (the name of the code's
        level); `levels` and `codes` (an R `dimList`); `mapsFrom` and `mapsTo` (SSBtools); or else
        one column per level.
        """
        return cls.of_tree(files.read_source(source, root))

    @staticmethod
    def find(frame: object, columns: Sequence[str] | None = None, root: str = "Total") -> Nesting:
        """Hierarchies that the columns of the data form among themselves.

        See `discreet.design.formats.tables.find_nesting`.
        """
        return find_nesting(frame, columns, root, of_tree=Hierarchy.of_tree)

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts, with a list where all children are leaves."""
        return write_nested(self.root, self._children)

    def to_parent_child(self) -> Any:
        """A frame of `child`, `parent` and, where there are some, `label` and `level`.

        The root comes first.
        """
        return tables.write_parent_child(self._tree)

    def to_columns(self) -> Any:
        """A frame with a row per leaf and a column per level, null below a short branch.

        Columns have the names of the levels, or ``level1``, ``level2``, ….
        """
        names = self.level_names[1:] or tuple(f"level{d}" for d in range(1, self.depth + 1))
        found = [self.ancestor_at(depth) for depth in range(1, self.depth + 1)]
        columns = [[d.get(leaf) for leaf in self.leaves] for d in found]
        return Frame(dict(zip(names, columns, strict=True)), dict.fromkeys(names, "string"))

    def to_hrc(self, path: str | Path | None = None, leading: str = "@") -> str:
        """The text of a τ-ARGUS `.hrc` file, also written to `path` if one is given."""
        text = files.write_hrc(self.parents, self._depths, leading)
        if path is not None:
            write_text(path, text)
        return text

    def to_sdmx(self, path: str | Path, codelist: str, agency: str, version: str = "1.0") -> None:
        """An SDMX code list and hierarchy of one id; SDMX-JSON 2.0 by suffix, else SDMX-ML 3.0."""
        files.write_sdmx(Path(path), self._tree, codelist, agency, version)

    @property
    def _tree(self) -> CodeTree:
        return CodeTree(self.root, tuple(self.parents.items()), self.labels, self.level_names)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Codes without children, in reading order."""
        return tuple(code for code in self.parents if code not in self._children)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Every code in reading order, the root first."""
        return (self.root, *self.parents)

    @property
    def total_codes(self) -> tuple[str, ...]:
        """Every code that means the total, the one shown first."""
        return (self.root, *self.total_aliases)

    @cached_property
    def depth(self) -> int:
        """Depth of the deepest leaf; the root has depth 0."""
        return max(self._depths.values())

    @cached_property
    def is_balanced(self) -> bool:
        """Whether all leaves have one depth."""
        return len({self._depths[leaf] for leaf in self.leaves}) <= 1

    def children(self, code: str) -> tuple[str, ...]:
        """Codes right below a code; none for a leaf."""
        self._position_of(code)
        return tuple(self._children.get(code, ()))

    def depth_of(self, code: str) -> int:
        """Number of steps from the root."""
        self._position_of(code)
        return self._depths[code]

    def codes_at(self, depth: int) -> tuple[str, ...]:
        """All codes of exactly that depth, leaves included, in reading order."""
        return self._by_depth[self.level(depth)]

    def ancestor_at(self, depth: int) -> dict[str, str]:
        """Leaf to the code above it (or itself) at that depth; shallower leaves are absent."""
        wanted = self.level(depth)
        above = {code: code for code in self._by_depth[wanted]}
        for code, parent in self.parents.items():
            if parent in above and code not in above:
                above[code] = above[parent]
        return {leaf: above[leaf] for leaf in self.leaves if leaf in above}

    def descendants(self, code: str) -> tuple[str, ...]:
        """All codes below a code, in reading order."""
        start = self._position_of(code)
        return self.codes[start + 1 : self._ends[start]]

    def leaves_of(self, code: str) -> tuple[str, ...]:
        """Leaves under a code, or the leaf itself."""
        start, stop = self.leaf_span(code)
        return self.leaves[start:stop]

    def leaf_span(self, code: str) -> tuple[int, int]:
        """First position and end of the leaves under a code, within `leaves`."""
        start = self._position_of(code)
        return self._leaves_before[start], self._leaves_before[self._ends[start]]

    def level(self, name: str | int) -> int:
        """Depth of a level given by name or number.

        Raises:
            UnknownNameError: There is no such level.
        """
        numbered = range(self.depth + 1)
        if name in numbered:
            return numbered.index(int(name))
        if name in self.level_names:
            return self.level_names.index(str(name))
        raise UnknownNameError("level", name, [*numbered, *self.level_names])

    def prune(self, keep_leaves: Iterable[object]) -> Hierarchy:
        """The tree of some leaves and the codes above them."""
        keep = {canonical(code) for code in keep_leaves}
        self.check(keep)
        for code, parent in reversed(tuple(self.parents.items())):
            if code in keep:
                keep.add(parent)
        return self._part(keep)

    def grouped(self, level: str | int) -> Hierarchy:
        """The tree cut at a level: what lies below is dropped, shorter branches stay."""
        depth = self.level(level)
        return self._part({code for code, d in self._depths.items() if d <= depth})

    def _part(self, keep: set[str]) -> Hierarchy:
        parents = {code: parent for code, parent in self.parents.items() if code in keep}
        keep.update(self.total_codes)
        labels = {code: label for code, label in self.labels.items() if code in keep}
        depth = max((self._depths[code] for code in parents), default=0)
        names = self.level_names[: depth + 1]
        return Hierarchy(self.root, parents, labels, names, self.total_aliases)

    def check(self, codes: Iterable[object], variable: str | None = None) -> None:
        """Check that codes found in data are leaves.

        Raises:
            CodeError: One is not; the message names it and the nearest leaves.
        """
        for code in map(canonical, codes):
            if code in self.parents and code not in self._children:
                continue
            owner = f"code {code!r}" + (f" of variable {variable!r}" if variable else "")
            if code in self._positions:
                below = quote_codes(self.children(code), limit=3)
                message = (
                    f"{owner} is a group of the hierarchy (of {below}), not one of its leaves; "
                    "recode its records to a leaf, or add a leaf for them"
                )
            else:
                message = (
                    f"{owner} {self._unknown_message(code)}; add it to the hierarchy or recode it"
                )
            raise CodeError(message)

    def _unknown_message(self, code: str) -> str:
        near = nearest_codes(code, self.leaves)
        return "is not in the hierarchy" + (f"; nearest: {quote_codes(near)}" if near else "")

    def _position_of(self, code: str) -> int:
        position = self._positions.get(code)
        if position is None:
            raise CodeError(f"code {code!r} {self._unknown_message(code)}")
        return position

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        return children_of(self.parents)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {code: position for position, code in enumerate(self.codes)}

    @cached_property
    def _depths(self) -> dict[str, int]:
        return depths_of(self.root, self.parents)

    @cached_property
    def _by_depth(self) -> list[tuple[str, ...]]:
        found: list[list[str]] = [[] for _ in range(self.depth + 1)]
        for code, depth in self._depths.items():
            found[depth].append(code)
        return [tuple(codes) for codes in found]

    @cached_property
    def _ends(self) -> list[int]:
        """For each position in `codes`, the position after its last descendant."""
        ends = list(range(1, len(self.codes) + 1))
        for code, parent in reversed(tuple(self.parents.items())):
            above = self._positions[parent]
            ends[above] = max(ends[above], ends[self._positions[code]])
        return ends

    @cached_property
    def _leaves_before(self) -> list[int]:
        is_leaf = (code not in self._children for code in self.parents)
        return list(accumulate((False, *is_leaf), initial=0))

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        labels = frozenset(self.labels.items())
        pairs = tuple(self.parents.items())
        return (self.root, pairs, labels, self.level_names, self.total_aliases)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __contains__(self, code: object) -> bool:
        return code in self._positions

    def _display(self) -> Display:
        """The tree, open down to a screen of codes; of very many codes the first."""
        heads = self._headings(self.codes[:_MOST_SHOWN])
        sizes = [sum(h.depth <= depth for h in heads) for depth in range(self.depth + 1)]
        unfolded = max(1, sum(size <= _MOST_OPEN for size in sizes) - 1)
        rest = len(self.codes) - len(heads)
        tree = Grid(
            heads,
            [Heading("level"), Heading("categories")],
            [
                [self._level_of(len(h.above)), f"{len(self.leaves_of(c)):,}"]
                for h, c in zip(heads, self.codes, strict=False)
            ],
            corner="code",
            unfolded=(unfolded, 1),
            left=(0,),
            note=f"Not shown here: {rest:,} further codes." if rest else "",
        )
        said = f"{len(self.codes):,} codes, {len(self.leaves):,} of them categories"
        return Display("Hierarchy", facts=[("codes", said)], grids=[tree])

    def _level_of(self, depth: int) -> str:
        return self.level_names[depth] if self.level_names else str(depth)

    def _headings(self, codes: Sequence[str]) -> list[Heading]:
        above: dict[str, tuple[int, ...]] = {}
        for code in codes:
            parent = self.parents.get(code)
            above[code] = () if parent is None else (*above[parent], self._positions[parent])
        labels = {code: self.labels.get(code, code) for code in above}
        return [
            Heading(code if labels[code] == code else f"{code} {labels[code]}", len(path), path)
            for code, path in above.items()
        ]

    def __repr__(self) -> str:
        return f"Hierarchy({self.root!r}, {len(self.leaves)} leaves, depth {self.depth})"

    def __str__(self) -> str:
        """The tree, its parts set in; of many codes the first."""
        heads = self._headings(self.codes[:_MOST_OPEN])
        lines = [repr(self), *("  " * head.depth + head.text for head in heads)]
        rest = len(self.codes) - len(heads)
        return "\n".join([*lines, f"… and {rest:,} further codes"] if rest else lines)
