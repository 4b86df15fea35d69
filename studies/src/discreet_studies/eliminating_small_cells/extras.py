"""What the paper describes and prints no figures of: our own checks.

SAFE with allowances (section 2.1), normal tails (section 3.1), adjustment without prior noise, and
what a reader can find out from D, signs and sums (section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import numpy as np

import discreet
from discreet.arrays import Real
from discreet.design.base import Design
from discreet.facade.release import Trial
from discreet.noise.linear import linear_table
from discreet.noise.matrix import TransitionMatrix
from discreet.protect.adjust import Adjust
from discreet.protect.safe import Safe
from discreet.tables.statement import Statement
from discreet_studies.chance import orders
from discreet_studies.eliminating_small_cells import printed
from discreet_studies.eliminating_small_cells.findings import SMALL_TABLE, least_distance
from discreet_studies.eliminating_small_cells.results import (
    REACHES,
    SMALL,
    VARIANCE,
    CensusSize,
    matrix,
    published_table,
    stand_in,
)
from discreet_studies.frozen import SEEDS
from discreet_studies.model import Finding, by_row, own

ALLOWED, ALLOWANCE = 3, 2
"""Cells of so many variables may deviate by so much beside the maximum."""
CENSUS = CensusSize(region=16, age=10, country=14)
PROPOSALS = 1e6
RUNS = SEEDS[:5]
ALLOWANCES_RUN = {
    "variables": ALLOWED,
    "allowance": ALLOWANCE,
    "census": asdict(CENSUS),
    "proposals": PROPOSALS,
    "seeds": RUNS,
}
"""What is frozen of the check on allowances."""
EXAMPLE = (3, 3, 0)
"""Section 5: two cells and their total, published with D = 2."""
_SAME = 0.5
_TIE = 1e-3  # half a unit of the printed digits, in each of two distances


def extra_findings(seed: int) -> Iterator[Finding]:
    """All four, each with something that could have been otherwise."""
    yield allowance_finding(*safe_excesses())
    yield tail_finding(lambda D: linear_table(D, VARIANCE, tails="normal"))
    yield plain_adjustment(seed)
    yield attack_finding(EXAMPLE)


def safe_excesses(runs: Sequence[int] = RUNS) -> tuple[Real, Real, Real]:
    """Largest deviation less allowance of SAFE without and with it, and what it used of it."""
    rows = []
    for seed in runs:
        table = stand_in(CENSUS, seed).five_way
        variables = table.design.orders
        allowed = np.where(variables == ALLOWED, ALLOWANCE, 0)
        plain, wide = (
            np.abs(table.simulate(Safe(proposals=PROPOSALS, allowances=a), seed=seed).z - table.z)
            for a in (None, {ALLOWED: ALLOWANCE})
        )
        excesses = [float((d - allowed).max()) for d in (plain, wide)]
        rows.append((*excesses, float(wide[variables == ALLOWED].max())))
    plain_excess, excess, largest = np.array(rows).T
    return plain_excess, excess, largest


def allowance_finding(plain: Real, wide: Real, largest: Real) -> Finding:
    """Allowances enter the maximum, so that what lies beside them is lowered further."""
    holds, shown = orders([(wide, plain)])
    return own(
        f"SAFE that allows cells of {ALLOWED} variables {ALLOWANCE} more lowers the largest "
        "deviation beside this allowance.",
        holds,
        f"Largest deviation less allowance {_list(wide)} in {len(plain)} small censuses, and "
        f"{_list(plain)} where SAFE knows of no allowance; {shown}. Cells of {ALLOWED} variables "
        f"then deviate by up to {largest.max():g}.",
    )


def _list(values: Real) -> str:
    return ", ".join(f"{value:g}" for value in values)


def tail_finding(normal: Callable[[int], TransitionMatrix]) -> Finding:
    """Rows of Table 1 that the two shapes of tails tell apart; not judged, since made by hand."""
    nearer = {"entropy": 0, "normal": 0}
    largest = {"entropy": 0.0, "normal": 0.0}
    for D in REACHES:
        shapes = {"entropy": matrix(D), "normal": normal(D)}
        P = {name: law.dense(max(printed.TARGETS) + 1) for name, law in shapes.items()}
        for row, texts in by_row(printed.NOISE[D]).items():
            wanted = np.array([float(text) for text in texts])
            far = {
                name: float(np.abs(p[int(row), list(printed.TARGETS)] - wanted).max())
                for name, p in P.items()
            }
            if abs(far["entropy"] - far["normal"]) <= _TIE:
                continue
            nearer[min(far, key=lambda name: far[name])] += 1
            largest = {name: max(largest[name], far[name]) for name in far}
    return own(
        "Tails of the normal law are nearer to the printed rows than tails of maximum entropy.",
        nearer["normal"] > nearer["entropy"],
        f"Of the rows of Table 1 that tell them apart, {nearer['normal']} are nearer to normal "
        f"tails (largest distance {largest['normal']:.3f}) and {nearer['entropy']} to those of "
        f"entropy ({largest['entropy']:.3f}). The paper shaped its tails by hand.",
        is_judged=False,
    )


def plain_adjustment(seed: int) -> Finding:
    """Controlled tabular adjustment of true counts, beside a program that proves the nearest."""
    table = published_table(SMALL_TABLE, seed)
    found = table.simulate(Adjust(None, max_move=REACHES[0]), seed=seed)
    d = np.abs(found.z - table.z)
    least, left = least_distance(table, table.z), int(np.isin(found.z, SMALL).sum())
    return own(
        "Without prior noise adjustment removes counts of one and two, and moves cells as little "
        "as a proof of optimality allows.",
        left == 0 and abs(float(d.sum()) - least) < _SAME,
        f"{int(np.isin(table.z, SMALL).sum())} such counts in {len(table.z)} cells before, {left} "
        f"after; sum of absolute deviations {d.sum():g}, least possible {least:g}, largest "
        f"{d.max():g}.",
    )


def attack_finding(published: tuple[int, int, int]) -> Finding:
    """The audit of the example, with the paper's D and with one more."""
    design = Design.product({"cell": 2}, "cell")
    z = np.array(published)  # the total comes last
    ranges = {}
    for D in (2, 3):
        audit = discreet.audit(Trial(design, z, Statement()), law=D)
        ranges[D] = list(zip(audit.low.tolist(), audit.high.tolist(), strict=True))
    return own(
        "Two cells published as 3 with a total of 0 and D = 2 are known to hold 1 each, and the "
        "total 2; with D = 3 nothing is known.",
        ranges[2] == [(1, 1), (1, 1), (2, 2)] and all(low < high for low, high in ranges[3]),
        "What is left for both cells and the total: "
        + "; ".join(
            f"D = {D}: " + ", ".join(f"{low:g} to {high:g}" for low, high in left)
            for D, left in ranges.items()
        )
        + ".",
    )
