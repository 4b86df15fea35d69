"""What the paper concludes, as statements about our figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.studies.model import Finding
from discreet.studies.three_approaches.simulation import Simulation

LEVEL = 0.05
_METHODS = ("DP", "PRAM", "Q")
_TRUE = "Original weighted"
_RELEASED = ("DP Avg", "PRAM Avg", "Q Avg")


def findings(dependent: Simulation, independent: Simulation) -> Iterator[Finding]:
    """The conclusions of section 3.5."""
    yield _risk_and_utility(dependent)
    yield _overall_weight(dependent)
    yield _dependence_is_seen(dependent)
    yield _statistic_grows(independent)
    yield _wrong_decisions(independent)


def _means(found: Simulation, names: Sequence[str], measure: str) -> dict[str, float]:
    return {name: float(found(name, measure).mean()) for name in names}


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in values.items())


def _rises(values: dict[str, float]) -> bool:
    listed = list(values.values())
    return all(a < b for a, b in zip(listed, listed[1:], strict=False))


def _risk_and_utility(found: Simulation) -> Finding:
    risk, distance = (_means(found, _RELEASED, measure) for measure in ("risk", "distance"))
    return Finding(
        "DP has the highest risk measure and the highest utility, Q the lowest of both.",
        _rises({name: -value for name, value in risk.items()}) and _rises(distance),
        f"RM {_listed(risk)}; Hellinger distance {_listed(distance)}.",
    )


def _overall_weight(found: Simulation) -> Finding:
    overall = _means(found, [f"{m} Avg" for m in _METHODS[1:]], "distance")
    own = _means(found, [f"{m} Avg cell" for m in _METHODS[1:]], "distance")
    pairs = zip(overall.values(), own.values(), strict=True)
    return Finding(
        "Adjusting by the overall average weight gives smaller distances than by the cell's.",
        all(a < b for a, b in pairs),
        f"Hellinger distance {_listed(overall)}; {_listed(own)}.",
    )


def _dependence_is_seen(found: Simulation) -> Finding:
    p = {name: float(found(name, "p_value").max()) for name in (_TRUE, *_RELEASED)}
    return Finding(
        "With dependent attributes all p-values stay close to zero.",
        max(p.values()) < LEVEL,
        f"Largest p-value {_listed(p)}.",
    )


def _statistic_grows(found: Simulation) -> Finding:
    statistic = _means(found, (_TRUE, *_RELEASED), "chi_square")
    return Finding(
        "With independent attributes perturbation increases the chi-square statistic, DP least, "
        "then PRAM, then Q.",
        _rises(statistic),
        f"Mean statistic {_listed(statistic)}.",
    )


def _wrong_decisions(found: Simulation) -> Finding:
    rejected = {
        name: float((found(name, "p_value") < LEVEL).mean()) for name in (_TRUE, *_RELEASED)
    }
    return Finding(
        "Perturbed tables used as if they were true ones lead to wrong decisions.",
        min(rejected[name] for name in _RELEASED) > rejected[_TRUE],
        f"Share of tables in which independence is rejected at 5 %: {_listed(rejected)}.",
    )
