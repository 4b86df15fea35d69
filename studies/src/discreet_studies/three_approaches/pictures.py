"""Figures 1 to 4, drawn from our simulation."""

from __future__ import annotations

from typing import Any

from discreet.assess.plots.style import PALETTE, QUIET, altair_module, colours, shapes, styled
from discreet_studies.model import Picture
from discreet_studies.three_approaches.simulation import Simulation

RELEASES = ("Original weighted", "DP Avg", "PRAM Avg", "PRAM Avg cell", "Q Avg", "Q Avg cell")
_METHODS = ["DP", "PRAM", "Q"]


def pictures(simulations: dict[str, Simulation]) -> tuple[Picture, ...]:
    """The four figures of the paper."""
    dependent, independent = simulations["dependent"], simulations["independent"]
    return (
        Picture(
            "Figure 1",
            "Risk and utility of weighted counts, dependent attributes. Safer downwards, more "
            "useful to the right: the Hellinger distance runs from large to small, as in the "
            "paper.",
            lambda: _map(dependent),
        ),
        Picture(
            "Figure 2",
            "Chi-square statistics of weighted tables with dependent attributes. Boxes hold half "
            "of the tables, whiskers all within one and a half boxes.",
            lambda: _boxes(dependent, "chi_square", "chi-square"),
        ),
        Picture(
            "Figure 3",
            "Chi-square statistics of weighted tables with independent attributes.",
            lambda: _boxes(independent, "chi_square", "chi-square"),
        ),
        Picture(
            "Figure 4",
            "p-values of the test of independence in weighted tables with independent attributes.",
            lambda: _boxes(independent, "p_value", "p-value"),
        ),
    )


def _map(found: Simulation) -> Any:
    alt = altair_module()
    points = [
        {
            "method": name,
            "distance": float(found(f"{name} Avg", "distance").mean()),
            "risk": float(found(f"{name} Avg", "risk").mean()),
        }
        for name in _METHODS
    ]
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(size=130, filled=True, opacity=1)
        .encode(
            x=alt.X(
                "distance:Q",
                title="Hellinger distance (reversed)",
                scale=alt.Scale(reverse=True, zero=False, padding=30),
            ),
            y=alt.Y("risk:Q", title="risk measure RM", scale=alt.Scale(zero=False, padding=30)),
            color=alt.Color("method:N", scale=colours(_METHODS), sort=_METHODS, title="method"),
            shape=alt.Shape("method:N", scale=shapes(_METHODS), sort=_METHODS, title="method"),
        )
        .properties(width=420, height=260)
    )
    return styled(chart)


def _boxes(found: Simulation, measure: str, title: str) -> Any:
    alt = altair_module()
    rows = [
        {"release": name, "value": float(value)}
        for name in RELEASES
        for value in found(name, measure)
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_boxplot(
            size=22,
            color=PALETTE[5],
            median={"color": "black"},
            outliers={"size": 8, "color": QUIET},
        )
        .encode(
            x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
            y=alt.Y("release:N", sort=list(RELEASES), title=None),
        )
        .properties(width=480, height=alt.Step(34))
    )
    return styled(chart)
