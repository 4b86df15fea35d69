"""What is known or said of single cells: a-priori lists, earlier releases, codes for partners.

`with_apriori` makes arguments of `Suppress` of an a-priori file. `consistent` follows an earlier
release of the same records (`Suppress.follow` follows editions). `write_transmission` sends a
pattern with its true values to a partner who may see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.columns import Column
from discreet.delimited import write_delimited
from discreet.design.codes import cell_text
from discreet.errors import DataError, DesignError, ParameterError
from discreet.files import OWNER_ONLY, written_whole
from discreet.rules.counts import PrimaryRule, Threshold
from discreet.rules.magnitudes import PQ, Dominance, FewContributors
from discreet.suppress.argus import APriori, AprioriCells, read_apriori
from discreet.suppress.exceptions import Exempt, Listed
from discreet.suppress.pattern import Pattern, published_values
from discreet.suppress.plan import named_cells
from discreet.suppress.suppress import Suppress
from discreet.tables.protected import CellStatus, Protected
from discreet.tables.show import frame_of
from discreet.tables.truth import TrueTable


def with_apriori(
    table: TrueTable,
    rules: Sequence[PrimaryRule] | PrimaryRule,
    apriori: APriori | str | Path,
    *,
    range: float = 10.0,
) -> dict[str, Any]:
    """Arguments of `Suppress` that follow an a-priori file.

    Unsafe cells are sensitive, safe ones are not, cells not to be suppressed are frozen, and costs
    become factors on the cells' values.

    Args:
      table: The table; codes of the file stand in the order of its variables.
      rules: The rules that hold beside the file.
      apriori: The file, or what was read from it.
      range: Percentage of its value that the interval of a cell that the file calls unsafe must
        reach below and above, where the file does not say.
    """
    read = apriori if isinstance(apriori, APriori) else read_apriori(apriori)
    names = tuple(axis.name for axis in table.design.axes)
    known = replace(read, variables=read.variables or names)
    said = known.cells(table.design)
    several = list(rules) if isinstance(rules, Sequence) else [rules]
    wrapped: list[PrimaryRule] = [Exempt(rule, apriori=known) for rule in several]
    if said.unsafe.any():
        wrapped.append(Listed(known, range))
    cells = [table.design.cell(int(k)) for k in np.flatnonzero(said.protected)]
    return {"rules": wrapped, "frozen": cells, "priorities": _factors(table, said)}


def _factors(table: TrueTable, said: AprioriCells) -> list[tuple[dict[str, str], float]]:
    """What the costs of the file are of the cells' values; empty cells have no value to compare."""
    for k in np.flatnonzero(said.cost == 0):
        raise DataError(
            f"the a-priori file gives cell {table.design.cell(int(k))} a cost of 0, and costs must "
            "be positive. Give a small cost to a cell that is rather suppressed than others."
        )
    values = np.abs(published_values(table)).astype(np.float64)
    priced = np.flatnonzero((said.cost > 0) & (values > 0))
    return [(table.design.cell(int(k)), float(said.cost[k] / values[k])) for k in priced]


def consistent(method: Suppress, table: TrueTable, earlier: Protected) -> Suppress:
    """The method for a table that has cells in common with an earlier release of the same records.

    Cells that were shown are shown again, even if the rules call them sensitive now; cells that
    were suppressed stay suppressed. The intervals of the others are proven with all of them known.

    Args:
      method: How the table is to be suppressed.
      table: The new table; it has all cells that the earlier release shows.
      earlier: What was published, by suppression.
    """
    if not isinstance(earlier, Protected):
        raise ParameterError(f"an earlier release was expected, got {type(earlier).__name__}.")
    # Designs may order variables, codes and margins differently: cells are the same by their codes.
    here, before = named_cells(table.design), named_cells(earlier.design)
    status = np.zeros(len(earlier.z), np.int8) if earlier.status is None else earlier.status
    was_shown = status == CellStatus.published
    shown = {name for (name, _), is_shown in zip(before, was_shown, strict=True) if is_shown}
    hidden = {name for name, _ in before} - shown
    for name in shown - {name for name, _ in here}:
        cell = cell_text(dict(sorted(name)))
        raise DesignError(
            f"the earlier release shows cell {cell}, which this table does not have. Tabulate the "
            "margins of both together, so that what is known of them counts."
        )
    # A cell that is not sensitive now is only frozen: a release of forced cells says so.
    sensitive = method.primary(table).primary
    again = [(cell, bool(sensitive[k])) for k, (name, cell) in enumerate(here) if name in shown]
    return replace(
        method,
        forced=(*method.forced, *(cell for cell, is_sensitive in again if is_sensitive)),
        frozen=(*method.frozen, *(cell for cell, is_sensitive in again if not is_sensitive)),
        forbidden=(*method.forbidden, *(cell for name, cell in here if name in hidden)),
    )


FREE, CONFIDENTIAL, SECONDARY = "F", "C", "D"
"""Codes of `CL_CONF_STATUS`: free, confidential, hidden by the sender to protect others."""
SMALL_COUNT, BY_ONE, BY_TWO, CONCENTRATION = "A", "O", "T", "M"
"""Why a cell is confidential: few units, dominance by one or two, another concentration."""


def confidentiality(rule: PrimaryRule) -> str:
    """The code of `CL_CONF_STATUS` for cells that a rule calls sensitive."""
    inside = getattr(rule, "rule", rule)
    if isinstance(inside, (Threshold, FewContributors)):
        return SMALL_COUNT
    if isinstance(inside, Dominance):
        return {1: BY_ONE, 2: BY_TWO}.get(inside.n, CONCENTRATION)
    return CONCENTRATION if isinstance(inside, PQ) else CONFIDENTIAL


def write_transmission(
    pattern: Pattern, path: str | Path, *, rules: Sequence[PrimaryRule] = (), dataflow: str
) -> Path:
    """Write all true values as SDMX-CSV that only its owner can read.

    `CONF_STATUS` says of each cell whether it is free (`F`), hidden to protect others (`D`) or
    sensitive, and why: few units (`A`), dominance by one (`O`) or two (`T`), another measure of
    concentration (`M`), or another reason (`C`). The file is for partners who are entitled to
    confidential data, such as Eurostat, and never for publication.

    Args:
      pattern: The cells and their states.
      path: The file, with the ending `.csv`.
      rules: The rules that made the pattern; without them all sensitive cells have `C`.
      dataflow: The data flow, e.g. `"EXAMPLE:TURNOVER(1.0)"`.
    """
    if Path(path).suffix.lower() != ".csv":
        raise ParameterError(f"a transmission is a .csv file, got {str(path)!r}.")
    cells = frame_of(
        pattern.design,
        {
            "OBS_VALUE": pattern.z,
            "OBS_STATUS": np.full(len(pattern.z), "A"),
            "CONF_STATUS": _confidentiality_codes(pattern, rules),
        },
    )
    flow = Column.of_codes(np.zeros(len(cells), dtype=np.int32), [dataflow])
    with written_whole(path, OWNER_ONLY) as temporary, temporary.open("wb") as file:
        file.writelines(write_delimited(cells.with_column("DATAFLOW", flow, 0)))
    return Path(path)


def _confidentiality_codes(pattern: Pattern, rules: Sequence[PrimaryRule]) -> Any:
    # Reasons are kept as texts. Of two rules with the same reason the first one gave it.
    code_of = {rule.why: confidentiality(rule) for rule in reversed(rules)}
    codes = np.full(len(pattern.z), FREE, dtype=object)
    codes[pattern.secondary] = SECONDARY
    for k in np.flatnonzero(pattern.primary).tolist():
        codes[k] = code_of.get(pattern.reasons.get(k, ""), CONFIDENTIAL)
    return codes
