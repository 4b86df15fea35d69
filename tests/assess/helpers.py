"""Small things that several tests of measures need."""

import dataclasses

import numpy as np

import discreet as dc
from discreet import registry
from discreet.assessment import NotApplicableError
from discreet.noise import drop_add
from discreet.tables import Bounds, DataSet, Statement

TEST = Statement()


def weighted_table(bound=20.0):
    """A small table with weights of at most so much a record."""
    frame = {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"], "n": [4, 5, 6, 3]}
    frame["w"] = [40.0, 55.0, 58.0, 33.0]
    table = dc.Table.from_counts(frame, count="n", margins="a*b", weight="w", declared=True)
    return dataclasses.replace(table, data_set=DataSet(bounds=Bounds(bound)))


def identity(table):
    """The release that publishes the truth, inner cells and all."""
    return dc.Release.of(table.design, table.z, TEST, y=table.y)


def perturbed(table, rng, reach=2):
    """A release of noisy inner cells, never negative."""
    y = np.maximum(table.y + rng.integers(-reach, reach + 1, len(table.y)), 0)
    return dc.Release.of(table.design, table.design.aggregate(y), TEST, y=y)


def measure(name, table):
    """A registered measure with the options it needs; the last variable is sensitive."""
    made = registry.build("measure", name)
    known = {field.name for field in dataclasses.fields(made)}
    options = {"sensitive": table.design.axes[-1].name, "mechanism": drop_add(0.05)}
    return dataclasses.replace(made, **{k: v for k, v in options.items() if k in known})


def value(name, table, release):
    """A measure's value, or None where it does not apply."""
    try:
        return measure(name, table)(table, release).value
    except NotApplicableError:
        return None
