"""What τ-ARGUS writes of a protected table: CSV, code and value, SBS, and the JJ format.

Types 1 to 4 show nothing of hidden cells. Type 5, the intermediate format, is `write_table`. Type 6
holds true values, for programs that look for suppressions.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask
from discreet.rules.counts import lines
from discreet.suppress.pattern import PRIMARY, SECONDARY, Pattern

SHOWN, BY_RULE, TO_PROTECT, WITHOUT_RECORDS, HIDDEN = "1", "3", "11", "14", "c"
"""Statuses in files: those of τ-ARGUS, and one for all hidden cells where kinds are not told."""
_LETTERS = {SHOWN: "V", WITHOUT_RECORDS: "V", BY_RULE: "A", TO_PROTECT: "D", HIDDEN: "c"}
_NO_LIMIT = 1e12  # stands for "any value" in the JJ format, which has no other word for it


@dataclass(frozen=True, eq=False)
class OutputCells:
    """The cells of one table in the order in which they are written.

    Attributes:
      names: The spanning variables.
      codes: A code of each variable for every cell.
      response: Name of what is published.
      value: What is published; of no meaning where a cell is hidden.
      hidden: Which cells are not shown.
      empty: Which cells have no records.
      state: `PRIMARY` or `SECONDARY` for hidden cells, where kinds may be told; else `None`.
      decimals: How many decimals are written.
    """

    names: tuple[str, ...]
    codes: list[tuple[str, ...]]
    response: str
    value: Array
    hidden: Mask
    empty: Mask
    state: NDArray[np.int8] | None
    decimals: int

    def shown(self, k: int) -> str:
        """A cell as it is written: a number, `x` for hidden, `-` for empty."""
        if self.hidden[k]:
            return "x"
        return "-" if self.empty[k] else f"{self.value[k]:.{self.decimals}f}"

    def status(self, k: int) -> str:
        """The status of a cell; hidden ones have one status unless kinds may be told."""
        if self.hidden[k]:
            kinds = {PRIMARY: BY_RULE, SECONDARY: TO_PROTECT}
            return HIDDEN if self.state is None else kinds[int(self.state[k])]
        return WITHOUT_RECORDS if self.empty[k] else SHOWN


def output_text(cells: OutputCells, kind: int, *, status: bool, skip_empty: bool) -> str:
    """The text of types 1 to 4.

    Args:
      cells: The cells.
      kind: 1 a CSV table, 2 CSV for pivot tables, 3 code and value, 4 SBS.
      status: Whether a column of statuses follows the values (types 2 and 3).
      skip_empty: Whether cells without records are left out (types 2 to 4).
    """
    target = io.StringIO()
    if kind == 1:
        csv.writer(target, lineterminator="\n").writerows(_cross_last(cells))
        return target.getvalue()
    places = [k for k in range(len(cells.codes)) if not (skip_empty and cells.empty[k])]
    if kind == 4:
        rows = ([*cells.codes[k], cells.shown(k), _LETTERS[cells.status(k)]] for k in places)
        csv.writer(target, delimiter=";", lineterminator="\n").writerows(rows)
        return target.getvalue()
    if kind == 2:
        head = [*cells.names, cells.response, *(["Status"] if status else [])]
        target.write(",".join(f'"{name}"' for name in head) + "\n")
    for k in places:
        codes = ['"{}"'.format(code.replace('"', '""')) for code in cells.codes[k]]
        target.write(",".join([*codes, cells.shown(k), *([cells.status(k)] if status else [])]))
        target.write("\n")
    return target.getvalue()


def _cross_last(cells: OutputCells) -> list[list[str]]:
    """The last variable in columns, the others in rows."""
    columns = list(dict.fromkeys(codes[-1] for codes in cells.codes))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for k, codes in enumerate(cells.codes):
        rows.setdefault(codes[:-1], {})[codes[-1]] = cells.shown(k)
    body = [[*head, *(row.get(code, "-") for code in columns)] for head, row in rows.items()]
    return [[f"{cells.response} by {', '.join(cells.names)}"], [*cells.names[:-1], *columns], *body]


def jj_text(pattern: Pattern) -> str:
    """**Confidential.** The cells with values, costs and levels, and the equations between them."""
    n = len(pattern.z)
    costs = np.abs(pattern.z) if pattern.costs is None else pattern.costs
    zero = np.zeros(n)
    lower = zero if pattern.lower is None else pattern.lower
    upper = zero if pattern.upper is None else pattern.upper
    letters = np.where(pattern.primary, "u", np.where(pattern.secondary, "m", "s"))
    least = -_NO_LIMIT if pattern.is_signed else 0.0
    out = ["0", str(n)]
    for k in range(n):
        numbers: list[Any] = [pattern.z[k], costs[k], letters[k], least, _NO_LIMIT]
        numbers += [lower[k], upper[k], 0]
        out.append(" ".join([str(k), *(_plain(number) for number in numbers)]))
    equations = []
    for line in lines(pattern.design):
        order = np.argsort(line.parent, kind="stable")
        parents, starts = np.unique(line.parent[order], return_index=True)
        for parent, parts in zip(parents, np.split(line.child[order], starts[1:]), strict=True):
            terms = [f"{parent} (-1)", *(f"{part} (1)" for part in parts)]
            equations.append(f"0 {len(terms)} : {' '.join(terms)}")
    return "".join(f"{line}\n" for line in [*out, str(len(equations)), *equations])


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{float(value):.10g}"
