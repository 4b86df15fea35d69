"""Transition matrices for counts: made by design, made invariant, audited, exchanged.

>>> table = perturbation_table(D=5, V=3, js=2)
>>> [int(v) for v in table.noise([1, 7, 400], [10, 200, 255], modulus=256)]
[-1, 1, 4]
"""

from discreet.noise.audit import MatrixAudit, NeighbourPair
from discreet.noise.audit import realised_bias as realised_bias
from discreet.noise.entropy import perturbation_table as perturbation_table
from discreet.noise.entropy import variance_range as variance_range
from discreet.noise.invariant import allocate as allocate
from discreet.noise.invariant import blurred_deviations as blurred_deviations
from discreet.noise.invariant import controlled_flows as controlled_flows
from discreet.noise.invariant import invariant_matrix as invariant_matrix
from discreet.noise.invariant import moment_estimate as moment_estimate
from discreet.noise.invariant import no_small_cells as no_small_cells
from discreet.noise.invariant import tridiagonal as tridiagonal
from discreet.noise.invariant import two_stage as two_stage
from discreet.noise.linear import feasibility_intervals as feasibility_intervals
from discreet.noise.linear import linear_table as linear_table
from discreet.noise.matrix import TransitionMatrix as TransitionMatrix
from discreet.noise.pram import discrete_laplace as discrete_laplace
from discreet.noise.pram import drop_add as drop_add
from discreet.noise.pram import invariant_pram as invariant_pram
from discreet.noise.pram import laplace_law as laplace_law
from discreet.noise.pram import large_table as large_table
from discreet.noise.pram import pram as pram
from discreet.noise.pram import small_table as small_table

Audit = MatrixAudit
Neighbours = NeighbourPair
