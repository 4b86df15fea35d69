"""How often a table is held although enough people came and went, as docs/ledger.md says.

`python -m tests.ledger.test_false_refusals` prints the whole table.
"""

import sys

import numpy as np
import pytest

from discreet.tables import SketchedTable

KEY, MIN_CHANGED = b"k" * 32, 20


def share_held(people, cells, churn, editions=100, seed=7):
    """The share of editions that are held when as many people come as leave."""
    rng = np.random.default_rng(seed)
    p = np.arange(1, cells + 1) ** -0.7
    p, codes = p / p.sum(), tuple(map(str, range(cells)))

    def sketch(counts):
        some = np.flatnonzero(counts)
        return SketchedTable(("c",), ("c",), "", (("c", codes, some),), counts[some]).sketch(KEY)

    held, moving = 0, round(people * churn)
    for _ in range(editions):
        before = rng.multinomial(people, p)
        gone = rng.multivariate_hypergeometric(before, moving)
        after = before - gone + rng.multinomial(moving, p)
        held += sketch(after).changed_since(sketch(before)) < MIN_CHANGED
    return held / editions


@pytest.mark.parametrize(
    ("people", "cells", "churn", "low", "high"),
    [
        (20_000, 120, 0.002, 0.0, 0.2),
        (20_000, 120, 0.01, 0.0, 0.0),
        (20_000, 12, 0.002, 0.9, 1.0),  # people who come and go cancel out in large cells
        (2_000, 120, 0.05, 0.0, 0.1),
        (2_000, 120, 0.002, 1.0, 1.0),  # four people: held with reason
    ],
)
def test_tables_are_held_as_often_as_the_page_says(people, cells, churn, low, high):
    assert low <= share_held(people, cells, churn, editions=30) <= high


if __name__ == "__main__":
    for people in (2_000, 20_000, 200_000):
        for cells in (12, 120, 1_080):
            shares = [share_held(people, cells, churn) for churn in (0.002, 0.01, 0.05)]
            sys.stdout.write(f"{people:>8,} {cells:>6,}  " + "  ".join(f"{s:4.0%}" for s in shares))
            sys.stdout.write("\n")
