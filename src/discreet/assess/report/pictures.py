"""The pictures of the report, drawn inline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.assess.plots.cells import before_after
from discreet.assess.plots.deviations import deviations
from discreet.assess.plots.style import to_svg
from discreet.assess.plots.transitions import transitions
from discreet.assess.report.markup import figure, section
from discreet.noise.matrix import TransitionMatrix

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison

_CELLS_DRAWN = 20_000
_MOST_DRAWS = 25


def risk_utility(found: Comparison) -> str:
    """The map."""
    caption = (
        "Each method at its mean risk and mean utility. Where bars overlap, single draws of the "
        "methods can come out in the other order."
    )
    return section("Risk and utility", figure(to_svg(found.plot()), caption))


def noise(found: Comparison, label: str) -> str:
    """Deviations of all methods, laws of those that have one, and one draw cell by cell."""
    table = found.job.table
    draws = max(1, min(_MOST_DRAWS, _CELLS_DRAWN // max(table.design.n_published, 1)))
    drawn = {name: list(found.trials(name, draws)) for name in found.labels}
    parts = [figure(to_svg(deviations(table, drawn)), f"Deviations in {draws} draws.")]
    for contestant in found.job.contestants:
        law = designed_law(contestant.method)
        if law is not None:
            chart = transitions(law, table, drawn[contestant.label])
            caption = f"{contestant.label}: the designed law and what {draws} draws show of it."
            parts.append(figure(to_svg(chart), caption))
    cells = before_after(table, drawn[label][0])
    parts.append(figure(to_svg(cells), f"One draw of {label}; the release will be another one."))
    return section("What happens to the cells", *parts)


def designed_law(method: Any) -> TransitionMatrix | None:
    """The transition matrix that a method applies to each published count as it stands, if any."""
    publication, law = getattr(method, "publication", None), getattr(method, "matrix", None)
    if publication is None or not isinstance(law, TransitionMatrix):
        return None
    is_changed = getattr(method, "invariant", False) or publication.threshold is not None
    return law if publication.is_plain and not is_changed else None
