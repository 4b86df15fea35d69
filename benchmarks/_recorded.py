"""Recorded suppression patterns of R packages: tables, what was suppressed, and at what cost."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.protect.suppress.pattern import Pattern

FOLDER = Path(__file__).parents[2] / "shared" / "reference" / "suppression"
NESTED = {
    "freq_hier_300": {"region": ["county", "region"]},
    "freq_hier_3000": {"region": ["state", "county", "region"]},
    "freq_hier_20000": {"region": ["state", "county", "region"], "age": ["band", "age"]},
    "freq_linked": {"region": ["county", "region"]},
}
LINKED = "region*age + region[county]*age*job + region*sex + region[county]*job*sex"
COUNTS = ["freq_flat_300", "freq_hier_300", "freq_intervals_150", "freq_linked"]
COUNTS += ["freq_flat_3000", "freq_hier_3000", "freq_flat_20000", "freq_hier_20000"]
RULES = {
    "zeros_protected": dc.Suppress(dc.Threshold(3, zeros=True)),
    "zeros_open": dc.Suppress(dc.Threshold(3)),
    "zeros_open_secondary_zeros": dc.Suppress(dc.Threshold(3), zeros=True),
    "global_x": dc.Suppress(dc.Threshold(3)),
    "no_requirement": dc.Suppress(dc.Threshold(3)),
}


@dataclass(frozen=True)
class Recorded:
    """One run of another program.

    Attributes:
      name: The table and the call.
      table: The table.
      method: Our method with the same rule.
      pattern: What the other program suppressed.
      cpu: Its CPU seconds.
    """

    name: str
    table: dc.Table
    method: dc.Suppress
    pattern: Pattern
    cpu: float


def recorded() -> Iterator[Recorded]:
    """The recorded runs on counts, small tables first."""
    for name in COUNTS:
        case = json.loads((FOLDER / f"{name}.json").read_text())
        table = _table(name, case)
        for run in case["runs"]:
            if run["label"] in RULES:
                pattern = Pattern.from_labels(table, _letters(table, case, run["status"]))
                label = f"{name} {run['label']}"
                yield Recorded(label, table, RULES[run["label"]], pattern, run["cpu_seconds"])


def _table(name: str, case: dict[str, Any]) -> dc.Table:
    with gzip.open(FOLDER / "inputs" / f"{name}.csv.gz", "rt") as lines:
        header, *rows = (line.strip().split(",") for line in lines)
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    variables = list(case["cells"]["levels"])
    trees = {v: _tree(columns, levels) for v, levels in NESTED.get(name, {}).items()}
    frame: dict[str, Any] = {v: columns[v] for v in variables}
    frame["freq"] = [int(n) for n in columns["freq"]]
    margins = LINKED if name == "freq_linked" else "*".join(variables)
    return dc.Table.from_counts(frame, "freq", margins, hierarchies=trees)


def _tree(columns: dict[str, list[str]], levels: list[str]) -> dc.Hierarchy:
    parents = {
        code: parent
        for above, below in zip(["", *levels[:-1]], levels, strict=True)
        for code, parent in zip(
            columns[below],
            columns[above] if above else ["Total"] * len(columns[below]),
            strict=True,
        )
    }
    return dc.Hierarchy("Total", parents, level_names=("all", *levels))


def _letters(table: dc.Table, case: dict[str, Any], status: str) -> list[str]:
    """The letters of the recorded cells in the order of our design."""
    cells = case["cells"]
    theirs = zip(
        *([lv[i] for i in cells["index"][v]] for v, lv in cells["levels"].items()), strict=True
    )
    letter = dict(zip(theirs, status, strict=True))
    names = [axis.name for axis in table.design.axes]
    columns = [np.array(codes)[index] for index, codes in table.design.published_codes()]
    ours = zip(*(columns[names.index(v)].tolist() for v in cells["levels"]), strict=True)
    return [letter[cell] for cell in ours]
