"""The battery for fitters: registered ones pass, broken ones are caught."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.solve import Certificate
from discreet.testing import BrokenPromiseError, check_fitter

CUBE = dc.Design.product({"a": 3, "b": 4, "c": 2}, "a:b + b:c")
TREE = dc.Hierarchy.from_dict({"All": {"N": ["n1", "n2"], "S": ["s1", "s2", "s3"]}})
NESTED = dc.Design.product(
    [dc.design.Axis.from_hierarchies("geo", [TREE]), dc.design.Axis.flat("sex", ["f", "m"])],
    "geo*sex",
)
SPARSE = dc.Design.sparse({"a": 3, "b": 3}, "a + b", [[0, 0, 1, 2, 2], [0, 1, 1, 0, 2]])
DESIGNS = {"cube": CUBE, "nested": NESTED, "sparse": SPARSE}


# Records from margins are found by a local search, which promises no table that adds up; the most
# likely table needs a law that belongs to the values. Their own tests hold them to their promises.
OTHERS = ("from-margins", "noise-likelihood")


@pytest.mark.parametrize("name", [name for name in registry.FITTERS if name not in OTHERS])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_every_registered_fitter_keeps_its_promises(name, design):
    fitter = registry.build("fitter", name)
    assert fitter.name == name
    check_fitter(fitter, design)


@dataclass(frozen=True)
class Broken:
    """Least squares with its result spoiled."""

    spoil: object
    name: str = "broken"

    def __call__(self, design, z, *, weights=None):
        return self.spoil(dc.LeastSquares()(design, z, weights=weights))

    def prepare(self, design):
        return lambda z, *, weights=None: self(design, z, weights=weights)


@pytest.mark.parametrize(
    ("spoil", "promise"),
    [
        (lambda fit: replace(fit, z=fit.z + 1), "adds_up"),
        (lambda fit: replace(fit, cells=fit.y[:-1]), "has_the_right_size"),
        (lambda fit: replace(fit, certificate=Certificate(gap=1.0)), "is_certified"),
        (lambda fit: replace(fit, cells=2 * fit.y, z=2 * fit.z), "meets_a_table_that_adds_up"),
        (lambda fit: replace(fit, cells=fit.y * np.nan), "has_the_right_size"),
    ],
)
def test_a_broken_promise_is_named(spoil, promise):
    with pytest.raises(BrokenPromiseError, match=promise):
        check_fitter(Broken(spoil), CUBE)
