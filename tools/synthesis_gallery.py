"""Draw the pictures of docs/methods/synthesis.md: `python tools/synthesis_gallery.py`.

The records are invented, so the pictures may be published.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from discreet.assessment import plots
from discreet.assessment.plots.style import PALETTE, QUIET, altair_module, apply_style
from discreet.files import EVERYONE

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
MODEL, HYBRID = "income + tax ~ age + region", "income + tax ~ local(1) + shared(age + region)"
METHODS: dict[str, dict[str, Any]] = {
    "ipso": {"formula": MODEL},
    "score-correlation, 0.9": {
        "formula": MODEL,
        "method": "score-correlation",
        "correlations": 0.9,
    },
    "romm, λ = 0.05": {"formula": MODEL, "method": "romm", "lambda_": 0.05},
    "hybrid, clusters of 6": {"formula": HYBRID, "method": "hybrid", "clusters": 6},
    "hybrid, residuals zero": {
        "formula": HYBRID,
        "method": "hybrid",
        "clusters": 6,
        "residuals": "zero",
    },
}
_SIZE = 150


def people(n: int = 500) -> pd.DataFrame:
    """Invented people: skewed incomes, and a tax with a threshold."""
    rng = np.random.default_rng(14)
    age = rng.integers(20, 66, n)
    region = rng.choice(["north", "south", "coast"], n, p=[0.5, 0.3, 0.2])
    income = np.exp(rng.normal(10.2, 0.45, n)) * (1 + 0.008 * (age - 40))
    income *= np.where(region == "coast", 1.25, 1.0)
    tax = 0.25 * np.maximum(income - 15_000, 0) + 0.15 * np.maximum(income - 45_000, 0)
    tax += rng.normal(0, 900, n)
    return pd.DataFrame({"income": income, "tax": tax, "age": age, "region": region})


def gallery(original: pd.DataFrame, made: dict[str, pd.DataFrame]) -> Any:
    """Above, synthetic against original incomes; below, tax against income."""
    alt = altair_module()
    changed = [_points(original["income"], f["income"], name) for name, f in made.items()]
    joint = [_points(f["income"], f["tax"], name, original) for name, f in made.items()]
    first = _points(original["income"], original["tax"], "original", original)
    rows = [
        alt.hconcat(*changed, title=_title("Synthetic income (up) against original income")),
        alt.hconcat(first, *joint[:-1], title=_title("Tax (up) against income")),
    ]
    return apply_style(alt.vconcat(*rows))


def dial(original: pd.DataFrame) -> Any:
    """What the declared correlation does: nearer values, closer quantiles, equal moments."""
    alt = altair_module()
    rows = []
    for d in np.linspace(0, 0.98, 8):
        trial = dc.synthesize(
            original, MODEL, "score-correlation", correlations=float(d), simulate=True, seed=3
        )
        found = dc.synthesis.Preserved.of(original, trial)
        for kind, kinds in _SHOWN.items():
            apart = np.mean([f.difference for f in found.figures if f.kind in kinds])
            rows.append({"d": float(d), "kind": kind, "apart": float(apart)})
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("d:Q", title="declared correlation with the original"),
            y=alt.Y("apart:Q", title="mean difference"),
            color=alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=list(_SHOWN), range=PALETTE[:3])
            ),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=list(_SHOWN))),
        )
        .properties(width=380, height=220, title=_title("score-correlation: figures that differ"))
    )
    return apply_style(chart)


_SHOWN = {
    "coefficients and covariances": ("coefficient", "standard deviation", "correlation"),
    "quartiles and median": ("lower quartile", "median", "upper quartile"),
    "skewness": ("skewness",),
}


def _points(x: Any, y: Any, title: str, beside: pd.DataFrame | None = None) -> Any:
    """Dots, with the diagonal where both axes are incomes."""
    alt = altair_module()
    ends = {"x": (-10_000.0, 110_000.0), "y": (-10_000.0, 110_000.0)}
    if beside is not None:
        ends["y"] = (-8_000.0, 40_000.0)
    scale = {
        axis: alt.Scale(domain=list(pair), nice=False, clamp=True) for axis, pair in ends.items()
    }
    axis = alt.Axis(tickCount=3, format="~s", title=None)
    rows = [{"x": float(a), "y": float(b)} for a, b in zip(x[::2], y[::2], strict=True)]
    dots = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(
            size=9, opacity=0.5, aria=False, color=PALETTE[0] if beside is None else PALETTE[1]
        )
        .encode(
            x=alt.X("x:Q", scale=scale["x"], axis=axis), y=alt.Y("y:Q", scale=scale["y"], axis=axis)
        )
    )
    layers = [dots]
    if beside is None:
        line = [{"x": v, "y": v} for v in ends["x"]]
        layers.insert(
            0,
            alt.Chart(alt.InlineData(values=line))
            .mark_line(color=QUIET, strokeDash=[4, 3])
            .encode(x=alt.X("x:Q", scale=scale["x"]), y=alt.Y("y:Q", scale=scale["y"])),
        )
    name = alt.Title(title, fontSize=11, offset=4)
    return alt.layer(*layers, title=name).properties(width=_SIZE, height=_SIZE)


def _title(text: str) -> Any:
    return altair_module().Title(text, anchor="start", fontSize=13)


def main(folder: Path, ending: str) -> None:
    """Draw all pictures."""
    original = people()
    made = {
        name: dc.synthesize(original, simulate=True, seed=1, **options).frame
        for name, options in METHODS.items()
    }
    near = dc.synthesize(
        original, MODEL, "score-correlation", correlations=0.9, simulate=True, seed=1
    )
    pictures = {
        "synthesis-gallery": gallery(original, made),
        "synthesis-dial": dial(original),
        "synthesis-preserved": plots.preserved(dc.synthesis.Preserved.of(original, near)),
    }
    for name, chart in pictures.items():
        plots.save(chart, folder / f"{name}{ending}").chmod(EVERYONE)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, ".png" if len(sys.argv) > 1 else ".svg"
    )
