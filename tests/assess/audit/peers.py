"""Patterns of other programs with what they were found to disclose, from the reference files."""

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

from discreet.design.base import Design
from discreet.protect.suppress.pattern import Pattern

FOLDER = Path(__file__).parents[4] / "shared" / "reference" / "suppression"
needs_peers = pytest.mark.skipif(not FOLDER.exists(), reason="no reference files here")
_NOT_VALUES = ("levels", "index", "n_contr")


class Peer(NamedTuple):
    """A pattern, and what the reference says of it."""

    pattern: Pattern
    audit: dict


@cache
def table_of(name):
    """Inner × published matrix, inner values, who is alone where, and the file's content."""
    content = json.loads((FOLDER / f"{name}.json").read_text())
    cells = content["cells"]
    levels, (value, *_) = cells["levels"], [k for k in cells if k not in _NOT_VALUES]
    with gzip.open(FOLDER / (content["input"]["csv"] + ".gz"), "rt") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    nested = {v: [v, *_above(rows, v, levels[v], [*levels, value, "company"])] for v in levels}
    inner, amounts = {}, []
    for row in rows:
        place = inner.setdefault(tuple(row[v] for v in levels), (len(inner), row))[0]
        if place == len(amounts):
            amounts.append({})
        whose = row.get("company", "")
        amounts[place][whose] = amounts[place].get(whose, 0.0) + float(row[value])
    X = _incidence([row for _, row in inner.values()], nested, cells)
    y = np.array([sum(each.values()) for each in amounts])
    return X, y, amounts, content


def _above(rows, variable, codes, others):
    """Columns of the levels above a variable."""
    return [
        name for name in rows[0] if name not in others and {row[name] for row in rows} <= set(codes)
    ]


def _incidence(inner, nested, cells):
    codes = {v: {code: k for k, code in enumerate(cells["levels"][v])} for v in nested}
    place = {key: k for k, key in enumerate(zip(*cells["index"].values(), strict=True))}
    pairs = []
    for i, row in enumerate(inner):
        each = [{codes[v][row[c]] for c in nested[v]} | {codes[v]["Total"]} for v in nested]
        pairs += [(i, place[key]) for key in itertools.product(*each) if key in place]
    i, k = np.array(pairs).T
    shape = (len(inner), len(place))
    return sparse.csr_array((np.ones(len(i), dtype=np.int64), (i, k)), shape=shape)


def peer(name, label):
    """One run of another program."""
    X, y, amounts, content = table_of(name)
    run = next(each for each in content["runs"] if each["label"] == label)
    z = X.T @ y
    parts = {"y": y, "lone": y == 1}
    if name.startswith("mag"):
        contributors = [[who for who, a in each.items() if a] for each in amounts]
        numbers = {}
        parts["lone"] = np.array([len(each) == 1 for each in contributors])
        parts["owner"] = np.array(
            [numbers.setdefault(each[0], len(numbers)) if each else -1 for each in contributors]
        )
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
