"""Tables 8 to 14, printed beside computed."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.studies.inner_frequencies import printed
from discreet.studies.inner_frequencies.cells import Example
from discreet.studies.inner_frequencies.results import EPSILONS, KINDS, Results
from discreet.studies.inner_frequencies.schemes import PARTS
from discreet.studies.model import Figure, Known, PrintedTable, as_printed

NOISE_TOLERANCE = 0.05
_COLUMNS = [(kind, part) for kind in KINDS for part in PARTS]
_OTHER = "The paper's file is not public, so figures that depend on it cannot be compared."
_NEAR = 0.05
"""By how much fitted two-way cells of Table 8 differ from exact ones, at most, in the paper."""
_EXAMPLES = (
    "Cells are those whose true counts are nearest to the printed ones, chosen at random where "
    f"several are. Fitted two-way cells agree within {_NEAR}, the largest printed difference from "
    "a true count."
)
_OTHER_COUNT = "no cell has the printed count, and the nearest one must come near its own."
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
        _examples(found, is_stand_in),
        *(_utility(found, epsilon, 9 + k) for k, epsilon in enumerate(EPSILONS)),
        *(_deviation(found, epsilon, 11 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        _bias(found),
        _weights(found),
    )


def _examples(found: Results, is_stand_in: bool) -> PrintedTable:
    figures = [
        figure
        for part, examples in found.examples.items()
        for k, example in enumerate(examples)
        for figure in _example(part, k, example, is_stand_in)
    ]
    kept, empty = found.zeros
    figures += [
        _shown("inner zeros, all and kept", "original", printed.ZEROS[0], empty, is_stand_in),
        _shown("inner zeros, all and kept", "fitted", printed.ZEROS[2], kept),
    ]
    caption = "Single cells, 3-way (2-way exact), ε = 0.5, with zeros"
    columns = ("original", "perturbed", "fitted")
    return PrintedTable("Table 8", caption, tuple(figures), f"{_EXAMPLES} {_OTHER}", columns)


def _example(part: str, k: int, example: Example, is_stand_in: bool) -> Iterator[Figure]:
    """One cell; two-way cells must be nearly what they were."""
    cell = ", ".join(f"{name} {code}" for name, code in example.cell.items())
    row = f"{part} {k + 1}: {cell}"
    original, perturbed, fitted = printed.EXAMPLES[part][k]
    yield _shown(row, "original", original, example.original)
    if example.perturbed is not None:
        yield _shown(row, "perturbed", perturbed, example.perturbed)
    if part != "2-way":
        yield _shown(row, "fitted", fitted, example.fitted)
    else:
        yield _exact(row, original, fitted, example, is_stand_in)


def _shown(row: str, column: str, text: str, value: float, is_judged: bool = False) -> Figure:
    return Figure(row, column, text, value, as_printed(text), is_judged=is_judged)


def _exact(row: str, original: str, text: str, example: Example, is_judged: bool) -> Figure:
    is_same = float(original) == example.original
    known = None if is_same else Known(example.original, _NEAR, _OTHER_COUNT)
    return Figure(row, "fitted", text, example.fitted, _NEAR, known, is_judged)


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
        for part, text in zip(PARTS, texts, strict=True)
    )
    caption = (
        "Mean absolute deviation by weight of the exact two-way margins, ε = 1.5, without zeros; "
        "printed at the tightest of the paper's thresholds, ours with a certificate"
    )
    return PrintedTable("Table 14", caption, figures, _OTHER)
