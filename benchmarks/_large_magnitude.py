"""A generated table of magnitudes with 823×18×10 published cells, two of three variables nested."""

import numpy as np
import pandas as pd

import discreet as dc

RECORDS = 1_900_000
CLASSES, REGIONS, SIZES = 720, 14, 9
SECTIONS, DIVISIONS, STATES = 12, 90, 3


def large_magnitude(records: int = RECORDS) -> dc.Table:
    """Turnover by activity (1 + 12 + 90 + 720 codes), region (1 + 3 + 14) and size (1 + 9).

    Activities and regions have very different numbers of enterprises, amounts are lognormal with
    a heavy tail, and every fifth record belongs to an enterprise with several.
    """
    rng = np.random.default_rng(823)
    activity = rng.choice(CLASSES, records, p=_shares(rng, CLASSES, 0.9))
    region = rng.choice(REGIONS, records, p=_shares(rng, REGIONS, 0.6))
    size = rng.choice(SIZES, records, p=_shares(rng, SIZES, 0.5))
    lone = rng.random(records) < 0.8
    frame = pd.DataFrame(
        {
            "activity": _codes("c", CLASSES)[activity],
            "region": _codes("r", REGIONS)[region],
            "size": _codes("s", SIZES)[size],
            "enterprise": np.where(
                lone, np.arange(records), rng.integers(records // 10, size=records)
            ),
            "turnover": np.ceil(np.exp(rng.normal(4.0, 1.1, records) + 0.3 * size)),
        }
    )
    return dc.Table.from_contributions(
        frame,
        "activity*region*size",
        value="turnover",
        contributor="enterprise",
        hierarchies={"activity": _activities(), "region": _regions()},
    )


def _shares(rng: np.random.Generator, n: int, power: float) -> np.ndarray:
    """Shares that fall off by a power of their rank, in random order."""
    shares = 1.0 / np.arange(1, n + 1) ** power
    return rng.permutation(shares / shares.sum())


def _codes(letter: str, n: int) -> np.ndarray:
    return np.array([f"{letter}{k:03d}" for k in range(n)])


def _activities() -> dc.Hierarchy:
    """Classes in divisions of eight, divisions in sections of seven or eight."""
    parents = {f"S{k:02d}": "Total" for k in range(SECTIONS)}
    parents |= {f"D{k:02d}": f"S{k * SECTIONS // DIVISIONS:02d}" for k in range(DIVISIONS)}
    parents |= {c: f"D{k // 8:02d}" for k, c in enumerate(_codes("c", CLASSES).tolist())}
    return dc.Hierarchy("Total", parents)


def _regions() -> dc.Hierarchy:
    parents = {f"N{k}": "Total" for k in range(STATES)}
    parents |= {c: f"N{k % STATES}" for k, c in enumerate(_codes("r", REGIONS).tolist())}
    return dc.Hierarchy("Total", parents)
