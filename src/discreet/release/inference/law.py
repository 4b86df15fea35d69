"""The public law of a release's noise, from the statement that goes with it."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Array
from discreet.design.axis import Level
from discreet.design.formula import Block, Margins, margin_name, parse, resolve
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import discrete_laplace
from discreet.tables.protected import COUNT, CellStatus, Protected
from discreet.tables.statement import Step

_CHANGE_VALUES = ("protect", "fit", "round", "tabulate")
_NOISE = ("cell-key", "drop-add", "pram", "laplace", "discrete-laplace", "discrete-gaussian")
MATRICES = {
    "maximum entropy perturbation table": "perturbation-table",
    "linear programming perturbation table": "linear-table",
    "drop/add-up-to-q": "drop-add",
    "post-randomisation": "pram",
    "truncated discrete Laplace noise": "discrete-laplace",
}
"""Matrices that can be made again: by their name in a statement the one in the registry."""
_GIVE = "Give the matrix yourself, where its owner publishes it."
_RARE = 2**-50  # noise beyond a cap that has this probability is left out


def matrix_of(protected: Protected) -> TransitionMatrix:
    """The transition matrix of a release, made again from the parameters in its statement.

    Known for perturbation tables, drop/add, post-randomisation with the fixed matrix, and discrete
    Laplace noise with negative results set to zero. Not known for matrices that were read from a
    file or made by hand, nor for invariant ones: these depend on the confidential table.

    >>> import discreet as dc
    >>> table = dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), [3, 9])
    >>> matrix_of(table.simulate(dc.DropAdd(), seed=1))
    <drop/add-up-to-q: 8 rows, moves up to 7>
    """
    step = noise_step(protected)
    if step is None:
        raise DesignError(f"the release does not say how it was protected. {_GIVE}")
    if step.parameters.get("invariant"):
        raise DesignError(
            "the matrix of this release was made from the table itself, so it is confidential. "
            "Frequencies of counts are kept as they are on average, and need no estimate."
        )
    if step.name == "protect:discrete-laplace":
        return _laplace_matrix(protected, step)
    if protected.statement.says("parameters-kept-back"):
        raise DesignError(
            "the parameters of the noise are not published with this release, and its law follows "
            f"from them. {_GIVE}"
        )
    if step.parameters.get("steps"):
        raise DesignError(
            "the noise of this release goes by the number of sampled records in a cell, which is "
            f"not published. {_GIVE}"
        )
    default = "drop/add-up-to-q" if step.name == "protect:drop-add" else ""
    name = str(step.parameters.get("matrix", default))
    if name not in MATRICES:
        raise DesignError(f"the statement does not tell the matrix of {step.name!r}. {_GIVE}")
    return make_again(MATRICES[name], step.parameters)


def make_again(kind: str, told: Mapping[str, Any]) -> TransitionMatrix:
    """A registered matrix from its own parameters among those that a statement tells.

    Raises:
      TypeError: One of its parameters is not told.
    """
    known = inspect.signature(registry.load("matrix", kind)).parameters
    given = {name: value for name, value in told.items() if name in known}
    return _build_matrix(kind, json.dumps(given, sort_keys=True))


# Notes of each file that a release is written to ask for it: a perturbation table is solved anew in
# 2 to 4 ms. Its arrays cannot be written to.
@lru_cache(maxsize=64)
def _build_matrix(kind: str, parameters: str) -> TransitionMatrix:
    made: TransitionMatrix = registry.load("matrix", kind)(**json.loads(parameters))
    return made


def mechanism_of(cells: TableCells, matrix: TransitionMatrix | None) -> TransitionMatrix | float:
    """The law of the noise of a table: a given matrix, the statement's, or a public variance."""
    protected = cells.protected
    check_single_draws(cells)
    if matrix is not None:
        return matrix
    step = noise_step(protected)
    given = {} if step is None or step.name != "protect:discrete-laplace" else step.parameters
    # One law for all cells, with negatives set to zero: the matrix knows the cut, a variance not.
    is_cut = given.get("nonnegative") and not (given.get("split") or given.get("known"))
    if protected.precision is None or is_cut:
        return matrix_of(protected)
    precision = protected.precision[cells.where]
    if (precision != precision[0]).any() or precision[0] <= 0:
        raise DesignError("the noise of this table differs between its cells; choose another one.")
    return float(1 / precision[0])


def noise_step(protected: Protected) -> Step | None:
    """The step that added noise, if the statement has one and nothing changed values since."""
    changed = [
        step
        for step in protected.statement.steps
        if step.name.split(":")[0] in _CHANGE_VALUES and step.name != "protect:quality"
    ]
    if not changed:
        return None
    last = changed[-1]
    if last.name not in [f"protect:{name}" for name in _NOISE]:
        raise DesignError(
            f"values of this release come from the step {last.name!r}, so they are not true counts "
            "with noise of a known law. Take the release as it was before fits and roundings."
        )
    return last


def check_single_draws(cells: TableCells) -> None:
    """Refuse cells whose noise is the sum of several draws."""
    step = noise_step(cells.protected)
    if step is not None and step.parameters.get("margins") == "summed" and not cells.are_inner:
        raise DesignError(
            "cells of this table are sums of cells with noise, so their own noise is larger. "
            "Choose the finest table, or protect with margins='own'."
        )


def step_size(protected: Protected) -> float:
    """What one unit of noise adds to a published value, by the release's own statement."""
    if protected.unit == COUNT:
        return 1.0
    for step in protected.statement.steps:
        if step.parameters.get("grid"):
            return float(step.parameters["grid"])
    raise DesignError("the statement does not say in which steps noise was added.")


def _laplace_matrix(protected: Protected, step: Step) -> TransitionMatrix:
    given, privacy = step.parameters, protected.statement.privacy
    if privacy is None or given.get("split") or given.get("known"):
        raise DesignError(f"cells of this release have noise of different laws. {_GIVE}")
    if not given.get("nonnegative"):
        raise DesignError(
            "values of this release may be negative, so their law is not a matrix for counts; the "
            "variance is in `release.precision`, and tests use it."
        )
    epsilon, sensitivity = privacy.epsilon, privacy.sensitivity
    cap = given.get("cap") or math.ceil(-math.log(_RARE) * sensitivity / epsilon)
    return discrete_laplace(epsilon, int(cap), sensitivity)


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells of one published table.

    Attributes:
      protected: Where they come from.
      number: The number of their block in the design.
      levels: What they are crossed by.
    """

    protected: Protected
    number: int
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, protected: Protected, table: Margins) -> TableCells:
        """The largest margin that a formula names; all its cells must be shown.

        Args:
          protected: The release.
          table: Its name: `"region*sex"`, `"region:sex"` or `[("region", "sex")]`.
        """
        block, number = _place(protected.design.require_variables("tables to choose"), table)
        found = cls(protected, number, tuple(lev for lev in block.levels if lev is not None))
        if protected.hidden[found.where].any():
            raise DesignError(
                f"some cells of {block.name} are not shown, so the table is incomplete. "
                "Choose one that is shown in full."
            )
        return found

    @property
    def where(self) -> slice:
        """Positions among the published cells."""
        return self._design.slice_of(self.number)

    @property
    def values(self) -> Array:
        """Released values of the cells that can occur."""
        z = np.asarray(self.protected.z[self.where])
        status = self.protected.status
        return z if status is None else z[status[self.where] != CellStatus.structural_zero]

    def crossing(self) -> Array:
        """Released values, an axis for each variable; every combination must be possible."""
        size = self._design.blocks[self.number].size
        if len(self.values) < size:
            raise DesignError(
                f"{size - len(self.values)} of {size} combinations cannot occur, and that alone is "
                "an association. Choose a table without structural zeros."
            )
        return block_array(self._design, self.number, np.asarray(self.protected.z))

    @property
    def are_inner(self) -> bool:
        """Whether each of them holds a single inner cell."""
        return bool((self.protected.design.column_sizes[self.where] <= 1).all())

    @property
    def _design(self) -> StructuredDesign:
        return self.protected.design.require_variables("tables")


def block_array(design: StructuredDesign, k: int, values: Array) -> Array:
    """A block with an axis for each of its variables; cells outside the support are zero."""
    block = design.blocks[k]
    flat = np.zeros(block.size, dtype=values.dtype)
    flat[design.block_cells(k)] = values[design.slice_of(k)]
    return flat.reshape([len(level) for level in block.levels if level is not None])


def _place(design: StructuredDesign, table: Margins) -> tuple[Block, int]:
    """The block that a formula names, and its number among the published ones."""
    term = max(parse(table), key=len)
    blocks = resolve(design.axes, [term])
    if len(blocks) > 1:
        names = ", ".join(block.name for block in blocks)
        raise ParameterError(
            f"{margin_name(term)} stands for several tables ({names}). Name the level of each "
            "variable, as in 'region[county]*sex'."
        )
    published = [block.levels for block in design.blocks]
    if blocks[0].levels not in published:
        names = ", ".join(block.name for block in design.blocks)
        raise DesignError(f"{margin_name(term)} is not published. Published tables are: {names}.")
    return blocks[0], published.index(blocks[0].levels)
