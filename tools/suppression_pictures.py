"""Draw the pictures of suppressed tables in the docs: `python tools/suppression_pictures.py`.

The tables are printed on the pages or invented, so the pictures may be published.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import discreet as dc
from discreet.assessment import plots
from discreet.files import EVERYONE

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
STATUS = [[14, 6, 9, 5], [0, 7, 0, 0], [1, 12, 0, 0], [22, 4, 17, 8], [30, 9, 41, 12]]
COUNTS = [3, 11, 32, 30, 1, 9, 13, 8, 12, 22, 2, 2, 18, 19, 16, 3]
ACTIVITIES = {
    "food": ["bread", "meat", "milk"],
    "metal": ["steel", "tools"],
    "wood": ["sawn", "paper"],
}
REGIONS = ["north", "south", "coast", "hills", "isles"]


def counts() -> dc.suppress.Pattern:
    """The table of the page on suppression."""
    design = dc.Design.product({"row": 4, "col": 4}, "row*col")
    table = dc.Table.from_inner(design, np.array(COUNTS))
    return dc.Suppress(dc.rules.Threshold(3)).pattern(table)


def status() -> dc.Table:
    """The table of the pages on rules that compare a part with its whole."""
    codes = {"district": list("abcde"), "status": ["employed", "seeking", "retired", "other"]}
    cells = [(d, s) for d in codes["district"] for s in codes["status"]]
    frame = {"district": [d for d, _ in cells], "status": [s for _, s in cells]}
    return dc.Table.from_counts({**frame, "n": sum(STATUS, [])}, "n", "district*status")


def turnover() -> dc.Table:
    """Turnover of invented enterprises by activity, in two levels, and region."""
    rng = np.random.default_rng(5)
    n = 260
    codes = [code for below in ACTIVITIES.values() for code in below]
    frame = pd.DataFrame(
        {
            "activity": rng.choice(codes, n, p=[0.24, 0.2, 0.14, 0.08, 0.16, 0.12, 0.06]),
            "region": rng.choice(REGIONS, n, p=[0.34, 0.26, 0.2, 0.13, 0.07]),
            "enterprise": [f"E{k}" for k in range(n)],
            "turnover": np.ceil(np.exp(rng.normal(3.5, 1.0, n))),
        }
    )
    return dc.Table.from_contributions(
        frame,
        "activity*region",
        value="turnover",
        contributor="enterprise",
        hierarchies={"activity": dc.Hierarchy.from_dict({"Total": ACTIVITIES})},
    )


def rules() -> dict[str, dc.suppress.Pattern]:
    """A pattern for every rule with a page of its own."""
    counts, sums = status(), turnover()
    made = {
        "direct-disclosure": (counts, dc.rules.DirectDisclosure(1, "status")),
        "group-disclosure": (counts, dc.rules.GroupDisclosure(0.9, variables="status")),
        "k-disclosure": (counts, dc.rules.KDisclosure(1)),
        "dominance": (sums, dc.rules.Dominance(1, 75)),
        "p-percent": (sums, dc.rules.PPercent(20)),
        "pq": (sums, dc.rules.PQ(20, 60)),
        "few-contributors": (sums, dc.rules.FewContributors(3)),
    }
    totals = {id(counts): [{"district": d} for d in "abcde"], id(sums): []}
    return {
        name: dc.Suppress(rule, frozen=totals[id(table)]).pattern(table)
        for name, (table, rule) in made.items()
    }


def main(folder: Path, ending: str) -> None:
    """Draw all pictures."""
    sums = dc.Suppress(dc.rules.PPercent(10)).pattern(turnover())
    pictures = {"suppress-counts": counts(), "suppress-magnitudes": sums}
    pictures |= {f"rule-{name}": pattern for name, pattern in rules().items()}
    for name, pattern in pictures.items():
        chart = plots.suppressed(pattern)
        plots.save(chart, folder / f"{name}{ending}").chmod(EVERYONE)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, ".png" if len(sys.argv) > 1 else ".svg"
    )
