"""Patterns of other programs with what they were found to disclose.

Small cases are golden files: invented tables, patterns and findings. `python -m
tests.assess.audit.peers` makes them from the reference files, where larger cases are as well.
"""

import csv
import gzip
import itertools
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from discreet import Design
from discreet.suppress import Pattern

FOLDER = Path(__file__).parents[4] / "shared" / "reference" / "suppression"
GOLDEN = Path(__file__).parents[2] / "golden"
SMALL = {
    "freq_flat_300": (
        "zeros_protected",
        "zeros_open_secondary_zeros",
        "sdctable_gauss",
        "sdctable_hypercube",
    ),
    "freq_hier_300": ("zeros_protected", "sdctable_hitas", "sdctable_simpleheuristic_old"),
    "freq_intervals_150": ("range_min_4",),
    "mag_skew_500": ("dominance_80_90", "p_percent_10"),
    "mag_singleton_500": ("p10_singleton_none", "p10_singleton_sub2Sum"),
    "mag_intervals_250": ("p10_protection_intervals",),
}
"""The runs that are golden files, by table."""
_NOT_VALUES = ("levels", "index", "n_contr")
_OF_RUN = ("label", "call", "status", "audit")


class Peer(NamedTuple):
    """A pattern, and what the reference says of it."""

    pattern: Pattern
    audit: dict


def golden(name):
    """The golden file of a table."""
    return GOLDEN / f"suppression_{name}.json"


def here(name):
    """Marks a test that needs a table, to be skipped where it is not."""
    exists = golden(name).exists() or FOLDER.exists()
    return pytest.mark.skipif(not exists, reason="no reference files here")


@cache
def content_of(name):
    """A table and its runs: published cells, leaves and values of inner cells, who is alone."""
    if golden(name).exists():
        return json.loads(golden(name).read_text())
    return from_reference(name)


def from_reference(name):
    """The content of a golden file from the reference files."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    cells = content["cells"]
    levels, (value, *_) = cells["levels"], [k for k in cells if k not in _NOT_VALUES]
    with gzip.open(FOLDER / (content["input"]["csv"] + ".gz"), "rt") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    above = {v: _above(rows, v, levels[v], [*levels, value, "company"]) for v in levels}
    amounts = {}
    for row in rows:
        each = amounts.setdefault(tuple(levels[v].index(row[v]) for v in levels), {})
        whose = row.get("company", "")
        each[whose] = each.get(whose, 0.0) + float(row[value])
    return {
        "levels": levels,
        "published": cells["index"],
        "above": above,
        "inner": dict(zip(levels, zip(*amounts, strict=True), strict=True)),
        "value": [sum(each.values()) for each in amounts.values()],
        **(_alone(amounts.values()) if name.startswith("mag") else {}),
        "runs": [_shortened(run) for run in content["runs"] if "audit" in run],
    }


def _alone(amounts):
    """For each inner cell its only contributor by number; -1 where there are several."""
    numbers = {}
    contributors = [[who for who, a in each.items() if a] for each in amounts]
    owner = [numbers.setdefault(who[0], len(numbers)) if who else -1 for who in contributors]
    return {"owner": owner, "lone": [int(len(who) == 1) for who in contributors]}


def _above(rows, variable, codes, others):
    """For each code of a variable those of the levels above it, by position."""
    columns = [n for n in rows[0] if n not in others and {row[n] for row in rows} <= set(codes)]
    found = {}
    for row in rows:
        found[codes.index(row[variable])] = [codes.index(row[c]) for c in columns]
    return {str(code): [*up, codes.index("Total")] for code, up in sorted(found.items())}


def _shortened(run):
    return {k: v for k, v in run.items() if k in _OF_RUN or k.startswith(("lomax", "upmin"))}


@cache
def table_of(name):
    """Inner × published matrix and the table's content."""
    content = content_of(name)
    place = {key: k for k, key in enumerate(zip(*content["published"].values(), strict=True))}
    pairs = []
    for i, codes in enumerate(zip(*content["inner"].values(), strict=True)):
        above = zip(codes, content["above"].values(), strict=True)
        each = [{code, *up[str(code)]} for code, up in above]
        pairs += [(i, place[key]) for key in itertools.product(*each) if key in place]
    i, k = np.array(pairs).T
    shape = (len(content["value"]), len(place))
    return sparse.csr_array((np.ones(len(i), dtype=np.int64), (i, k)), shape=shape), content


def peer(name, label):
    """One run of another program."""
    X, content = table_of(name)
    run = next(each for each in content["runs"] if each["label"] == label)
    y = np.array(content["value"], dtype=float)
    z = X.T @ y
    parts = {"y": y, "lone": y == 1}
    if name.startswith("mag"):
        parts["lone"] = np.array(content["lone"], dtype=bool)
        parts["owner"] = np.array(content["owner"])
        parts["lower"], parts["upper"] = _needs(run, z)
    pattern = Pattern.from_labels(Design.from_matrix(X), run["status"], z, **parts)
    return Peer(pattern, run["audit"])


def _needs(run, z):
    sides = []
    for start, sign in (("lomax", -1), ("upmin", 1)):
        need = np.zeros(len(z))
        for name in (k for k in run if k.startswith(start)):
            cells = np.array(run[name]["cell"])
            need[cells] = sign * (np.array(run[name]["value"]) - z[cells])
        sides.append(need)
    return sides


def write_golden(name, labels):
    """The golden file of a small table with some of its runs."""
    reference = json.loads((FOLDER / f"{name}.json").read_text())
    birth = {"programs": reference["versions"], "data": reference["note"].strip()}
    birth |= {"seed": reference["seed"], "calls": "in the runs", "made": "November 2026"}
    content = from_reference(name)
    content["runs"] = [run for run in content["runs"] if run["label"] in labels]
    text = json.dumps({"birth": birth, **content}, separators=(",", ":"), ensure_ascii=False)
    golden(name).write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    for table, runs in SMALL.items():
        write_golden(table, runs)
