"""Tables for τ-ARGUS: a `.tab` file, its `.rda` metadata and the `.hrc` files of hierarchies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask
from discreet.design.axis import Axis
from discreet.design.formats.argus.metadata import Metadata, Variable
from discreet.design.hierarchy import Hierarchy
from discreet.design.structured import StructuredDesign
from discreet.errors import DataError, DesignError
from discreet.files import OWNER_ONLY, written_whole
from discreet.tables.truth import TrueTable

Columns = dict[str, Array]


def write_table(
    table: TrueTable,
    path: str | Path,
    *,
    separator: str = ";",
    status: Array | None = None,
    lower: Array | None = None,
    upper: Array | None = None,
    cost: Array | None = None,
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

    Returns:
      The files that were written, by what they hold.
    """
    target, design = Path(path), table.design
    design = design.structured("codes, so it cannot be written")
    _check_crossing(design)
    given = {"status": status, "lower": lower, "upper": upper, "cost": cost}
    values, variables = _columns(table, {k: v for k, v in given.items() if v is not None})
    files = {"table": target, "metadata": target.with_suffix(".rda")}
    axes = []
    for axis in design.axes:
        name = f"{target.stem}_{re.sub(r'[^A-Za-z0-9]+', '_', axis.name)}.hrc"
        tree = tree_of(axis)
        if tree.depth > 1:
            files[axis.name] = target.with_name(name)
            _write(files[axis.name], tree.to_hrc())
        axes.append(_dimension(axis, name if tree.depth > 1 else None))
    about = Metadata((*axes, *variables), separator)
    _write(files["metadata"], about.text)
    _write(target, _text(design, values, separator, table.z > 0))
    return files


def _check_crossing(design: StructuredDesign) -> None:
    """Refuse a table that is not the crossing of all levels and totals of its variables."""
    wanted = 1
    for axis in design.axes:
        wanted *= len(axis.levels) + 1
    if len(design.blocks) != wanted:
        raise DesignError(
            "a table of τ-ARGUS shows every crossing of its variables, their levels and totals; "
            f"this one has {len(design.blocks)} of {wanted} margins. Write each table of a linked "
            "set by itself, e.g. 'activity*region'."
        )


def tree_of(axis: Axis) -> Hierarchy:
    """The one hierarchy of a variable's codes.

    Raises:
      DesignError: Its groups overlap, so there are several.
    """
    nodes = dict.fromkeys(code for level in axis.levels for code in level.codes)
    above = np.full(len(axis), axis.total, dtype=object)  # the smallest group of each leaf so far
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


def _dimension(axis: Axis, file: str | None) -> Variable:
    options: dict[str, tuple[str, ...]] = {"RECODEABLE": (), "TOTCODE": (axis.total,)}
    if file is not None:
        options |= {"HIERARCHICAL": (), "HIERCODELIST": (file,), "HIERLEADSTRING": ("@",)}
    return Variable(axis.name, options=options)


def _columns(table: TrueTable, more: Mapping[str, Array]) -> tuple[Columns, list[Variable]]:
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
    words = {"status": "STATUS", "lower": "LOWERPL", "upper": "UPPERPL", "cost": "COSTVAR"}
    for name, array in more.items():
        if len(array) != table.design.n_published:
            raise DataError(
                f"{name} needs a value for each of {table.design.n_published:,} published cells, "
                f"got {len(array):,}."
            )
        is_number = name != "status"
        roles[name] = (array, ("NUMERIC", words[name]) if is_number else (words[name],))
    variables = [
        Variable(name, options=dict.fromkeys(said, ())) for name, (_, said) in roles.items()
    ]
    return {name: array for name, (array, _) in roles.items()}, variables


def _text(design: StructuredDesign, values: Columns, separator: str, shown: Mask) -> str:
    codes = [np.array(names, dtype=object)[index] for index, names in design.published_codes()]
    lines = []
    for k in np.flatnonzero(shown).tolist():
        cell = [_code(column[k], separator) for column in codes]
        lines.append(separator.join([*cell, *(_value(column[k]) for column in values.values())]))
    return "".join(f"{line}\n" for line in lines)


def _code(code: str, separator: str) -> str:
    if separator in code or '"' in code or code != code.strip():
        raise DataError(
            f"code {code!r} cannot stand in a file separated by {separator!r}; recode it or choose "
            "another separator=."
        )
    return code


def _value(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return repr(float(value)) if value != round(float(value)) else str(int(value))
    return str(value)


def _write(path: Path, text: str) -> None:
    with written_whole(path, OWNER_ONLY) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
