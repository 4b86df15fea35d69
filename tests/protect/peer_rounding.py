"""Reference cases of small count rounding as tables, with what the peer reached on them.

They were made with the R package SmallCountRounding 1.2.5; see the reference folder's README.
"""

import json
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.tables import CellValues

FOLDER = Path(__file__).parents[3] / "shared" / "reference"
_VALUES = ("original", "rounded", "difference")
_COUNTS = ("freq", "ant")
_EUROPE = {"EU": ("Portugal", "Spain"), "nonEU": ("Iceland",)}
_OPTIONS = {
    "maxRound": "max_round",
    "zeroCandidates": "zero_candidates",
    "identifyNew": "identify_new",
}


def peer_cases():
    """Name, table, method and recorded figures of every case of the peer's own data."""
    for path in sorted(FOLDER.glob("e_pls_*.json")):
        case = json.loads(path.read_text())
        extra = {_OPTIONS[k]: v for k, v in case["spec"]["extra"].items() if k in _OPTIONS}
        method = dc.SmallCountRounding(base=case["roundBase"], **extra)
        yield path.stem, table_of(case), method, case["metrics"]


def own_cases():
    """The same for the invented tables."""
    for path in sorted(FOLDER.glob("own_*.json")):
        case = json.loads(path.read_text())
        X = np.zeros((len(case["inner"]), len(case["published"])), dtype=np.int64)
        X[case["X_inner"], case["X_published"]] = 1
        counts = np.array([row["freq"] for row in case["inner"]])
        table = dc.Table.from_inner(dc.Design.from_matrix(X), CellValues(counts))
        for base in (3, 5):
            recorded = case[f"rounding_base{base}"]["metrics"]
            yield f"{path.stem} {base}", table, dc.SmallCountRounding(base), recorded


def table_of(case):
    """A table whose design is made from the codes of inner and published cells."""
    names = [name for name in case["publish"][0] if name not in _VALUES]
    above = _groups(case["input"], names)
    X = [
        [all(_holds(above[n], row[n], cell[n]) for n in names) for cell in case["publish"]]
        for row in case["inner"]
    ]
    counts = np.array([row["original"] for row in case["inner"]])
    design = dc.Design.from_matrix(np.array(X).astype(np.int64))
    assert design.aggregate(counts).tolist() == [c["original"] for c in case["publish"]]
    return dc.Table.from_inner(design, CellValues(counts))


def _groups(rows, names):
    """For each variable the codes that stand above each leaf, from the columns of the input."""
    above = {name: {} for name in names}
    for row in rows:
        codes = [value for column, value in row.items() if column not in _COUNTS]
        for name in names:
            above[name].setdefault(row[name], {"Total"}).update(map(str, codes))
    for group, leaves in _EUROPE.items():
        for leaf in leaves:
            above.get("geo", {}).get(leaf, set()).add(group)
    return above


def _holds(above, leaf, code):
    return str(code) in above[leaf] or leaf == code
