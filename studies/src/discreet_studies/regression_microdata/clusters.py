"""Section 6: generalised microaggregation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import InfeasibleError
from discreet.synthesis.hybrid import hybrid
from discreet.synthesis.methods import ipso
from discreet_studies.model import Finding
from discreet_studies.regression_microdata.judge import (
    DIFFERENT,
    EXACT,
    Businesses,
    by_label,
    coefficients,
    exactly,
    fitted_values,
    gap,
    information_loss,
    moment_gap,
    replay,
    residuals,
)

Parts = dict[str, Real]
_BINDING = 1e-5
"""Share of a covariance that counts as none."""


def section_6(data: Businesses, rng: np.random.Generator) -> Iterator[Finding]:
    """Hybrid data within clusters, and beyond them."""
    yield _within(data, rng)
    yield _with_indicators(data, rng)
    yield _crossed_indicators(data, rng)
    yield _orthogonal(data)
    yield _main(data, rng)
    yield _without_shared(data, rng)
    yield _variant_a(data, rng)
    yield _variant_b(data, rng)
    yield _variant_c(data, rng)
    yield _groups(data, rng)
    yield _pieces(data, rng)
    yield _low_variability(data, rng)
    yield _microaggregation(data, rng)
    yield _per_employee(data, rng)


def _within(data: Businesses, rng: np.random.Generator) -> Finding:
    """MHa with the number of employees crossed with clusters."""
    X = data.X[:, [0, -1]]
    made = hybrid(data.Y, X, None, data.clusters, rng=rng).Y
    local = max(information_loss(data.Y[r], X[r], made[r]) for r in by_label(data.clusters))
    return exactly(
        "MHa preserves fits and covariances within each cluster, and thereby overall.",
        {"within clusters": local, "overall": information_loss(data.Y, X, made)},
    )


def _with_indicators(data: Businesses, rng: np.random.Generator) -> Finding:
    X = np.hstack([data.X, np.eye(data.clusters.max() + 1)[data.clusters]])
    made = ipso(data.Y, X, rng=rng).Y
    return _overall_only(
        "MHb preserves sums within clusters, overall fits and the overall covariance matrix, but "
        "not the covariances within clusters.",
        data,
        information_loss(data.Y, X, made),
        made,
    )


def _crossed_indicators(data: Businesses, rng: np.random.Generator) -> Finding:
    marks = np.eye(data.clusters.max() + 1)[data.clusters]
    X = np.hstack([marks, marks * data.employees])
    made = ipso(data.Y, X, rng=rng).Y
    text = "With all x-variables crossed with clusters, MHb preserves all fits within clusters, "
    return _overall_only(
        f"{text}but not the covariances.", data, information_loss(data.Y, X, made), made
    )


def _overall_only(text: str, data: Businesses, overall: float, made: Real) -> Finding:
    """What is preserved overall, and must not be in each cluster."""
    local = min(moment_gap(*_centre(made, data.Y, r)) for r in by_label(data.clusters))
    return Finding(
        text,
        bool(overall <= EXACT and local > DIFFERENT),
        f"Relative differences: preserved {overall:.0e}; covariances within clusters at least "
        f"{local:.2f}.",
    )


def _centre(made: Real, Y: Real, rows: Any) -> tuple[Real, Real]:
    return made[rows] - made[rows].mean(axis=0), Y[rows] - Y[rows].mean(axis=0)


def parts(Y: Real, XA: Real, XB: Real, clusters: Whole) -> Parts:
    """The four parts of equation 19, by regressions within each cluster."""
    found = {name: np.zeros_like(Y) for name in ("Y1", "Y2ext")}
    X2 = np.zeros_like(XB)
    for rows in by_label(clusters):
        found["Y1"][rows] = fitted_values(Y[rows], XA[rows])
        X2[rows] = residuals(XB[rows], XA[rows])
        found["Y2ext"][rows] = fitted_values(Y[rows], X2[rows])
    Y2 = fitted_values(Y, X2)
    E4 = Y - found["Y1"] - found["Y2ext"]
    return {"Y1": found["Y1"], "Y2": Y2, "E3": found["Y2ext"] - Y2, "E4": E4}


def _orthogonal(data: Businesses) -> Finding:
    found = list(parts(data.Y, data.constant, data.employees, data.clusters).values())
    size = [np.linalg.norm(part) for part in found]
    worst = max(
        float(np.abs(a.T @ b).max() / (s * t))
        for i, (a, s) in enumerate(zip(found, size, strict=True))
        for b, t in zip(found[:i], size[:i], strict=True)
    )
    text = "Fits and residuals are divided into four orthogonal parts (19)."
    return exactly(text, {"products of different parts": worst})


def _main(data: Businesses, rng: np.random.Generator) -> Finding:
    model = data.constant, data.employees, data.clusters
    made = hybrid(data.Y, *model, rng=rng).Y
    before, after = parts(data.Y, *model), parts(made, *model)
    rows = by_label(data.clusters)
    kept = {
        "fits": max(gap(after[name], before[name]) for name in ("Y1", "Y2")),
        "E4'E4 in clusters": max(moment_gap(after["E4"][r], before["E4"][r]) for r in rows),
        "E3'E3 overall": moment_gap(after["E3"], before["E3"]),
    }
    changed = [moment_gap(after["E3"][r], before["E3"][r]) > DIFFERENT for r in rows]
    found = exactly(
        "The main algorithm preserves fitted values, Ê4'Ê4 at the local level, and Ê3'Ê3 at the "
        "global level only.",
        kept,
    )
    evidence = (
        f"{found.evidence} Ê3'Ê3 within a cluster changes by more than {DIFFERENT:.0%} in "
        f"{sum(changed)} of {len(changed)} clusters."
    )
    return Finding(found.text, bool(found.holds and 2 * sum(changed) > len(changed)), evidence)


def _without_shared(data: Businesses, rng: np.random.Generator) -> Finding:
    drawn = rng.standard_normal(data.Y.shape)
    made = hybrid(data.Y, data.constant, None, data.clusters, rng=replay(drawn)).Y
    alone = np.empty_like(made)
    for r in by_label(data.clusters):
        alone[r] = ipso(data.Y[r], data.constant[r], rng=replay(drawn[r])).Y
    return exactly(
        "If X_B is empty, the main algorithm simplifies to IPSO within each cluster.",
        {"both": gap(made, alone)},
    )


def _variant(
    data: Businesses, rng: np.random.Generator, variant: Any, labels: Whole
) -> tuple[Real, dict[str, float], Real]:
    """Made data, what modifications preserve, and the slopes within each cluster."""
    Y, X = data.Y, data.X[:, [0, -1]]
    made = hybrid(Y, data.constant, data.employees, labels, rng=rng, variant=variant).Y
    marks = np.hstack([np.eye(labels.max() + 1)[labels], data.employees])
    E, new = residuals(Y, marks), residuals(made, marks)
    rows = by_label(labels)
    kept = {
        "fits": gap(fitted_values(made, marks), fitted_values(Y, marks)),
        "residual covariances in clusters": max(moment_gap(new[r], E[r]) for r in rows),
    }
    slopes = np.array([coefficients(made[r], X[r])[1] for r in rows])
    return made, kept, slopes


def _variant_a(data: Businesses, rng: np.random.Generator) -> Finding:
    made, kept, slopes = _variant(data, rng, "a", data.clusters)
    marks = np.hstack([np.eye(data.clusters.max() + 1)[data.clusters], data.employees])
    same = np.broadcast_to(coefficients(data.Y, marks)[-1], slopes.shape)
    return exactly(
        "Modification a preserves covariances at the local level, and within each cluster the "
        "estimates of X_B become identical to the global one.",
        {**kept, "slopes": gap(slopes, same)},
    )


def _variant_b(data: Businesses, rng: np.random.Generator) -> Finding:
    _, kept, slopes = _variant(data, rng, "b", data.size_class)
    spread = float((slopes.std(axis=0) / np.abs(slopes.mean(axis=0))).min())
    found = exactly(
        "Modification b preserves covariances at the local level, and estimates of X_B stay "
        "different between clusters.",
        kept,
    )
    evidence = f"{found.evidence} Slopes vary by {spread:.1%} at least."
    return Finding(found.text, bool(found.holds and spread > 1e-3), evidence)


def _variant_c(data: Businesses, rng: np.random.Generator) -> Finding:
    """Many small clusters, in which b has no solution."""
    model = data.constant, data.employees, data.clusters
    drawn = rng.standard_normal(data.Y.shape)
    try:
        hybrid(data.Y, *model, rng=replay(drawn), variant="b")
        impossible = False
    except InfeasibleError:
        impossible = True
    alpha = float(hybrid(data.Y, *model, rng=replay(drawn), variant="c").details["alpha"])
    made, kept, _ = _variant(data, replay(drawn), "c", data.clusters)
    room = _least_room(parts(data.Y, *model), parts(made, *model)["E3"], data.clusters)
    found = exactly(
        "Where C cannot be found in b, c has a solution with the largest α that is feasible in "
        "all clusters.",
        kept,
    )
    evidence = f"{found.evidence} b is impossible: {impossible}; α = {alpha:.4f}, with "
    evidence += f"{room:.0e} of the covariance left in the cluster that binds."
    holds = found.holds and impossible and 0 < alpha < 1 and room < _BINDING
    return Finding(found.text, bool(holds), evidence)


def _least_room(before: Parts, between: Real, clusters: Whole) -> float:
    """Smallest share of a cluster's covariance that its synthetic Ê3 leaves in any direction."""
    E = before["E3"] + before["E4"]
    taken = (np.linalg.solve(E[r].T @ E[r], between[r].T @ between[r]) for r in by_label(clusters))
    return min(1 - float(np.linalg.eigvals(each).real.max()) for each in taken)


def _groups(data: Businesses, rng: np.random.Generator) -> Finding:
    """Modification d: slopes are preserved within size classes, given the clusters' means."""
    options: dict[str, Any] = {"groups": data.size_class, "rng": rng}
    made = hybrid(data.Y, data.constant, data.employees, data.clusters, **options).Y
    marks = np.eye(data.clusters.max() + 1)[data.clusters]
    X = np.hstack([marks, np.eye(data.size_class.max() + 1)[data.size_class] * data.employees])
    return exactly(
        "With modification d relations to X_B are preserved within each group of clusters.",
        {
            "fits": gap(fitted_values(made, X), fitted_values(data.Y, X)),
            "information": information_loss(data.Y, X, made),
        },
    )


def _pieces(data: Businesses, rng: np.random.Generator) -> Finding:
    """Modification e: size classes are the clusters, and microaggregation clusters their pieces."""
    X = data.X[:, [0, -1]]
    made = hybrid(data.Y, X, None, data.size_class, pieces=data.clusters, rng=rng).Y
    local = max(information_loss(data.Y[r], X[r], made[r]) for r in by_label(data.size_class))
    means = [(made[r].mean(axis=0), data.Y[r].mean(axis=0)) for r in by_label(data.clusters)]
    text = "With modification e covariances and fits are preserved within clusters, and means "
    differences = {"clusters": local, "means of pieces": max(gap(a, b) for a, b in means)}
    return exactly(f"{text}within their pieces.", differences)


def _low_variability(data: Businesses, rng: np.random.Generator) -> Finding:
    """The invented businesses have one cluster that hardly varies."""
    marks = np.eye(data.clusters.max() + 1)[data.clusters]
    made = {
        "MHa": hybrid(data.Y, data.constant, None, data.clusters, rng=rng).Y,
        "MHb": ipso(data.Y, marks, rng=rng).Y,
    }
    rows = min(by_label(data.clusters), key=lambda r: float(data.Y[r].var(axis=0).sum()))
    spread = residuals(data.Y, marks).std(axis=0)
    moved = {
        name: float((np.abs(Y[rows] - data.Y[rows]) / spread).mean()) for name, Y in made.items()
    }
    return Finding(
        "Where the variability in a cluster is very low, MHa is close to the original there and "
        "MHb is not.",
        moved["MHa"] < 0.2 and 5 * moved["MHa"] < moved["MHb"],
        f"Mean distance in standard deviations: MHa {moved['MHa']:.3f}, MHb {moved['MHb']:.3f}.",
    )


def _microaggregation(data: Businesses, rng: np.random.Generator) -> Finding:
    made = hybrid(data.Y, data.constant, None, data.clusters, rng=rng, residuals="zero").Y
    means = np.empty_like(made)
    for r in by_label(data.clusters):
        means[r] = data.Y[r].mean(axis=0)
    return exactly(
        "With residuals zero and intercepts only, values are means within clusters.",
        {"means": gap(made, means)},
    )


def _per_employee(data: Businesses, rng: np.random.Generator) -> Finding:
    """Means per employee within size classes, where the number of employees varies."""
    X, rows = data.X[:, [0, -1]], by_label(data.size_class)
    options: dict[str, Any] = {"rng": rng, "residuals": "zero"}
    plain = hybrid(data.Y, data.constant, None, data.size_class, **options).Y
    general = hybrid(data.Y, X, None, data.size_class, **options).Y
    means = max(gap(general[r].mean(axis=0), data.Y[r].mean(axis=0)) for r in rows)
    errors = [
        float(np.mean([np.abs((Y[r] - data.Y[r]) / X[r, 1:]).mean(axis=0) for r in rows]))
        for Y in (plain, general)
    ]
    totals = [
        max(gap((Y[r] / X[r, 1:]).mean(axis=0), (data.Y[r] / X[r, 1:]).mean(axis=0)) for r in rows)
        for Y in (plain, general)
    ]
    return Finding(
        "With the number of employees in the model, means per employee are closer to the truth, "
        "while ordinary means are preserved.",
        bool(means <= EXACT and totals[1] < totals[0] and errors[1] < errors[0]),
        f"Largest error of means per employee in a class: {totals[0]:.1%} without it and "
        f"{totals[1]:.1%} with it; means differ by {means:.0e}.",
    )
