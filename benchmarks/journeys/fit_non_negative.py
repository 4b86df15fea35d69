"""The journey of `fit(NonNegative())` on a table of 16,040 inner cells.

    python ../shared/tools/house.py --walk benchmarks/journeys/fit_non_negative.py

The walk counts the fit alone: its counter rests while the table is made and perturbed.
"""

import sys

import discreet as dc


def main() -> None:
    """Perturb region by sex and age by sex of the demo census, and fit the result."""
    counter = sys.getprofile()
    sys.setprofile(None)
    table = dc.demo.census(persons=10_000).tabulate("region*sex + age*sex")
    ptable = dc.perturbation_table(D=5, V=3, js=2)
    trial, fitter = table.simulate(dc.CellKey(ptable), seed=0), dc.NonNegative()
    sys.setprofile(counter)
    trial.fit(fitter)


if __name__ == "__main__":
    main()
