"""What the paper concludes, as statements about our figures."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.studies.inner_frequencies.results import EPSILONS, KINDS, Results
from discreet.studies.model import Finding

_NO_BIAS = 0.005  # percent: rounds to the printed 0.00


def findings(found: Results) -> Iterator[Finding]:
    """The conclusions of section 4."""
    yield _fitting_helps(found, "3-way")
    yield _fitting_helps(found, "2-way")
    yield _bias_of_non_negativity(found)
    yield _exact_margins_remove_it(found)
    yield _margins_before_inner_cells(found)
    yield _exact_margins_help(found)
    yield _weights_converge(found)


def _settings() -> list[tuple[str, float]]:
    return [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]


def _fitting_helps(found: Results, part: str) -> Finding:
    gains = []
    for kind, epsilon in _settings():
        fitted = found(kind, epsilon, part).utility[part]
        others = (f"{part} (no fitting)", f"{part} (zero replace)")
        gains.append(fitted - max(found(kind, epsilon, other).utility[part] for other in others))
    shown = ", ".join(f"{gain:+.3f}" for gain in gains)
    return Finding(
        f"Fitting improves the utility of noisy {part} margins, beyond replacing negative values.",
        min(gains) > 0,
        f"Utility fitted minus the better of no fitting and zeros: {shown}.",
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


def _weights_converge(found: Results) -> Finding:
    two = [scores.deviation["2-way"] for scores in found.weights.values()]
    three = [scores.deviation["3-way"] for scores in found.weights.values()]
    return Finding(
        "A larger weight brings exact margins closer, and does not harm the others.",
        all(a > b for a, b in zip(two, two[1:], strict=False)) and three[-1] <= three[0],
        f"Deviation of two-way margins {_numbers(two)}; of three-way margins {_numbers(three)}.",
    )


def _percent(values: list[float]) -> str:
    return ", ".join(f"{value:.3f} %" for value in values)


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
