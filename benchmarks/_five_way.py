"""A five-way table of 478,173 records, from a file where there is one, or invented."""

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import discreet as dc
from discreet.design.axis import Axis
from discreet.design.sparse import SparseDesign

FILE = Path(__file__).parents[2] / "shared" / "data" / "lfs_like_agg.csv.gz"
SHAPE = {"a": 7, "b": 19, "c": 12, "d": 52, "e": 6}
RECORDS = 478_173


def five_way(margins: Sequence[tuple[str, ...]]) -> dc.Table:
    """The non-empty inner cells under some margins."""
    codes, counts = _read() if FILE.exists() else _invented()
    axes = [Axis.flat(name, [str(k) for k in range(n)]) for name, n in SHAPE.items()]
    design = SparseDesign(axes, list(margins), list(codes.T), occurring=True)
    return dc.Table.from_inner(design, counts)


def load() -> str:
    """How busy the machine is, to be read beside every time."""
    return f"load {os.getloadavg()[0]:.1f}; data {'read' if FILE.exists() else 'invented'}"


def _read() -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(FILE, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", skiprows=1, dtype=np.int64)
    return rows[:, :5] - rows[:, :5].min(axis=0), rows[:, 5]


def _invented() -> tuple[np.ndarray, np.ndarray]:
    """Skewed variables that depend on a hidden class."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(40, size=RECORDS)
    columns = []
    for n in SHAPE.values():
        shares = rng.dirichlet(np.full(n, 0.6), size=40)
        point = rng.random(RECORDS)[:, None]
        columns.append((point > shares.cumsum(axis=1)[hidden][:, :-1]).sum(axis=1))
    return np.unique(np.column_stack(columns), axis=0, return_counts=True)
