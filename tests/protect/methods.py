"""Every registered method with small parameters, and every source and option that matters."""

from dataclasses import replace

import discreet as dc

PTABLE = dc.perturbation_table(D=5, V=3, js=2)
NOISE = dc.CellKey(PTABLE)
REGISTERED = {
    "adjust": dc.Adjust(NOISE),
    "cell-key": NOISE,
    "controlled-rounding": dc.ControlledRounding(3),
    "discrete-gaussian": dc.DiscreteGaussian(2.0),
    "discrete-laplace": dc.DiscreteLaplace(3.0),
    "drop-add": dc.DropAdd(share=0.1, cap=3),
    "laplace": dc.Laplace(3.0),
    "magnitude-key": dc.protect.MagnitudeKey(),
    "pram": dc.Pram(),
    "quality": dc.protect.Quality(NOISE),
    "safe": dc.Safe(),
    "small-count-rounding": dc.SmallCountRounding(3),
    "suppress": dc.Suppress(dc.rules.Threshold(3)),
}
"""One for each name in the registry; a new method needs a line here, or tests fail."""

VARIANTS = {
    "cell-key with threshold": dc.CellKey(PTABLE, threshold=10),
    "cell-key summed": dc.CellKey(PTABLE, margins="summed"),
    "cell-key adjusted": dc.CellKey(PTABLE, margins="adjusted"),
    "invariant pram": dc.Pram(invariant=True),
    "realised pram": dc.Pram(invariant=True, realised=True),
    "quality of safe": dc.protect.Quality(dc.Safe()),
    "forced rounding": dc.SmallCountRounding(3, force_inner=True),
    "summed laplace": dc.DiscreteLaplace(3.0, margins="summed"),
    "open gaussian": dc.DiscreteGaussian(2.0, nonnegative=False),
    "suppressed zeros": dc.Suppress(dc.rules.Threshold(2, zeros=True)),
    "suppressed at least cost": dc.Suppress(dc.rules.Threshold(2), secondary="optimal"),
    "suppressed as decimals": dc.Suppress(decimals=dc.suppress.Decimals()),
    "suppressed differences": dc.Suppress([dc.rules.DirectDisclosure(0), dc.rules.KDisclosure(1)]),
}
ALL = {
    name: method
    for name, method in {**REGISTERED, **VARIANTS}.items()
    if getattr(method, "units", ()) != ("value",)
}
"""Methods for counts; what publishes sums alone has tests of its own (`test_magnitude_key.py`)."""
FOR_COUNTS = sorted(name for name in REGISTERED if name in ALL)
TABLE_WISE = {name: method for name, method in ALL.items() if method.source == "table"}
DRAWING = {
    name: method for name, method in ALL.items() if "source" not in method.claims.follows_truth
}
"""Methods that draw at random; the others follow from the true values alone."""


def quick(method):
    """The method with a short search, for batteries of many draws."""
    if hasattr(method, "proposals"):
        return replace(method, proposals=2e3)
    inside = getattr(method, "method", None)
    return method if inside is None else replace(method, method=quick(inside))
