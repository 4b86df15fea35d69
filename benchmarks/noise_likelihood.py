"""The most likely table beside least squares, with and without negative cells, under four laws.

Mean absolute deviation of published cells from the truth, share of published cells that are exact,
how often the bound was reached, and processor seconds of one likelihood fit.

    python -m benchmarks noise_likelihood
"""

from __future__ import annotations

import time

import numpy as np

import discreet as dc

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
METHODS = {
    "cell-key, D = 5, V = 3, js = 2": dc.CellKey(PTABLE),
    "pram": dc.Pram(),
    "drop-add, 10 %": dc.DropAdd(0.1),
    "discrete Laplace, ε = 4": dc.DiscreteLaplace(4.0),
    "discrete Gaussian, ρ = 1": dc.DiscreteGaussian(1.0),
}
DESIGNS = {
    "party*age + party*sex": ({"party": 3, "age": 3, "sex": 2}, "party*age + party*sex"),
    "a*b + a*c + b*c": ({"a": 5, "b": 4, "c": 3}, "a*b + a*c + b*c"),
    "a*b*c": ({"a": 5, "b": 4, "c": 3}, "a*b*c"),
}
REPLICATES = 10
FITTERS = ("least-squares", "non-negative", "noise-likelihood")


def main() -> None:
    """Print a row for each design and law."""
    print("| design | law | noise | squares | non-negative | likelihood | exact: nn / ml | s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (sizes, margins) in DESIGNS.items():
        design = dc.Design.product(sizes, margins)
        for law, method in METHODS.items():
            found = np.array([replicate(design, method, seed) for seed in range(REPLICATES)])
            noise, *errors, near, exact, reached, seconds = found.mean(axis=0)
            shown = " | ".join(f"{e:.2f}" for e in (noise, *errors))
            missed = REPLICATES - round(reached * REPLICATES)
            more = f"{near:.0%} / {exact:.0%} | {seconds:.2f}"
            print(f"| {name} | {law} | {shown} | {more} |{f' {missed} missed' if missed else ''}")


def replicate(design: dc.Design, method: object, seed: int) -> list[float]:
    """Deviations of one draw, shares of exact cells, whether the bound was reached, and time."""
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, rng.poisson(5.0, design.n_inner)).rekeyed(rng)
    trial = table.simulate(method, seed=seed)
    values = [trial.z]
    for fitter in FITTERS:
        began = time.process_time()
        fitted = trial.fit(fitter)
        seconds = time.process_time() - began
        values.append(fitted.z)
    errors = [float(np.abs(z - table.z).mean()) for z in values]
    exact = [float((np.rint(z) == table.z).mean()) for z in values[2:]]
    return [*errors, *exact, float(fitted.fit_result.is_converged), seconds]


if __name__ == "__main__":
    main()
