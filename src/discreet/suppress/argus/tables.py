"""Finished tables of τ-ARGUS, read and written: `.tab` files with their metadata."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask, Real, Whole
from discreet.columns import Column
from discreet.design.axis import Axis
from discreet.design.formula import Term
from discreet.design.hierarchy import Hierarchy
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread
from discreet.errors import DataError, DesignError
from discreet.files import OWNER_ONLY, write_text
from discreet.frames import Frame
from discreet.records.rda import Metadata, Variable, numbered_rows, read_metadata
from discreet.tables.from_frames import published_axis, published_positions
from discreet.tables.magnitude import NOBODY, CellContributions, Contributions
from discreet.tables.truth import CellValues, TrueTable

SAFE, UNSAFE, PROTECTED, SECONDARY, EMPTY = "S", "U", "P", "M", "E"
"""The status of a cell: safe, sensitive, not to be suppressed, suppressed for others, empty."""
_NUMBERED = {
    **dict.fromkeys(["1", "2"], SAFE),
    **dict.fromkeys(["3", "4", "5", "6", "7", "8", "9"], UNSAFE),
    "10": PROTECTED,
    **dict.fromkeys(["11", "12"], SECONDARY),
    **dict.fromkeys(["13", "14"], EMPTY),
}
SomeTable = TypeVar("SomeTable", bound=TrueTable)
_ROLES = {"status": "STATUS", "lower": "LOWERPL", "upper": "UPPERPL", "cost": "COSTVAR"}


@dataclass(frozen=True, eq=False)
class ArgusTable(Generic[SomeTable]):
    """**Confidential.** A table of τ-ARGUS: true values and the status of every published cell.

    Attributes:
      table: The table; its contributions are the response, where the file has frequencies.
      response: Name of the column that is published.
      status: `S`, `U`, `P`, `M` or `E` for each published cell, `E` for those without a row.
      lower: How far below its value a cell's interval must reach; `None` when not given.
      upper: How far above its value it must reach.
      cost: What it costs to suppress each cell; `None` when not given.
      metadata: The file's columns.
    """

    table: SomeTable
    response: str
    status: NDArray[np.str_]
    lower: Real | None
    upper: Real | None
    cost: Real | None
    metadata: Metadata


def read_table(
    path: str | Path,
    metadata: str | Path | Metadata,
    *,
    response: str | None = None,
    folder: str | Path | None = None,
    decimal: str = ".",
) -> ArgusTable[TrueTable]:
    """A finished table: every combination of codes and totals, empty where it has no row.

    A response beside a column of frequencies is a magnitude, one without is a count.

    Args:
      path: The `.tab` file.
      metadata: The `.rda` file, or what was read from it.
      response: The column that is published; by default the first with numbers and no other role.
      folder: Where the `.hrc` files lie, if not beside the metadata or the table.
      decimal: The decimal sign.

    Raises:
      DataError: A line cannot be read or does not fit; the message has its number.
    """
    about = metadata if isinstance(metadata, Metadata) else read_metadata(metadata)
    beside = Path(path if isinstance(metadata, Metadata) else metadata).parent
    lines, rows = numbered_rows(path, about, decimal, keeps_missing=True)
    rows = _with_totals(rows, about)
    value = _response(about, response)
    design = _design(about, rows, beside if folder is None else Path(folder))
    where = published_positions(design, rows, lines)
    cell, times = np.unique(where, return_counts=True)
    for twice in cell[times > 1][:1]:
        one, two = (lines[row] for row in np.flatnonzero(where == twice)[:2].tolist())
        raise DataError(f"lines {one} and {two} are of the same cell.")

    def cells(variable: Variable | None) -> Real | None:
        """Numbers in the places of their cells; cells without a row or a number have zero."""
        if variable is None:
            return None
        return spread(
            rows.column(variable.name).fill_null(0.0).to_numpy(), where, design.n_published
        )

    roles = {name: _only(about, role) for name, role in _ROLES.items()}
    return ArgusTable(
        _table(about, value, design, cells),
        value.name,
        _statuses(about, rows, roles["status"], where, lines, design.n_published),
        cells(roles["lower"]),
        cells(roles["upper"]),
        cells(roles["cost"]),
        about,
    )


def _response(about: Metadata, name: str | None) -> Variable:
    if name is not None:
        return about.variable(name)
    roles = ("SHADOW", "COSTVAR", "LOWERPL", "UPPERPL", "MAXSCORE", "FREQUENCY", "WEIGHT")
    plain = [v for v in about.with_option("NUMERIC") if not any(map(v.has, roles))]
    found = plain or about.with_option("FREQUENCY")
    if not found:
        raise DataError("the metadata have no column of numbers to be published.")
    return found[0]


def _only(about: Metadata, role: str) -> Variable | None:
    found = about.with_option(role)
    if len(found) > 1:
        raise DataError(f"the metadata have {len(found)} columns with <{role}>; one is possible.")
    return found[0] if found else None


def _design(about: Metadata, rows: Frame, folder: Path) -> ProductDesign:
    if not about.dimensions:
        raise DataError("the metadata have no <RECODEABLE> column, so no variable spans the table.")
    axes = []
    for variable in about.dimensions:
        codes = rows.column(variable.name).unique().to_pylist()
        below = [code for code in codes if code != variable.total]
        tree = tree_with_missing(variable, folder, below)
        trees, name, total = None if tree is None else [tree], variable.name, variable.total
        axes.append(published_axis(rows, name, trees, declared=False, total=total))
    # A table of τ-ARGUS shows every crossing of some of its variables, the total among them.
    names, sizes = [axis.name for axis in axes], range(len(axes), -1, -1)
    margins: list[Term] = [term for n in sizes for term in itertools.combinations(names, n)]
    return ProductDesign(axes, margins)


def tree_with_missing(variable: Variable, folder: Path, codes: Sequence[str]) -> Hierarchy | None:
    """The hierarchy of a variable, with the codes for missing values that occur."""
    tree = variable.hierarchy(folder, [c for c in codes if c not in variable.missing])
    if tree is None:
        return None
    # Codes for missing values stand in no `.hrc` file; they lie right under the total.
    more = [code for code in variable.missing if code in codes and code not in tree]
    return replace(tree, parents={**tree.parents, **dict.fromkeys(more, tree.root)})


def _with_totals(rows: Frame, about: Metadata) -> Frame:
    """The rows with the code of the total where a code is left empty."""
    for variable in about.dimensions:
        places, codes = rows.column(variable.name).encoded()
        shown = Column([code or variable.total for code in codes], "string").take(places)
        rows = rows.with_column(variable.name, shown)
    return rows


def _table(about: Metadata, value: Variable, design: ProductDesign, cells: Any) -> TrueTable:
    frequency, sums = cells(_only(about, "FREQUENCY")), cells(value)
    count = sums if frequency is None else frequency
    if frequency is None and (count != np.rint(count)).any():
        raise DataError(
            f"column {value.name!r} holds numbers that are no counts, and no column has "
            "<FREQUENCY>: the number of contributors of each cell is needed."
        )
    inner, values = design.inner_in_published(), CellValues(count)
    table = TrueTable(design, values, CellValues(values.count[inner]))
    if frequency is None or value.has("FREQUENCY"):
        return table
    largest = [cells(variable) for variable in about.with_option("MAXSCORE")]
    sizes = np.stack(largest, axis=1) if largest else np.zeros((len(sums), 0))
    # The file says how much the largest contribute, but not who they are.
    owner = np.full(sizes.shape, NOBODY, dtype=np.int64)
    given = CellContributions(sums, np.abs(sums), values.count, np.abs(sizes), owner)
    return replace(table, contributions=Contributions(value.name, given, given.take(inner)))


def _statuses(
    about: Metadata,
    rows: Frame,
    column: Variable | None,
    where: Whole,
    lines: Sequence[int],
    n: int,
) -> NDArray[np.str_]:
    """The status of each published cell."""
    status = np.full(n, EMPTY, dtype="<U1")
    if column is None:
        status[where] = SAFE
        return status
    known = {word: word for word in (SAFE, UNSAFE, PROTECTED, SECONDARY, EMPTY)} | _NUMBERED
    said = about.statuses
    known |= {said["SAFE"]: SAFE, said["UNSAFE"]: UNSAFE, said["PROTECT"]: PROTECTED}
    texts = rows.column(column.name).to_pylist()
    for line, text, place in zip(lines, texts, where.tolist(), strict=True):
        if text not in known:
            raise DataError(
                f"line {line}: status {text!r} is not known. The metadata can say how statuses are "
                'written, e.g. <UNSAFE> "U".'
            )
        status[place] = known[text]
    return status


Columns = dict[str, Array]
_KEPT = ("DISTANCE", "CODELIST")
_MOST_DECIMALS = 6  # sums in floating point end in digits that nobody wrote


def write_table(
    table: TrueTable,
    path: str | Path,
    *,
    separator: str = ";",
    status: Array | None = None,
    lower: Array | None = None,
    upper: Array | None = None,
    cost: Array | None = None,
    metadata: Metadata | None = None,
) -> dict[str, Path]:
    """Write a table with true values for τ-ARGUS, files that only their owner can read.

    Beside `table.tab` lie `table.rda` and, for each variable with a hierarchy, `table_name.hrc`.
    Cells without records have no row.

    Args:
      table: A table of every crossing of its variables and totals.
      path: The `.tab` file.
      separator: What stands between values.
      status: A letter for each published cell: `S` safe, `U` unsafe, `P` not to be suppressed.
      lower: How far below its value each cell's interval must reach.
      upper: How far above its value it must reach.
      cost: What it costs to suppress each cell.
      metadata: How the columns were described before: codes for missing values, distances and
        decimals of columns of the same names are kept. Decimals are found in the values otherwise.

    Returns:
      The files that were written, by what they hold.
    """
    target, design = Path(path), table.design.require_variables("codes, so it cannot be written")
    wanted = math.prod(len(axis.levels) + 1 for axis in design.axes)
    if len(design.blocks) != wanted:
        raise DesignError(
            "a table of τ-ARGUS shows every crossing of its variables, their levels and totals; "
            f"this one has {len(design.blocks)} of {wanted} margins. Write each table of a linked "
            "set by itself, e.g. 'activity*region'."
        )
    given = {"status": status, "lower": lower, "upper": upper, "cost": cost}
    before = {} if metadata is None else {v.name: v for v in metadata.variables}
    values, variables = _columns(table, {k: v for k, v in given.items() if v is not None}, before)
    files = {"table": target, "metadata": target.with_suffix(".rda")}
    axes = []
    for axis in design.axes:
        name = f"{target.stem}_{re.sub(r'[^A-Za-z0-9]+', '_', axis.name)}.hrc"
        options: dict[str, tuple[str, ...]] = {"RECODEABLE": (), "TOTCODE": (axis.total,)}
        known = before.get(axis.name, Variable(axis.name))
        options |= {key: known.options[key] for key in _KEPT if known.has(key)}
        if (tree := tree_of(axis)).depth > 1:
            files[axis.name] = target.with_name(name)
            _write(files[axis.name], _hrc(tree))
            options |= {"HIERARCHICAL": (), "HIERCODELIST": (name,), "HIERLEADSTRING": ("@",)}
        axes.append(Variable(axis.name, missing=known.missing, options=options))
    about = Metadata((*axes, *variables), separator)
    _write(files["metadata"], about.text)
    _write(target, _text(design, values, separator, table.z > 0))
    return files


def _hrc(tree: Hierarchy) -> str:
    """The text of an `.hrc` file; blanks before a code follow its signs."""
    plain = Hierarchy(tree.root, {c.lstrip(): p.lstrip() for c, p in tree.parents.items()})
    lines = zip(plain.to_hrc().splitlines(), tree.parents, strict=True)
    return "".join(f"{line.removesuffix(code.lstrip())}{code}\n" for line, code in lines)


def tree_of(axis: Axis) -> Hierarchy:
    """The one hierarchy of a variable's codes.

    Raises:
      DesignError: Its groups overlap, so there are several.
    """
    nodes = dict.fromkeys(code for level in axis.levels for code in level.codes)
    # The largest groups first: the parent of a group is the smallest group so far of its leaves.
    above = np.full(len(axis), axis.total, dtype=object)
    parents: dict[str, str] = {}
    for code in sorted(nodes, key=lambda code: -len(axis.node_leaves[code])):
        leaves = axis.node_leaves[code]
        groups = dict.fromkeys(above[leaves].tolist())
        if len(groups) > 1:
            raise DesignError(
                f"group {code!r} of variable {axis.name!r} overlaps with {list(groups)[-1]!r}; a "
                "table of τ-ARGUS has one hierarchy for each variable."
            )
        parents[code] = next(iter(groups))
        above[leaves] = code
    in_order = sorted(parents, key=lambda code: int(axis.node_leaves[code].min()))
    return Hierarchy(axis.total, {code: parents[code] for code in in_order})


def _columns(
    table: TrueTable, more: Mapping[str, Array], before: Mapping[str, Variable]
) -> tuple[Columns, list[Variable]]:
    """Columns of values, and how the metadata describe them."""
    given = table.contributions
    roles: dict[str, tuple[Array, tuple[str, ...]]] = {}
    if given is None:
        roles["count"] = (table.z, ("NUMERIC",))
    else:
        roles[given.value] = (given.sum, ("NUMERIC",))
        roles["contributors"] = (given.count, ("FREQUENCY",))
        for k in range(given.largest.shape[1]):
            roles[f"largest_{k + 1}"] = (given.largest[:, k], ("MAXSCORE",))
    for name, array in more.items():
        if len(array) != table.design.n_published:
            raise DataError(
                f"{name} needs a value for each of {table.design.n_published:,} published cells, "
                f"got {len(array):,}."
            )
        role = _ROLES[name]
        roles[name] = (array, (role,) if name == "status" else ("NUMERIC", role))
    variables = []
    for name, (array, said) in roles.items():
        options: dict[str, tuple[str, ...]] = dict.fromkeys(said, ())
        known = before.get(name)
        digits = known.decimals if known is not None else _decimals(array)
        if digits and said != ("STATUS",):
            options["DECIMALS"] = (str(digits),)
        variables.append(Variable(name, missing=known.missing if known else (), options=options))
    return {name: array for name, (array, _) in roles.items()}, variables


def _decimals(values: Array) -> int:
    """How many decimals tell the values apart from whole numbers."""
    if values.dtype.kind != "f":
        return 0
    near = 1e-9 * np.maximum(np.abs(values), 1.0)
    fits = (bool((np.abs(values - np.round(values, d)) <= near).all()) for d in range(9))
    return min(next((d for d, is_enough in enumerate(fits) if is_enough), 9), _MOST_DECIMALS)


def _text(design: StructuredDesign, values: Columns, separator: str, shown: Mask) -> str:
    codes = [np.array(names, dtype=object)[index] for index, names in design.published_codes()]
    lines = []
    for k in np.flatnonzero(shown).tolist():
        cell = [column[k] for column in codes]
        for code in cell:
            if separator in code or '"' in code or code != code.rstrip():
                raise DataError(
                    f"code {code!r} cannot stand in a file separated by {separator!r}; recode it "
                    "or choose another separator=."
                )
        lines.append(separator.join([*cell, *(_value(column[k]) for column in values.values())]))
    return "".join(f"{line}\n" for line in lines)


def _value(value: Any) -> str:
    # Floats as they are, without digits that were lost; whole ones as whole numbers.
    if isinstance(value, (float, np.floating)):
        return repr(float(value)) if value != round(float(value)) else str(int(value))
    return str(value)


def _write(path: Path, text: str) -> None:
    write_text(path, text, OWNER_ONLY)
