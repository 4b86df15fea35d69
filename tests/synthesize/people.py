"""Records that tests synthesize."""

import numpy as np
import pandas as pd

from discreet import Secret

SECRET = Secret(b"what the custodian knows and nobody else")
REGIONS = ("north", "east", "south", "west")


def people(n=240, seed=1):
    """People with two confidential amounts, numbers, codes and a weight."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    region = rng.permutation(np.resize(REGIONS, n))
    income = 20_000 + 300 * age + 9_000 * rng.standard_normal(n) + 4_000 * (region == "north")
    tax = 0.3 * income + 2_000 * rng.standard_normal(n)
    return pd.DataFrame(
        {
            "income": income,
            "tax": tax,
            "age": age,
            "region": region,
            "sex": rng.permutation(np.resize(["f", "m"], n)),
            "children": rng.poisson(1.0, n),
            "w": rng.uniform(1, 5, n),
        }
    )


def lonely(n=60, seed=2, size=1):
    """People of whom `size` live on an island that is a region of its own."""
    frame = people(n, seed)
    frame.loc[frame.index[:size], "region"] = "island"
    return frame


def moments(frame, names, X, weights=None):
    """Products of confidential columns with X and with each other."""
    Y = frame[list(names)].to_numpy(float)
    w = np.ones(len(Y)) if weights is None else weights
    return (X * w[:, None]).T @ Y, (Y * w[:, None]).T @ Y
