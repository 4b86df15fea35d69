"""Cells from an engine, coded on axes that all groupings of one table share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.design.axis import Axis
from discreet.design.codes import MISSING, canonical_array, factorise
from discreet.design.hierarchy import Hierarchy
from discreet.tables.assembly import CodedCells, axis_of_codes
from discreet.tabulate.engine import Engine, values_of
from discreet.tabulate.outside import leaf_positions

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.records import UnitRecords


@dataclass(eq=False)
class Reader:
    """Asks an engine for cells and codes them.

    The axis of a variable is made from the first grouping that has it and used for all others.

    Attributes:
      engine: The engine.
      data: The records.
      axes: The axes of the variables read so far.
      found: For each of them the values of a grouping, and the leaf position of each.
    """

    engine: Engine
    data: UnitRecords
    axes: dict[str, Axis] = field(default_factory=dict)
    found: dict[str, tuple[Any, Whole]] = field(default_factory=dict)

    def read(self, variables: Sequence[str]) -> CodedCells:
        """The cells of one grouping."""
        cells = self.engine.group(self.data, variables)
        leaves = tuple(self._leaves(v, cells.column(place)) for place, v in enumerate(variables))
        for place, v in enumerate(variables):
            self.found[v] = (cells.column(place), leaves[place])
        axes = tuple(self.axes[v] for v in variables)
        return CodedCells(axes, leaves, values_of(cells, len(variables)))

    def grouped(self, variable: str, group: Array) -> tuple[pa.Array, Whole]:
        """The distinct values of a variable as they were read, and the group of each.

        Args:
          variable: A variable that was read.
          group: The group of each leaf.
        """
        column, leaves = self.found[variable]
        coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        index = coded.indices.to_numpy()
        first = np.full(len(coded.dictionary), -1, dtype=np.int64)
        first[index] = leaves
        return coded.dictionary, np.asarray(group, dtype=np.int64)[first]

    def _leaves(self, variable: str, column: Any) -> Whole:
        """The leaf position of each row."""
        rule = self.data.outside.get(variable)
        if rule is not None:
            return leaf_positions(self._axis(variable, ()), *factorise(column), rule)
        codes, index = canonical_array(column)
        axis = self._axis(variable, codes)
        axis.check_codes(codes)
        return np.array([axis.leaf_position[code] for code in codes], dtype=np.int64)[index]

    def _axis(self, variable: str, codes: Sequence[str]) -> Axis:
        """The axis of a variable, made when it is first asked for."""
        if variable not in self.axes:
            trees = self.data.hierarchies.get(variable)
            if trees:
                shown = with_missing(trees) if MISSING in codes else trees
                axis = Axis.from_hierarchies(variable, shown, declared=shown == trees)
            else:
                axis = axis_of_codes(variable, codes)
            self.axes[variable] = axis
        return self.axes[variable]


def with_missing(trees: Sequence[Hierarchy]) -> tuple[Hierarchy, ...]:
    """Hierarchies with a category for missing values, right under the total.

    A hierarchy that covers some of the categories only goes on to cover those.
    """
    everything = len(trees[0].leaves)
    return tuple(
        _extended(tree) if len(tree.leaves) == everything and MISSING not in tree else tree
        for tree in trees
    )


def _extended(tree: Hierarchy) -> Hierarchy:
    parents = {**tree.parents, MISSING: tree.root}
    return Hierarchy(tree.root, parents, tree.labels, tree.level_names, tree.total_aliases)
