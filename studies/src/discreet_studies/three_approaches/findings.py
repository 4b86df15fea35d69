"""What the paper concludes, as statements about our figures."""

from __future__ import annotations

from collections.abc import Iterator

from discreet_studies.chance import orders
from discreet_studies.model import Finding
from discreet_studies.three_approaches.simulation import Simulation

LEVEL = 0.05
_TRUE = "Original weighted"
_RELEASED = ("DP Avg", "PRAM Avg", "Q Avg")


def findings(dependent: Simulation, independent: Simulation) -> Iterator[Finding]:
    """The conclusions of sections 3.5 and 4."""
    yield _ordered(
        "DP preserves totals best, with the smallest percent differences.",
        dependent,
        "difference",
        [("DP", "PRAM"), ("DP", "Q")],
    )
    yield _ordered(
        "DP has smaller Hellinger distances than PRAM and Q, so the highest utility.",
        dependent,
        "distance",
        [_RELEASED],
    )
    yield _ordered(
        "DP has the highest risk measure, Q the lowest.", dependent, "risk", [_RELEASED[::-1]]
    )
    yield _ordered(
        "Adjusting by the overall average weight gives smaller distances than by the cell's.",
        dependent,
        "distance",
        [("PRAM Avg", "PRAM Avg cell"), ("Q Avg", "Q Avg cell")],
    )
    yield _dependence_is_seen(dependent)
    yield _ordered(
        "With independent attributes perturbation increases the chi-square statistic, DP least, "
        "then PRAM, then Q.",
        independent,
        "chi_square",
        [(_TRUE, *_RELEASED)],
    )
    yield _wrong_decisions(independent)


def _ordered(text: str, found: Simulation, measure: str, chains: list[tuple[str, ...]]) -> Finding:
    """Means of a measure that increase along each chain of releases, draw by draw."""
    holds, shown = orders([found(name, measure) for name in chain] for chain in chains)
    names = dict.fromkeys(name for chain in chains for name in chain)
    means = ", ".join(f"{name} {found(name, measure).mean():.4g}" for name in names)
    return Finding(text, holds, f"Means {means}; {shown}.")


def _dependence_is_seen(found: Simulation) -> Finding:
    p = {name: float(found(name, "p_value").max()) for name in (_TRUE, *_RELEASED)}
    return Finding(
        "With dependent attributes all p-values stay close to zero.",
        max(p.values()) < LEVEL,
        "Largest p-value " + ", ".join(f"{name} {value:.2g}" for name, value in p.items()) + ".",
    )


def _wrong_decisions(found: Simulation) -> Finding:
    rejected = {name: 1.0 * (found(name, "p_value") < LEVEL) for name in (_TRUE, *_RELEASED)}
    holds, shown = orders([rejected[_TRUE], rejected[name]] for name in _RELEASED)
    shares = ", ".join(f"{name} {share.mean():.3g}" for name, share in rejected.items())
    return Finding(
        "Perturbed tables used as if they were true ones lead to wrong decisions.",
        holds,
        f"Share of tables in which independence is rejected at 5 %: {shares}; {shown}.",
    )
