"""Fixed tables, designs and records; everything is drawn from seeds or written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc

SECRET = dc.Secret(b"a fixed secret of at least thirty-two bytes for recordings")
REGION = dc.Hierarchy(
    "ALL",
    {"N": "ALL", "N1": "N", "N2": "N", "N3": "N", "S": "ALL", "S1": "S", "S2": "S", "ISLE": "ALL"},
    {"ALL": "Whole country", "N": "North", "S": "South", "N1": "Høytland"},
    ("country", "part", "county"),
)
AGES, SEXES, JOBS = ("0-14", "15-64", "65+"), ("f", "m"), ("a", "b", "c", "d")
ZEROS = [{"region": ["ISLE"], "age": ["65+"]}]


def _cells(seed: int, mean: float = 9.0, **columns: tuple[str, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    cells = list(itertools.product(*columns.values()))
    frame: dict[str, Any] = {name: [c[k] for c in cells] for k, name in enumerate(columns)}
    frame["n"] = rng.poisson(rng.exponential(mean, len(cells)))
    keys = rng.integers(2**32, size=len(cells))
    frame["key"] = np.where(frame["n"] > 0, keys, 0)
    frame["w"] = np.round(frame["n"] * rng.uniform(5, 15, len(cells)), 2)
    return frame


def flat(**options: Any) -> dc.Table:
    """Two variables with found codes, or declared ones."""
    frame = _cells(1, age=AGES, job=JOBS)
    options = {"declared": True, **options}
    table = dc.Table.from_counts(frame, "n", "age*job", key="key", name="flat", **options)
    return table.with_secret(SECRET)


def hierarchical() -> dc.Table:
    """A hierarchy, structural zeros and linked margins."""
    frame = _cells(2, region=REGION.leaves, age=AGES, sex=SEXES)
    places = zip(frame["region"], frame["age"], strict=True)
    impossible = [place == ("ISLE", "65+") for place in places]
    for name in ("n", "key", "w"):
        frame[name] = np.where(impossible, 0, frame[name])
    table = dc.Table.from_counts(
        frame,
        "n",
        "region*age + region*sex",
        key="key",
        hierarchies={"region": REGION},
        structural_zeros=ZEROS,
        declared=True,
        name="hierarchical",
    )
    return table.with_secret(SECRET)


def weighted() -> dc.Table:
    """Counts with sums of weights."""
    frame = _cells(3, region=REGION.leaves, sex=SEXES)
    table = dc.Table.from_counts(
        frame,
        "n",
        "region*sex",
        key="key",
        weight="w",
        mean_weight=10,
        hierarchies={"region": REGION},
        declared=True,
        name="weighted",
    )
    return table.with_secret(SECRET)


def linked() -> dc.Table:
    """Three variables of which pairs are published, inner cells of those that occur."""
    frame = _cells(4, mean=3.0, age=AGES, sex=SEXES, job=JOBS)
    table = dc.Table.from_counts(
        frame, "n", "age*sex + age*job + sex*job", key="key", declared=True, name="linked"
    )
    return table.with_secret(SECRET)


def magnitude() -> dc.Table:
    """Sums of a value, with contributors and holdings."""
    table = dc.Table.from_contributions(
        firms(),
        "activity*region",
        value="turnover",
        contributor="enterprise",
        holding="group",
        declared=True,
        name="firms",
    )
    return table.with_secret(SECRET)


def firms() -> pd.DataFrame:
    """Firms with an activity, a region, an owner and a turnover."""
    activity = ["bread"] * 30 + ["paper"] * 12 + ["steel"] * 10
    region = ["north"] * 14 + ["south"] * 10 + ["hills"] * 6 + ["north"] * 7 + ["south"] * 4
    region += ["hills"] + ["north"] * 4 + ["south"] * 2 + ["hills"] * 4
    return pd.DataFrame(
        {
            "id": range(52),
            "activity": activity,
            "region": region,
            "enterprise": [f"E{k % 45}" for k in range(52)],
            "group": ["G1" if k % 13 == 0 else None for k in range(52)],
            "turnover": [7 + (k * 37) % 91 for k in range(52)],
        }
    )


def people(n: int = 240, seed: int = 1) -> pd.DataFrame:
    """People with ids, codes, numbers, two amounts and a weight."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    region = rng.permutation(np.resize(["north", "east", "south", "west"], n))
    income = 20_000 + 300 * age + 9_000 * rng.standard_normal(n) + 4_000 * (region == "north")
    return pd.DataFrame(
        {
            "pid": np.arange(n),
            "income": np.round(income, 2),
            "tax": np.round(0.3 * income + 2_000 * rng.standard_normal(n), 2),
            "age": age,
            "region": region,
            "sex": rng.permutation(np.resize(["f", "m"], n)),
            "children": rng.poisson(1.0, n),
            "w": np.round(rng.uniform(1, 5, n), 3),
        }
    )


TABLES = {
    "flat": flat,
    "hierarchical": hierarchical,
    "weighted": weighted,
    "linked": linked,
    "magnitude": magnitude,
}


def designs() -> dict[str, dc.Design]:
    """Designs of every kind: complete, with a hierarchy, sparse, with zeros, any matrix."""
    regions = [
        dc.design.Axis.from_hierarchies("region", [REGION]),
        dc.design.Axis.flat("sex", list(SEXES)),
    ]
    sizes = {"a": 3, "b": 4, "c": 2}
    codes = [np.array([0, 0, 1, 1, 2]), np.array([0, 2, 0, 1, 3])]
    X = np.random.default_rng(5).integers(0, 2, (6, 5))
    return {
        "pairs": dc.Design.product(sizes, "a*b + a*c + b*c"),
        "inner": dc.Design.product({"a": 3, "b": 4}, "a*b"),
        "margins": dc.Design.product({"a": 3, "b": 4}, "a + b"),
        "hierarchy": dc.Design.product(regions, "region + sex"),
        "crossed": dc.Design.product(regions, "region*sex"),
        "sparse": dc.Design.sparse({"a": 3, "b": 4}, "a + b", codes),
        "zeros": dc.Design.product({"a": 3, "b": 4}, "a + b", [{"a": ["1"], "b": ["2", "3"]}]),
        "matrix": dc.Design.from_matrix(X),
    }
