"""Cells from an engine, coded on axes that all groupings of one table share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from discreet.design.assembly import CodedCells, Hierarchies, axis_for
from discreet.design.axis import Axis
from discreet.design.codes import MISSING, canonical_array
from discreet.design.hierarchy import Hierarchy
from discreet.tabulate.engine import Engine, values_of

if TYPE_CHECKING:
    from discreet.microdata.microdata import Microdata


@dataclass(eq=False)
class Reader:
    """Asks an engine for cells and codes them.

    The axis of a variable is made from the first grouping that has it and used for all others.
    """

    engine: Engine
    data: Microdata
    hierarchies: Hierarchies
    axes: dict[str, Axis] = field(default_factory=dict)

    def read(self, variables: Sequence[str]) -> CodedCells:
        """The cells of one grouping."""
        cells = self.engine.group(self.data, variables)
        leaves = []
        for place, variable in enumerate(variables):
            codes, index = canonical_array(cells.column(place))
            leaf = self._axis(variable, codes).leaf_position
            found = np.array([leaf[code] for code in codes], dtype=np.int64)
            leaves.append(found[index])
        axes = tuple(self.axes[v] for v in variables)
        return CodedCells(axes, tuple(leaves), values_of(cells, len(variables)))

    def _axis(self, variable: str, codes: Sequence[str]) -> Axis:
        if variable not in self.axes:
            trees = self.hierarchies.get(variable)
            if trees and MISSING in codes:
                trees = with_missing(trees)
            self.axes[variable] = axis_for(variable, codes, trees)
        self.axes[variable].check_codes(codes)
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
