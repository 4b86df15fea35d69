"""Recorded suppression patterns of other programs: tables, what was suppressed, at what cost."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from discreet.suppress import Pattern

SHARED = Path(__file__).parents[2] / "shared"
FOLDER = SHARED / "reference" / "suppression"
NESTED = {
    "freq_hier_300": {"region": ["county", "region"]},
    "freq_hier_3000": {"region": ["state", "county", "region"]},
    "freq_hier_20000": {"region": ["state", "county", "region"], "age": ["band", "age"]},
    "freq_linked": {"region": ["county", "region"]},
}
LINKED = "region*age + region[county]*age*job + region*sex + region[county]*job*sex"
COUNTS = ["freq_flat_300", "freq_hier_300", "freq_intervals_150", "freq_linked"]
COUNTS += ["freq_flat_3000", "freq_hier_3000", "freq_flat_20000", "freq_hier_20000"]
MAGNITUDES = ["mag_indiv_act_size", "mag_intervals_250", "mag_linked", "mag_singleton_500"]
MAGNITUDES += ["mag_skew_500", "mag_enterprise_act_product", "mag_enterprise_act_region"]
MAGNITUDES += ["mag_indiv_act_nuts", "mag_skew_3000", "mag_skew_17000"]
LINKED_SUMS = "region*trade[sector] + region[county]*trade + region*size"
LINKED_SUMS += " + region[county]*trade[sector]*size"
MISSING = {"act": ("00", "Z00")}  # of the enterprise file: never sensitive
# All ways of one program are asked for the same; what it was asked for itself may be less.
OPEN = dc.Suppress(dc.rules.Threshold(3))
LINKED_WAYS = ("global", "global_x", "super_consistent", "consistent", "back_tracking", "local")
OTHER_WAYS = ("gauss", "simpleheuristic", "simpleheuristic_old", "hitas", "hypercube")
RULES = {
    "zeros_protected": dc.Suppress(dc.rules.Threshold(3, zeros=True)),
    "zeros_open": OPEN,
    "zeros_open_secondary_zeros": dc.Suppress(dc.rules.Threshold(3), zeros=True),
    "no_requirement": OPEN,
    "protection_intervals": OPEN,
    "range_min_4": dc.Suppress(dc.rules.Threshold(3, width=4)),
    **dict.fromkeys(LINKED_WAYS, OPEN),
    **dict.fromkeys((f"sdctable_{way}" for way in OTHER_WAYS), OPEN),
}


@dataclass(frozen=True)
class Recorded:
    """One run of another program.

    Attributes:
      name: The table and the call.
      table: The table.
      method: Our method with the same rule.
      pattern: What the other program suppressed.
      cpu: Its CPU seconds, where they are known.
    """

    name: str
    table: dc.Table
    method: dc.Suppress
    pattern: Pattern
    cpu: float | None


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


def recorded_sums() -> Iterator[Recorded]:
    """The recorded runs on magnitudes, small tables first; ours holds against contributors too."""
    for name in MAGNITUDES:
        case = json.loads((FOLDER / f"{name}.json").read_text())
        runs = [run for run in case["runs"] if "status" in run]  # the others did not finish
        table = _table_of_sums(name, case)
        for run in runs:
            pattern = Pattern.from_labels(table, _letters(table, case, run["status"]))
            method = dc.Suppress(_rules(name, run))
            label = f"{name} {run['label']}"
            yield Recorded(label, table, method, pattern, run.get("cpu_seconds"))


def _rules(name: str, run: dict[str, Any]) -> list[Any]:
    is_dominance = run["label"].startswith("dominance")
    rules = (
        [dc.rules.Dominance(1, 80), dc.rules.Dominance(2, 90)]
        if is_dominance
        else [dc.rules.PPercent(10)]
    )
    return [
        dc.suppress.Exempt(rule, codes=MISSING) if "enterprise" in name else rule for rule in rules
    ]


def _table_of_sums(name: str, case: dict[str, Any]) -> dc.Table:
    call, variables = case["runs"][0]["call"], list(case["cells"]["levels"])
    value, who = (re.search(rf'{k} = "(\w+)"', call)[1] for k in ("numVar", "contributorVar"))  # type: ignore[index]
    frame = _records(case)
    used = dict.fromkeys(re.findall(r"\w+", call.split("formula = ~")[1]))
    above = [c for c in used if c in frame.columns and c not in variables]
    trees = {v: dc.Hierarchy.from_columns(frame, [*_over(frame, v, above), v]) for v in variables}
    return dc.Table.from_contributions(
        frame.astype({value: float}),
        LINKED_SUMS if name == "mag_linked" else "*".join(variables),
        value=value,
        contributor=who,
        hierarchies=trees,
        support="occurring",
    )


def _records(case: dict[str, Any]) -> pd.DataFrame:
    file = Path(case["input"]["csv"])
    is_ours = file.parts[0] == "inputs"
    path = FOLDER / f"{file}.gz" if is_ours else SHARED / "data" / "business" / file.name
    frame = pd.read_csv(path, dtype=str)
    return frame.assign(ID=np.arange(len(frame))) if "ID" in case["input"]["columns"] else frame


def _over(frame: pd.DataFrame, variable: str, columns: list[str]) -> list[str]:
    """The columns that are levels above a variable, coarse ones first."""
    nested = [c for c in columns if frame.groupby(variable)[c].nunique().max() == 1]
    return sorted(nested, key=lambda c: frame[c].nunique())


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
