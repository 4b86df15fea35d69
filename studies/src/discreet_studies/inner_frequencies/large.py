"""Tables 8 to 14, printed beside computed."""

from __future__ import annotations

from collections.abc import Iterator

from discreet_studies.inner_frequencies import printed
from discreet_studies.inner_frequencies.results import EPSILONS, KINDS, ExampleCell, SchemeResults
from discreet_studies.inner_frequencies.schemes import PARTS
from discreet_studies.model import Figure, Ground, PrintedTable, as_printed, elsewhere

NOISE_TOLERANCE = 0.08
UTILITY_TOLERANCE = 0.025
_COLUMNS = [(kind, part) for kind in KINDS for part in PARTS]
_OTHER = "The paper's file is not at hand; what depends on it is shown and not judged."
_NEAR = 0.055
"""What fitted two-way cells of Table 8 differ by from exact ones in the paper, and a little."""
_EXAMPLES = (
    "Cells are those whose true counts are nearest to the printed ones, chosen at random where "
    "several are. Exact two-way margins are constraints of the fit, and the stand-in has the "
    "paper's number of inner zeros: both are true by construction."
)
_NOISE = (
    f"{_OTHER} Deviations that are noise alone, or noise without its negative values, agree within "
    "8 %: they hardly depend on the records."
)
_PURE = ("no fitting", "zero replace")


def large_tables(found: SchemeResults, is_stand_in: bool) -> tuple[PrintedTable, ...]:
    """The sizes of section 4, and Tables 8 to 14.

    Args:
      found: The scores.
      is_stand_in: Whether the table has the paper's sizes, so that pure noise can be compared.
    """
    return (
        _sizes(found, is_stand_in),
        _examples(found, is_stand_in),
        *(_utility(found, epsilon, 9 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        *(_deviation(found, epsilon, 11 + k, is_stand_in) for k, epsilon in enumerate(EPSILONS)),
        _bias(found, is_stand_in),
        _weights(found),
    )


def _sizes(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    """Sizes of the table, which the stand-in was made to have, and scales of the noise."""
    figures = []
    for row, text in printed.SIZES.items():
        ground = Ground.construction if is_stand_in else Ground.other_data
        if row.startswith("scale") and is_stand_in:
            ground = Ground.computed
        allowed = (
            as_printed(text) if ground is not Ground.computed else NOISE_TOLERANCE * float(text)
        )
        figures.append(Figure(row, "figure", text, found.sizes[row], allowed, ground=ground))
    agreement = (
        f"{_OTHER} The stand-in was made to have its sizes, which are true by construction; scales "
        "are mean absolute noise, and agree within 8 %."
    )
    return PrintedTable("Section 4", "Sizes of the table, and noise", tuple(figures), agreement)


def _examples(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    figures = [
        figure
        for part, examples in found.examples.items()
        for k, example in enumerate(examples)
        for figure in _example(part, k, example, is_stand_in)
    ]
    kept, empty = found.zeros
    figures += [
        _figure_by_construction(
            "inner zeros, all and kept", "original", printed.ZEROS[0], empty, is_stand_in
        ),
        elsewhere("inner zeros, all and kept", "fitted", printed.ZEROS[2], kept),
    ]
    caption = "Single cells, 3-way (2-way exact), ε = 0.5, with zeros"
    columns = ("original", "perturbed", "fitted")
    return PrintedTable("Table 8", caption, tuple(figures), f"{_EXAMPLES} {_OTHER}", columns)


def _example(part: str, k: int, example: ExampleCell, is_stand_in: bool) -> Iterator[Figure]:
    """One cell; two-way cells must be what they were."""
    cell = ", ".join(f"{name} {code}" for name, code in example.cell.items())
    row = f"{part} {k + 1}: {cell}"
    original, perturbed, fitted = printed.EXAMPLES[part][k]
    yield elsewhere(row, "original", original, example.original)
    if example.perturbed is not None:
        yield elsewhere(row, "perturbed", perturbed, example.perturbed)
    if part == "2-way" and float(original) == example.original:
        yield _figure_by_construction(row, "fitted", fitted, example.fitted, is_stand_in, _NEAR)
    else:
        yield elsewhere(row, "fitted", fitted, example.fitted)


def _figure_by_construction(
    row: str, column: str, text: str, value: float, is_stand_in: bool, tolerance: float = 0.5
) -> Figure:
    """A figure that the stand-in or a constraint of the fit was made to have."""
    ground = Ground.construction if is_stand_in else Ground.other_data
    return Figure(row, column, text, value, tolerance, ground=ground)


def _utility(found: SchemeResults, epsilon: float, number: int, is_stand_in: bool) -> PrintedTable:
    figures = tuple(
        _judge(scheme, f"{part}, {kind}", text, value, UTILITY_TOLERANCE, is_pure)
        for scheme, kind, part, text in _printed_figures(printed.UTILITY[epsilon])
        for value in [found(kind, epsilon, scheme).utility[part]]
        for is_pure in [is_stand_in and scheme.endswith(tuple(f"({p})" for p in _PURE))]
    )
    agreement = (
        f"{_OTHER} Margins with noise, and without its negative values, agree within "
        f"{UTILITY_TOLERANCE}: sizes and sparsity of the stand-in are the paper's."
    )
    caption = f"Hellinger utility, ε = {epsilon}"
    return PrintedTable(f"Table {number}", caption, figures, agreement)


def _judge(
    row: str, column: str, text: str, value: float, tolerance: float, is_judged: bool
) -> Figure:
    if is_judged:
        return Figure(row, column, text, value, tolerance)
    return elsewhere(row, column, text, value)


def _deviation(
    found: SchemeResults, epsilon: float, number: int, is_stand_in: bool
) -> PrintedTable:
    figures = tuple(
        _judge(
            scheme,
            f"{part}, {kind}",
            text,
            found(kind, epsilon, scheme).deviation[part],
            NOISE_TOLERANCE * float(text),
            is_stand_in and _is_noise(scheme, kind, part),
        )
        for scheme, kind, part, text in _printed_figures(printed.DEVIATION[epsilon])
    )
    caption = f"Mean absolute deviation, ε = {epsilon}"
    return PrintedTable(f"Table {number}", caption, figures, _NOISE)


def _printed_figures(rows: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Scheme, kind, part and text of everything that is printed."""
    for scheme, words in rows.items():
        for (kind, part), text in zip(_COLUMNS, words.split(), strict=True):
            if text != "-":
                yield scheme, kind, part, text


def _is_noise(scheme: str, kind: str, part: str) -> bool:
    """Whether a deviation is noise alone, and nearly the same whatever the records are."""
    sums_are_known = kind == "with zeros" or part == "inner"
    pure = any(f"({name})" in scheme for name in _PURE)
    return pure or (scheme == "inner cells" and sums_are_known)


def _bias(found: SchemeResults, is_stand_in: bool) -> PrintedTable:
    columns = [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]
    figures = tuple(
        _figure_by_construction(scheme, column, text, value, is_stand_in, as_printed(text))
        if "exact" in scheme
        else elsewhere(scheme, column, text, value)
        for scheme, texts in printed.BIAS.items()
        for (kind, epsilon), text in zip(columns, texts, strict=True)
        for column, value in [(f"{kind}, ε = {epsilon}", found(kind, epsilon, scheme).bias)]
    )
    caption = "Percent by which non-negative estimation makes the total too large"
    agreement = f"{_OTHER} Exact margins are constraints and keep the total by construction."
    return PrintedTable("Table 13", caption, figures, agreement)


def _weights(found: SchemeResults) -> PrintedTable:
    columns = [(part, threshold) for part in PARTS for threshold in printed.THRESHOLDS]
    figures = tuple(
        elsewhere(
            f"weight {weight}", f"{part}, {threshold}", text, found.weights[weight].deviation[part]
        )
        for weight, texts in printed.WEIGHTS.items()
        for (part, threshold), text in zip(columns, texts.split(), strict=True)
    )
    caption = (
        "Mean absolute deviation by weight of the exact two-way margins, ε = 1.5, without zeros, "
        "at three thresholds of the paper's solver; ours is the same optimum in each"
    )
    return PrintedTable("Table 14", caption, figures, _OTHER)
