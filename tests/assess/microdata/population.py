"""A population, from which members, control records and harmless records are drawn."""

import numpy as np
import pandas as pd


def draw(n, seed):
    """Records of one population: two numbers and two codes that depend on each other."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 80, n)
    income = 20_000 + 300 * age + 9_000 * rng.standard_normal(n)
    region = np.array(["north", "east", "south"])[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    ill = np.where(rng.random(n) < np.where(region == "north", 0.1, 0.4), "yes", "no")
    return pd.DataFrame({"age": age, "income": income, "region": region, "ill": ill})
