"""Tables 8 to 14, printed beside computed."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.studies.inner_frequencies import printed
from discreet.studies.inner_frequencies.results import EPSILONS, KINDS, Results
from discreet.studies.inner_frequencies.schemes import PARTS
from discreet.studies.model import Figure, PrintedTable

NOISE_TOLERANCE = 0.05
_COLUMNS = [(kind, part) for kind in KINDS for part in PARTS]
_OTHER = "The paper's file is not public, so figures that depend on it cannot be compared."
_NOISE = (
    f"{_OTHER} Deviations that are noise alone agree within 5 %: the noise is the same "
    "whatever the records are."
)


def large_tables(found: Results, is_stand_in: bool) -> tuple[PrintedTable, ...]:
    """Tables 8 to 14.

    Args:
      found: The scores.
      is_stand_in: Whether the table has the paper's sizes, so that pure noise can be compared.
    """
    return (
        _zeros(found),
        *(_utility(found, epsilon, 9 + k) for k, epsilon in enumerate(EPSILONS)),
        *(_deviation(found, epsilon, 11 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        _bias(found),
        _weights(found),
    )


def _zeros(found: Results) -> PrintedTable:
    rows = zip(("kept", "all"), printed.ZEROS_KEPT, found.zeros, strict=True)
    figures = tuple(
        Figure(f"inner zeros, {row}", "cells", text, value, 0, is_judged=False)
        for row, text, value in rows
    )
    caption = "Inner zeros that stay zero, 3-way (2-way exact), ε = 0.5 (instead of example cells)"
    return PrintedTable("Table 8", caption, figures, _OTHER)


def _utility(found: Results, epsilon: float, number: int) -> PrintedTable:
    figures = tuple(
        Figure(scheme, f"{part}, {kind}", text, value, 0, is_judged=False)
        for scheme, kind, part, text in _printed(printed.UTILITY[epsilon])
        for value in [found(kind, epsilon, scheme).utility[part]]
    )
    return PrintedTable(f"Table {number}", f"Hellinger utility, ε = {epsilon}", figures, _OTHER)


def _deviation(found: Results, epsilon: float, number: int, is_stand_in: bool) -> PrintedTable:
    figures = tuple(
        Figure(
            scheme,
            f"{part}, {kind}",
            text,
            found(kind, epsilon, scheme).deviation[part],
            NOISE_TOLERANCE * float(text),
            is_judged=is_stand_in and _is_noise(scheme, kind, part),
        )
        for scheme, kind, part, text in _printed(printed.DEVIATION[epsilon])
    )
    caption = f"Mean absolute deviation, ε = {epsilon}"
    return PrintedTable(f"Table {number}", caption, figures, _NOISE)


def _printed(rows: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Scheme, kind, part and text of everything that is printed."""
    for scheme, words in rows.items():
        for (kind, part), text in zip(_COLUMNS, words.split(), strict=True):
            if text != "-":
                yield scheme, kind, part, text


def _is_noise(scheme: str, kind: str, part: str) -> bool:
    """Whether a deviation is noise alone, and the same whatever the records are."""
    sums_are_known = kind == "with zeros" or part == "inner"
    return "no fitting" in scheme or (scheme == "inner cells" and sums_are_known)


def _bias(found: Results) -> PrintedTable:
    columns = [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]
    figures = tuple(
        Figure(
            scheme,
            f"{kind}, ε = {epsilon}",
            text,
            found(kind, epsilon, scheme).bias,
            0.0,
            is_judged=False,
        )
        for scheme, texts in printed.BIAS.items()
        for (kind, epsilon), text in zip(columns, texts, strict=True)
    )
    caption = "Percent by which non-negative estimation makes the total too large"
    return PrintedTable("Table 13", caption, figures, _OTHER)


def _weights(found: Results) -> PrintedTable:
    figures = tuple(
        Figure(
            f"weight {weight}",
            part,
            text,
            found.weights[weight].deviation[part],
            0,
            is_judged=False,
        )
        for weight, texts in printed.WEIGHTS.items()
        if weight in found.weights
        for part, text in zip(PARTS, texts, strict=True)
    )
    caption = (
        "Mean absolute deviation by weight of the exact two-way margins, ε = 1.5, without zeros; "
        "printed at the tightest of the paper's thresholds, ours with a certificate"
    )
    return PrintedTable("Table 14", caption, figures, _OTHER)
