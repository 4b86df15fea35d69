"""One variable of a table: its inner categories and the levels at which they may be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Index, Whole32
from discreet.design.codes import canonical
from discreet.design.hierarchy import Hierarchy
from discreet.errors import CodeError, DesignError, UnknownNameError

OUTSIDE = -1
LEAVES = "leaves"


@dataclass(frozen=True, eq=False)
class Level:
    """A set of disjoint groups of inner categories, published together.

    `group[leaf]` is the position of the leaf's group in `codes`, or -1 when the leaf lies in none
    (a branch that ends above this level).
    """

    name: str
    codes: tuple[str, ...]
    group: Whole32

    def __len__(self) -> int:
        return len(self.codes)

    def members(self) -> dict[str, Index]:
        """Leaf positions in each group, increasing."""
        order = np.argsort(self.group, kind="stable")
        starts = np.searchsorted(self.group[order], np.arange(len(self) + 1))
        return {c: order[starts[k] : starts[k + 1]] for k, c in enumerate(self.codes)}

    @cached_property
    def is_identity(self) -> bool:
        """Whether every leaf is its own group, in order."""
        n = len(self.group)
        return len(self.codes) == n and bool(np.array_equal(self.group, np.arange(n)))

    @cached_property
    def covers_all(self) -> bool:
        """Whether every leaf lies in some group."""
        return bool((self.group != OUTSIDE).all())


@dataclass(frozen=True, eq=False)
class Axis:
    """A variable: its leaves (inner categories), the code of its total, and its levels.

    Levels are listed from coarse to fine and share no code, so that publishing all of them
    publishes every node of the variable's hierarchies once.

    Attributes:
      declared: Whether the codes were declared beforehand: a code list, a hierarchy, or somebody
        said so. Otherwise they may have been found in the records, the categories of a frame
        among them, and one more record may add a code.
    """

    name: str
    leaves: tuple[str, ...]
    levels: tuple[Level, ...]
    total: str = "Total"
    total_aliases: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    declared: bool = True

    def __post_init__(self) -> None:
        if not self.leaves:
            raise CodeError(f"variable {self.name!r} has no categories; give at least one.")
        if len(set(self.leaves)) != len(self.leaves):
            twice = next(c for c, times in Counter(self.leaves).items() if times > 1)
            raise CodeError(f"variable {self.name!r} lists code {twice!r} twice.")
        for code in self.total_codes:
            if code in self.leaf_position:
                raise CodeError(
                    f"variable {self.name!r} uses {code!r} both for a category and for the total. "
                    "Choose another total code, e.g. `hierarchies={...: "
                    "dc.Hierarchy.flat(codes, root='All')}`."
                )

    def __len__(self) -> int:
        return len(self.leaves)

    @classmethod
    def flat(
        cls, name: str, codes: Sequence[str], total: str = "Total", *, declared: bool = True
    ) -> Axis:
        """A variable without a hierarchy.

        Args:
          name: The variable.
          codes: Its categories, in the order they are shown.
          total: Code of the total.
          declared: Whether the codes were declared beforehand rather than found in records.
        """
        leaves = tuple(codes)
        identity = Level(name, leaves, np.arange(len(leaves), dtype=np.int32))
        return cls(name, leaves, (identity,), total, declared=declared)

    @classmethod
    def from_hierarchies(
        cls, name: str, hierarchies: Sequence[Hierarchy], *, declared: bool = True
    ) -> Axis:
        """A variable with one or several hierarchies over the same leaves.

        The first hierarchy gives the leaves, their order and the code of the total. Further ones
        add their groups; a root that covers every leaf is another name for the total, one that
        does not is a group of its own.

        Args:
          name: The variable.
          hierarchies: Its hierarchies, the one that is shown first.
          declared: Whether the hierarchies hold nothing that was found in records.
        """
        first, *others = hierarchies
        position = {code: i for i, code in enumerate(first.leaves)}
        levels = _levels_of(name, first, position, skip=frozenset())
        aliases = list(first.total_aliases)
        labels = dict(first.labels)
        for tree in others:
            seen = frozenset(code for level in levels for code in level.codes) | position.keys()
            _check_same_meaning(name, tree, levels, position)
            extra = _levels_of(name, tree, position, skip=seen)
            if len(tree.leaves) == len(position):
                aliases += [tree.root, *tree.total_aliases]
            elif tree.root in (first.root, *aliases):
                raise CodeError(
                    f"code {tree.root!r} of variable {name!r} is its total, and the root of a "
                    "hierarchy that leaves categories out. Give that root another code."
                )
            elif tree.root not in seen:
                extra = (_level_from_nodes(name, tree, 0, (tree.root,), position), *extra)
            levels = (*extra, *levels)
            labels = {**tree.labels, **labels}
        aliases = [a for a in dict.fromkeys(aliases) if a != first.root]
        return cls(name, first.leaves, levels, first.root, tuple(aliases), labels, declared)

    @property
    def total_codes(self) -> tuple[str, ...]:
        """All codes that mean the total, the shown one first."""
        return (self.total, *self.total_aliases)

    @cached_property
    def leaf_position(self) -> dict[str, int]:
        """Position of each leaf."""
        return {code: i for i, code in enumerate(self.leaves)}

    @cached_property
    def finest(self) -> Level:
        """The level of all leaves, whatever their depth."""
        for level in self.levels:
            if level.is_identity:
                return level
        identity = np.arange(len(self.leaves), dtype=np.int32)
        return Level(f"{self.name}[{LEAVES}]", self.leaves, identity)

    @cached_property
    def node_leaves(self) -> dict[str, Index]:
        """Leaf positions under each published code."""
        found = {self.total: np.arange(len(self.leaves))}
        for level in self.levels:
            found.update(level.members())
        return found

    @cached_property
    def code_leaves(self) -> dict[str, Index]:
        """The same, and each leaf itself, whether or not it is published."""
        return {**self.node_leaves, **{c: np.array([i]) for c, i in self.leaf_position.items()}}

    def level(self, name: str) -> Level:
        """The level with this name (`"county"`), depth (`"2"`, unnamed levels), or `"leaves"`.

        Where two hierarchies name a level alike, the first one's is meant.
        """
        if name in (LEAVES, self.finest.name):
            return self.finest
        short = {self.short_name(level): level for level in self.levels}
        if name in short:
            return short[name]
        raise UnknownNameError(f"level of variable {self.name!r}", name, [*short, LEAVES])

    def coarsen(self, to: Level, steps: Mapping[Level, Whole32]) -> Axis:
        """The variable with the groups of a level as its leaves.

        Args:
          to: A level that covers all leaves.
          steps: For the levels that stay, it among them, the group of each of its groups.
        """
        levels = tuple(Level(v.name, v.codes, steps[v]) for v in self.levels if v in steps)
        return replace(self, leaves=to.codes, levels=levels)

    def short_name(self, level: Level) -> str:
        """A level's name without the variable in front."""
        return level.name.removeprefix(f"{self.name}[").removesuffix("]")

    def check_codes(self, codes: Iterable[str]) -> None:
        """Raise a `CodeError` that names the first code that is not a leaf."""
        for code in codes:
            if code not in self.leaf_position:
                raise CodeError(
                    f"code {code!r} of variable {self.name!r} is not among its categories. "
                    + str(UnknownNameError("code", code, self.leaves)).split(". ", 1)[1]
                    + " Add it to the hierarchy or code list, or recode it."
                )

    def describe(self, code: str) -> str:
        """A code with its label, when it has one."""
        label = self.labels.get(code)
        return f"{code} {label}" if label and label != code else code


Variables = Mapping[str, "int | Sequence[object] | Hierarchy"] | Sequence[Axis]
"""By variable the number of categories, their codes, or a hierarchy; or axes."""


def axes_of(variables: Variables) -> tuple[Axis, ...]:
    """Axes from numbers of categories, lists of codes or hierarchies; axes pass through."""
    if not isinstance(variables, Mapping):
        return tuple(variables)
    return tuple(_axis(name, given) for name, given in variables.items())


def _axis(name: str, given: object) -> Axis:
    if isinstance(given, int) and not isinstance(given, bool):
        given = range(1, given + 1)
    if isinstance(given, Hierarchy):
        return Axis.from_hierarchies(name, [given])
    if not isinstance(given, Iterable):
        raise DesignError(
            f"variable {name!r} needs the number of its categories, their codes, or a hierarchy, "
            f"got {given!r}."
        )
    return Axis.flat(name, [canonical(code) for code in given])


def _levels_of(
    name: str, tree: Hierarchy, position: Mapping[str, int], skip: frozenset[str]
) -> tuple[Level, ...]:
    """The levels of a tree below its root, coarse to fine, without codes already published."""
    levels = []
    for depth in range(1, tree.depth + 1):
        nodes = tuple(c for c in tree.codes_at(depth) if c not in skip)
        if nodes:
            levels.append(_level_from_nodes(name, tree, depth, nodes, position))
    return tuple(levels)


def _level_from_nodes(
    name: str, tree: Hierarchy, depth: int, nodes: tuple[str, ...], position: Mapping[str, int]
) -> Level:
    of_node = {code: k for k, code in enumerate(nodes)}
    group = np.full(len(position), OUTSIDE, dtype=np.int32)
    for leaf, ancestor in tree.ancestor_at(depth).items():
        if leaf not in position:
            raise CodeError(
                f"code {leaf!r} of variable {name!r} is a category in one of its hierarchies "
                "but not in the first. All hierarchies of a variable need the same categories."
            )
        group[position[leaf]] = of_node.get(ancestor, OUTSIDE)
    short = tree.level_names[depth] if tree.level_names else str(depth)
    is_flat = tree.depth == 1 and not tree.level_names
    return Level(name if is_flat else f"{name}[{short}]", nodes, group)


def _check_same_meaning(
    name: str, tree: Hierarchy, levels: Sequence[Level], position: Mapping[str, int]
) -> None:
    """A code that occurs in two hierarchies must cover the same leaves in both."""
    for level in levels:
        for code, here in level.members().items():
            if code not in tree.parents:
                continue
            there = {position[leaf] for leaf in tree.leaves_of(code) if leaf in position}
            if set(here.tolist()) != there:
                raise CodeError(
                    f"code {code!r} of variable {name!r} covers different categories in two of "
                    "its hierarchies. Give one of the groups another code."
                )
