"""Laws of noise with a formula: post-randomisation, truncated Laplace, drop/add-up-to-q."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real
from discreet.errors import DataError, ParameterError, positive, whole, within
from discreet.noise.invariant import two_stage
from discreet.noise.lookup import whole_counts
from discreet.noise.matrix import TransitionMatrix


def small_table(epsilon: float = 2.0, cap: int = 7) -> Real:
    """`P[i, j]` for counts and targets `0..cap-1`; zero stays.

    Mass beyond the table goes to the neighbour on the side it left by; the largest count has no
    neighbour above, so there it goes to the one below, and what falls below zero goes to zero.
    """
    law, top = laplace_law(epsilon, cap), cap - 1
    if top < 2:
        raise ParameterError(f"the small table needs a cap of at least 3, got {cap}.")
    P = np.zeros((cap, cap))
    P[0, 0] = 1.0
    for i in range(1, cap):
        below, above = _fold(P[i], law, i)
        P[i, i - 1 if i < top else 0] += below
        P[i, i + 1 if i < top else i - 1] += above
    return P


def large_table(epsilon: float = 2.0, cap: int = 7) -> Real:
    """`P[m, v]` for residues `m` and selected values `v` in `0..2·cap`.

    Mass beyond the table goes to the neighbour of `m` that lies towards its nearer end; the two
    ends have one neighbour only.
    """
    law, size = laplace_law(epsilon, cap), 2 * cap + 1
    P = np.zeros((size, size))
    for m in range(size):
        lost = sum(_fold(P[m], law, m))
        outward = m - 1 if m < cap else m + 1
        P[m, outward if 0 <= outward < size else 2 * m - outward] += lost
    return P


def pram(epsilon: float = 2.0, cap: int = 7) -> TransitionMatrix:
    """Small counts by `small_table`, counts of `cap` and more by `large_table` on their residue.

    A large count with residue `m` for which `v` is selected moves by `m - v`, so its noise is a
    function of the residue: residue 0 never rises, the largest residue never falls.

    Promise: zeros stay, no count becomes negative, largest move `cap`. The noise is biased
    near the ends of both tables.

    See Shlomo, Krenzke & Li (2019), Tables 2 and 3.
    """
    small, large = small_table(epsilon, cap), large_table(epsilon, cap)
    parameters = {"epsilon": epsilon, "cap": cap}
    return _matrix("post-randomisation", small, large, parameters, mirrored=True)


def invariant_pram(
    counts: npt.ArrayLike,
    epsilon: float = 2.0,
    cap: int = 7,
    alpha: float = 0.8,
    *,
    zeros: bool = False,
) -> TransitionMatrix:
    """`pram` made invariant for the counts at hand.

    Both tables go through the two-stage construction with the frequencies of the small counts and
    of the residues of the large ones. Large counts move by `v - m` here, so that the published
    residues are the selected ones and keep their expected frequencies.

    Promise: among the cells with small true counts the expected number at each count, and among
    the cells with large ones the expected number at each residue, is unchanged. The matrix depends
    on the table, so the same cell may move otherwise in another.

    Args:
      counts: The counts of the table.
      epsilon: Parameter of the folded law.
      cap: Largest move.
      alpha: Strength; a share `1 - alpha` of the identity is mixed in.
      zeros: Whether zero is a state like the others. When not, zeros stay and no other count
        becomes zero; when it is, some zeros become positive to make up for new ones.

    See Shlomo & Young (2008), Shlomo, Krenzke & Li (2019).
    """
    n, base = whole_counts(counts).ravel(), 2 * cap + 1
    if n.size and n.min() < 0:
        raise DataError(f"counts must be at least 0, but {n.min()} occurs.")
    small_t = np.bincount(n[n < cap], minlength=cap)
    large_t = np.bincount(n[n >= cap] % base, minlength=base)
    # states without cells are left alone by the two stages
    small_t[0] *= zeros
    small = two_stage(small_table(epsilon, cap), small_t, alpha)
    large = two_stage(large_table(epsilon, cap), large_t, alpha)
    parameters = {"epsilon": epsilon, "cap": cap, "alpha": alpha, "zeros": zeros}
    return _matrix("invariant post-randomisation", small, large, parameters, mirrored=False)


def _matrix(
    name: str, small: Real, large: Real, parameters: dict[str, float], *, mirrored: bool
) -> TransitionMatrix:
    """One row per small count, then one per residue in the order of the counts from `cap` on."""
    cap, base = len(small), len(large)
    reach = base - 1
    law = np.zeros((cap + base, 2 * reach + 1))
    for i in range(cap):
        law[i, reach - i : reach - i + cap] = small[i]
    for count in range(cap, cap + base):
        m = count % base
        law[count, reach - m : reach - m + base] = large[m]
        # the published tables of the method move by m - v, not by v - m
        if mirrored:
            law[count] = law[count, ::-1]
    return TransitionMatrix.from_law(name, law, period=base, parameters=parameters)


def _fold(row: Real, law: Real, i: int) -> tuple[float, float]:
    """Write the law around place `i` into the row; return what falls below and above it."""
    cap, below, above = len(law) // 2, 0.0, 0.0
    for u, p in enumerate(law, start=-cap):
        if i + u < 0:
            below += p
        elif i + u >= len(row):
            above += p
        else:
            row[i + u] = p
    return below, above


def laplace_law(epsilon: float, cap: int, sensitivity: float = 1.0) -> Real:
    """Probabilities of the noise `-cap..cap`, before negative results are set to zero.

    A draw from the untruncated law that is rejected and repeated beyond the cap has this law.
    """
    rate = positive("epsilon", epsilon) / positive("sensitivity", sensitivity)
    reach = np.abs(np.arange(-whole("cap", cap, 1), cap + 1))
    weights: Real = np.exp(-rate * reach)
    return np.asarray(weights / weights.sum())


def discrete_laplace(epsilon: float, cap: int, sensitivity: float = 1.0) -> TransitionMatrix:
    r"""Counts plus truncated discrete Laplace noise, negative results set to zero.

    Promise: largest move `cap`; neighbouring counts are
    :math:`(\varepsilon/\Delta, \delta)`-indistinguishable with :math:`\delta = \Pr(u = c)`, counts
    of zero included. Setting negatives to zero costs no privacy but biases counts below the cap
    upwards.

    Args:
      epsilon: The budget ε for all the cells that one person counts in.
      cap: Largest move.
      sensitivity: The number of perturbed cells that one person counts in, or their weight.

    See Rinott et al. (2018), Shlomo, Krenzke & Li (2019).
    """
    law = laplace_law(epsilon, cap, sensitivity)
    cap = int(cap)
    rows = np.zeros((cap + 1, 2 * cap + 1))
    for count in range(cap + 1):
        zero = cap - count
        rows[count, zero:] = law[zero:]
        rows[count, zero] = law[: zero + 1].sum()
    parameters = {"epsilon": float(epsilon), "cap": cap, "sensitivity": float(sensitivity)}
    return TransitionMatrix.from_law(
        "truncated discrete Laplace noise", rows, parameters=parameters
    )


def drop_add(share: float = 0.01, cap: int = 7) -> TransitionMatrix:
    r"""Uniform noise up to a `share` of the count, rounded up, and never beyond `cap`.

    Promise: mean zero, variance :math:`q(q + 1)/3`, zeros stay. Not differential privacy: from any
    count above zero a share :math:`1/(2q+1)` of the outcomes rules out a neighbour.

    Args:
      share: The share `s` of the count, in (0, 1]; decimal fractions are taken exactly.
      cap: The largest move `c`.

    See Li & Krenzke (2016), Shlomo, Krenzke & Li (2019).
    """
    within("share", share, 1)
    cap = whole("cap", cap, 1)
    # the float 0.01 is a little more, and count 100 would get q = 2
    exact = Fraction(str(share))
    starts = [0, *(int((q - 1) / exact) + 1 for q in range(1, cap + 1))]
    reach = np.abs(np.arange(-cap, cap + 1))
    law = np.array([(reach <= q) / (2 * q + 1) for q in range(cap + 1)])
    return TransitionMatrix.from_law(
        "drop/add-up-to-q", law, starts=starts, parameters={"share": float(share), "cap": cap}
    )
