"""Pictures of docs/choosing_noise.md: what D, V and js do to risk and utility.

Everything is computed from the laws and from how often each count occurs in a table of the demo
census; nothing is drawn at random. Run: python tools/noise_pictures.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.errors import InfeasibleError

PAGE = Path(__file__).parents[1] / "docs" / "choosing_noise.svg"
MOVES, BLOCKED = (3, 5, 8), (0, 2)
VARIANCES = (0.25, 0.5, 0.75, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0)
LARGEST = 40
FIGURES = {
    "ones and twos that the best guess finds": "risk",
    "counts published as they are": "risk",
    "mean deviation of a count": "utility",
    "small counts (1 to 5) published as zero": "utility",
}


def frequencies() -> np.ndarray:
    """How often counts of 0 to `LARGEST` occur in a table of the demo census."""
    table = dc.demo.census(persons=20_000).tabulate("region*age*sex")
    return np.bincount(np.minimum(table.z, LARGEST), minlength=LARGEST + 1)[: LARGEST + 1]


def figures(D: int, V: float, js: int, often: np.ndarray) -> dict[str, float]:
    """Risk and utility under one table, as expectations."""
    law = dc.perturbation_table(D=D, V=V, js=js)
    chance = np.zeros((LARGEST + 1, LARGEST + 2 * D + 1))
    for count in range(LARGEST + 1):
        for move, p in zip(law.deviations, law.probabilities(count), strict=True):
            if p > 0:
                chance[count, count + int(move)] += p
    joint = often[:, None] * chance
    guess = joint.argmax(axis=0)
    small, filled = np.array([1, 2]), np.arange(1, LARGEST)
    found = sum(joint[i, guess == i].sum() for i in small) / often[small].sum()
    stays = sum(joint[i, i] for i in filled) / often[filled].sum()
    moves = np.abs(np.arange(chance.shape[1])[None, :] - np.arange(LARGEST + 1)[:, None])
    values = (found, stays, (joint * moves)[filled].sum() / often[filled].sum(),
              joint[1:6, 0].sum() / often[1:6].sum())  # fmt: skip
    return dict(zip(FIGURES, map(float, values), strict=True))


def rows() -> list[dict[str, Any]]:
    """A row for each possible table and each figure."""
    often, found = frequencies(), []
    for js in BLOCKED:
        for D in MOVES:
            for V in VARIANCES:
                try:
                    told = figures(D, V, js, often)
                except InfeasibleError:
                    continue
                found += [
                    {"js": f"js = {js}", "D": f"{D}", "V": V, "figure": name, "value": value}
                    for name, value in told.items()
                ]
    return found


def chart(found: list[dict[str, Any]]) -> Any:
    """Four pictures, lines by D, columns by js."""
    import altair as alt

    data = alt.Data(values=found)
    panels = []
    for name, kind in FIGURES.items():
        panel = (
            alt.Chart(data, title=f"{kind}: {name}")
            .transform_filter(alt.datum.figure == name)
            .mark_line(point=True)
            .encode(
                x=alt.X("V:Q", title="variance V"),
                y=alt.Y("value:Q", title=None),
                color=alt.Color("D:N", title="largest move D"),
                strokeDash=alt.StrokeDash("js:N", legend=None),
            )
            .properties(width=330, height=210)
        )
        panels.append(panel)
    lines = "Solid lines: js = 0. Dashed lines: js = 2, counts of 1 and 2 are never published."
    return ((panels[0] | panels[1]) & (panels[2] | panels[3])).properties(title=lines)


if __name__ == "__main__":
    chart(rows()).save(str(PAGE), format="svg")
    sys.stdout.write(f"written: {PAGE}\n")
