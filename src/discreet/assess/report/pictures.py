"""The pictures of the report, drawn inline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.assess.compare.contestants import law_of
from discreet.assess.plots.cells import before_after
from discreet.assess.plots.deviations import deviations
from discreet.assess.plots.style import to_svg
from discreet.assess.plots.transitions import transitions
from discreet.assess.report.markup import figure, section
from discreet.facade.release import Trial

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison

_CELLS_DRAWN = 20_000
_MOST_DRAWS = 25
_PATIENCE = 3.0

Drawn = dict[str, list[Trial]]


def risk_utility(found: Comparison) -> str:
    """The map."""
    caption = (
        "Each method at its mean risk and mean utility. Where bars overlap, single draws of the "
        "methods can come out in the other order."
    )
    return section("Risk and utility", figure(to_svg(found.plot()), caption))


def draws_to_show(found: Comparison) -> Drawn:
    """Some draws of every method, made again: as many as a few seconds allow."""
    most = max(1, min(_MOST_DRAWS, _CELLS_DRAWN // max(found.job.table.design.n_published, 1)))
    return {label: _while_quick(found.trials(label, most)) for label in found.labels}


def _while_quick(trials: Iterator[Trial]) -> list[Trial]:
    started = time.monotonic()
    drawn = [next(trials)]
    while time.monotonic() - started < _PATIENCE and (more := next(trials, None)) is not None:
        drawn.append(more)
    return drawn


def noise(found: Comparison, drawn: Drawn, label: str) -> str:
    """Deviations of all methods, laws of those that have one, and one draw cell by cell."""
    table = found.job.table
    numbers = ", ".join(f"{name}: {len(trials)}" for name, trials in drawn.items())
    parts = [figure(to_svg(deviations(table, drawn)), f"Draws shown: {numbers}.")]
    for contestant in found.job.contestants:
        law = law_of(contestant.method)
        if law is not None:
            trials = drawn[contestant.label]
            chart = transitions(law, table, trials)
            caption = f"{contestant.label}: its designed law and what {len(trials)} draws show."
            parts.append(figure(to_svg(chart), caption))
    cells = before_after(table, drawn[label][0])
    parts.append(figure(to_svg(cells), f"One draw of {label}; the release will be another one."))
    return section("What happens to the cells", *parts)
