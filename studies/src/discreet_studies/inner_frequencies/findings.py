"""What the paper concludes, as statements about our figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from discreet_studies.inner_frequencies.results import EPSILONS, KINDS, WEIGHTED, Results
from discreet_studies.model import Finding

_NO_BIAS = 0.005  # percent: rounds to the printed 0.00


def findings(found: Results) -> Iterator[Finding]:
    """The conclusions of section 4."""
    yield _fitting_helps(found, "3-way")
    yield _fitting_helps(found, "2-way")
    yield _bias_of_non_negativity(found)
    yield _exact_margins_remove_it(found)
    yield _margins_before_inner_cells(found)
    yield _exact_margins_help(found)
    yield _inner_cells_without_zeros(found)
    yield _two_way_is_better_in_table_9(found)
    yield _weights_converge(found)
    yield _largest_weight(found)


def _settings() -> list[tuple[str, float]]:
    return [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]


def _fitting_helps(found: Results, part: str) -> Finding:
    gains = []
    for kind, epsilon in _settings():
        fitted = found(kind, epsilon, part).utility[part]
        others = (f"{part} (no fitting)", f"{part} (zero replace)")
        gains.append(fitted - max(found(kind, epsilon, other).utility[part] for other in others))
    return Finding(
        f"Fitting improves the utility of noisy {part} margins, beyond replacing negative values.",
        min(gains) > 0,
        f"Utility fitted minus the better of no fitting and zeros: {_signed(gains)}.",
    )


def _bias_of_non_negativity(found: Results) -> Finding:
    biases = [found(kind, epsilon, "3-way").bias for kind, epsilon in _settings()]
    return Finding(
        "Non-negative estimation makes the total too large.",
        min(biases) > 0,
        f"Bias from noisy three-way margins: {_percent(biases)}.",
    )


def _exact_margins_remove_it(found: Results) -> Finding:
    biases = [found(kind, epsilon, "3-way (2-way exact)").bias for kind, epsilon in _settings()]
    return Finding(
        "Exact two-way margins remove the bias.",
        max(abs(bias) for bias in biases) < _NO_BIAS,
        f"Bias with exact two-way margins: {_percent(biases)}.",
    )


def _margins_before_inner_cells(found: Results) -> Finding:
    pairs = [
        (found("with zeros", e, "3-way").utility, found("with zeros", e, "inner cells").utility)
        for e in EPSILONS
    ]
    better = all(a[part] > b[part] for a, b in pairs for part in a)
    shown = ", ".join(f"{a['inner']:.3f} against {b['inner']:.3f}" for a, b in pairs)
    return Finding(
        "With zeros it is better to perturb margins than inner cells.",
        better,
        f"Utility of inner cells: {shown}.",
    )


def _exact_margins_help(found: Results) -> Finding:
    pairs = [
        (
            found(kind, e, "3-way (2-way exact)").utility["3-way"],
            found(kind, e, "3-way").utility["3-way"],
        )
        for kind, e in _settings()
    ]
    shown = ", ".join(f"{a:.3f} against {b:.3f}" for a, b in pairs)
    return Finding(
        "Exact two-way margins improve the three-way margins.",
        all(a > b for a, b in pairs),
        f"Utility of three-way margins: {shown}.",
    )


def _two_way_is_better_in_table_9(found: Results) -> Finding:
    """The sentence names Table 9 alone; in Table 10 it must not be so."""
    gains = {
        epsilon: [
            found(kind, epsilon, "2-way").utility["3-way"]
            - found(kind, epsilon, "3-way").utility["3-way"]
            for kind in KINDS
        ]
        for epsilon in EPSILONS
    }
    low, high = (gains[epsilon] for epsilon in EPSILONS)
    return Finding(
        "In Table 9 the utility of three-way margins increases when going from three-way to "
        "two-way perturbation, and in the other tables it does not.",
        min(low) > 0 > max(high),
        "Utility of three-way margins, 2-way minus 3-way perturbation, with and without zeros: "
        f"{_signed(low)} at ε = {EPSILONS[0]}, {_signed(high)} at ε = {EPSILONS[1]}.",
    )


def _inner_cells_without_zeros(found: Results) -> Finding:
    inner = [found("without zeros", e, "inner cells").utility for e in EPSILONS]
    others = [found("without zeros", e, "3-way").utility for e in EPSILONS]
    return Finding(
        "Without zeros, perturbing inner cells straightforwardly tends to be the best method.",
        all(a[part] > b[part] for a, b in zip(inner, others, strict=True) for part in a),
        "Utility of three-way margins: "
        + ", ".join(
            f"{a['3-way']:.3f} against {b['3-way']:.3f}" for a, b in zip(inner, others, strict=True)
        )
        + ".",
    )


def _weights_converge(found: Results) -> Finding:
    two = [scores.deviation["2-way"] for scores in found.weights.values()][:-1]
    printed = [round(deviation, 2) for deviation in two]  # fits tell no more of heavy margins
    return Finding(
        "A larger weight brings exact margins closer.",
        printed[0] > printed[-1] and all(a >= b for a, b in pairwise(printed)),
        f"Deviation of two-way margins {_numbers(two)}, compared to two decimals as printed.",
    )


def _largest_weight(found: Results) -> Finding:
    three = {weight: scores.deviation["3-way"] for weight, scores in found.weights.items()}
    return Finding(
        "Using 1000 as weight gave good results, but a higher weight must be avoided.",
        three["10000"] > 1.05 * three["1000"],
        f"Deviation of three-way margins {_numbers(list(three.values())[:-1])} at weights 0 to "
        "10000, and with exact margins "
        f"{found(*WEIGHTED, '3-way (2-way exact)').deviation['3-way']:.3g}.",
        known="The paper's solver stopped short of the optimum at high weights (9.21 at 10000); "
        "a certified fit is not harmed by them.",
    )


def _percent(values: list[float]) -> str:
    return ", ".join(f"{value:.3f} %" for value in values)


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _signed(values: list[float]) -> str:
    return ", ".join(f"{value:+.3f}" for value in values)
