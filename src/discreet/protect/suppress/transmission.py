"""True values with SDMX codes of confidentiality, for a partner who may see them. Confidential."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.files import OWNER_ONLY, written_whole
from discreet.protect.suppress.dominance import PQ, Dominance, FewContributors
from discreet.protect.suppress.pattern import Pattern
from discreet.protect.suppress.rules import Rule, Threshold
from discreet.tables.show import frame_of

FREE, CONFIDENTIAL, SECONDARY = "F", "C", "D"
"""Codes of `CL_CONF_STATUS`: free, confidential, hidden by the sender to protect others."""

SMALL_COUNT, BY_ONE, BY_TWO, CONCENTRATION = "A", "O", "T", "M"
"""Why a cell is confidential: few units, dominance by one or two, another concentration."""


def confidentiality(rule: Rule) -> str:
    """The code of `CL_CONF_STATUS` for cells that a rule calls sensitive."""
    inside = getattr(rule, "rule", rule)
    if isinstance(inside, (Threshold, FewContributors)):
        return SMALL_COUNT
    if isinstance(inside, Dominance):
        return {1: BY_ONE, 2: BY_TWO}.get(inside.n, CONCENTRATION)
    return CONCENTRATION if isinstance(inside, PQ) else CONFIDENTIAL


def write_transmission(
    pattern: Pattern, path: str | Path, *, rules: Sequence[Rule] = (), dataflow: str
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
    import pyarrow as pa
    import pyarrow.csv

    if Path(path).suffix.lower() != ".csv":
        raise ParameterError(f"a transmission is a .csv file, got {str(path)!r}.")
    cells = frame_of(
        pattern.design,
        {
            "OBS_VALUE": pattern.z,
            "OBS_STATUS": np.full(len(pattern.z), "A"),
            "CONF_STATUS": _codes(pattern, rules),
        },
    )
    flow = pa.array([dataflow] * len(cells), pa.string())
    with written_whole(path, OWNER_ONLY) as temporary:
        pyarrow.csv.write_csv(cells.add_column(0, "DATAFLOW", flow), temporary)
    return Path(path)


def _codes(pattern: Pattern, rules: Sequence[Rule]) -> Any:
    code_of = {rule.why: confidentiality(rule) for rule in reversed(rules)}
    codes = np.full(len(pattern.z), FREE, dtype=object)
    codes[pattern.secondary] = SECONDARY
    for k in np.flatnonzero(pattern.primary).tolist():
        codes[k] = code_of.get(pattern.reasons.get(k, ""), CONFIDENTIAL)
    return codes
