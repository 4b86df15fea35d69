"""The journey of `fit(NonNegative())` on a table of 16,040 inner cells.

    python ../shared/tools/house.py --walk benchmarks/journeys/fit_non_negative.py

The walk counts the fit alone: its counter rests while modules are imported, and while the table is
made and perturbed.
"""

import sys

COUNTER = sys.getprofile()
sys.setprofile(None)
import discreet as dc  # noqa: E402  (after the counter rests)


def main() -> None:
    """Perturb region by sex and age by sex of the demo census, and fit the result."""
    table = dc.demo.census(persons=10_000).tabulate("region*sex + age*sex")
    ptable = dc.perturbation_table(D=5, V=3, js=2)
    trial, fitter = table.simulate(dc.CellKey(ptable), seed=0), dc.NonNegative()
    trial.fit(fitter)  # compiles, and imports what is imported at first use
    sys.setprofile(COUNTER)
    trial.fit(fitter)


if __name__ == "__main__":
    main()
