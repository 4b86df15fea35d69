"""Transition matrices for counts: made by design, made invariant, audited, exchanged.

>>> table = perturbation_table(D=5, V=3, js=2)
>>> [int(v) for v in table.noise([1, 7, 400], [10, 200, 255], modulus=256)]
[-1, 1, 4]
"""

from discreet.noise.audit import MatrixAudit as Audit
from discreet.noise.audit import NeighbourPair as Neighbours
from discreet.noise.audit import realised_bias
from discreet.noise.entropy import perturbation_table, variance_range
from discreet.noise.invariant import (
    allocate,
    blurred_deviations,
    controlled_flows,
    invariant_matrix,
    moment_estimate,
    no_small_cells,
    tridiagonal,
    two_stage,
)
from discreet.noise.linear import feasibility_intervals, linear_table
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import (
    discrete_laplace,
    drop_add,
    invariant_pram,
    laplace_law,
    large_table,
    pram,
    small_table,
)

__all__ = [
    "Audit",
    "Neighbours",
    "TransitionMatrix",
    "allocate",
    "blurred_deviations",
    "controlled_flows",
    "discrete_laplace",
    "drop_add",
    "feasibility_intervals",
    "invariant_matrix",
    "invariant_pram",
    "laplace_law",
    "large_table",
    "linear_table",
    "moment_estimate",
    "no_small_cells",
    "perturbation_table",
    "pram",
    "realised_bias",
    "small_table",
    "tridiagonal",
    "two_stage",
    "variance_range",
]
