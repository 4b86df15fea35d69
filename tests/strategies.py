"""Random designs for hypothesis: flat, nested, overlapping, sparse, with structural zeros."""

import numpy as np
from hypothesis import strategies as st

from discreet import Hierarchy
from discreet.design import Axis, ProductDesign, SparseDesign


@st.composite
def trees(draw, name="h"):
    """A tree of two or three levels, branches of unequal depth."""
    spec = {}
    for i in range(draw(st.integers(1, 3))):
        branch = f"{name}{i}"
        kind = draw(st.integers(0, 2))
        if kind == 0:
            spec[branch] = []
        elif kind == 1:
            spec[branch] = [f"{branch}{j}" for j in range(draw(st.integers(1, 3)))]
        else:
            spec[branch] = {
                f"{branch}{j}": [f"{branch}{j}{k}" for k in range(draw(st.integers(1, 2)))]
                for j in range(draw(st.integers(1, 2)))
            }
    return Hierarchy.from_dict({"All": spec})


@st.composite
def axes(draw, name):
    kind = draw(st.sampled_from(["flat", "tree", "overlap"]))
    if kind == "flat":
        return Axis.flat(name, [f"{name}{i}" for i in range(draw(st.integers(1, 4)))])
    tree = draw(trees(name))
    if kind == "tree" or len(tree.leaves) < 3:
        return Axis.from_hierarchies(name, [tree])
    cut = draw(st.integers(1, len(tree.leaves) - 1))
    other = {f"{name}-low": list(tree.leaves[:cut]), f"{name}-high": list(tree.leaves[cut:])}
    other = {k: v for k, v in other.items() if draw(st.booleans()) or k.endswith("low")}
    return Axis.from_hierarchies(name, [tree, Hierarchy.from_dict({f"{name}-any": other})])


@st.composite
def designs(draw, *, kinds=("product", "sparse")):
    n = draw(st.integers(1, 3))
    names = "abc"[:n]
    dims = [draw(axes(name)) for name in names]
    subsets = [tuple(v for j, v in enumerate(names) if m >> j & 1) for m in range(2**n)]
    margins = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=4, unique=True))
    full = ProductDesign(dims, margins)
    if draw(st.sampled_from(kinds)) == "product":
        return full
    chosen = draw(st.sets(st.integers(0, full.n_inner - 1), min_size=1, max_size=20))
    codes = np.unravel_index(np.array(sorted(chosen)), full.shape)
    return SparseDesign(dims, margins, codes, occurring=draw(st.booleans()))
