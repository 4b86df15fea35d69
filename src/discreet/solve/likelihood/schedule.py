"""The constants of likelihood fits, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

CLOSED = -1000.0
"""The multiplier of a published zero in Newton's method; its exponential is zero."""


@dataclass(frozen=True)
class SweepSchedule:
    r"""The constants of iterative proportional fitting.

    Attributes:
      check_every: Sweeps between looks at proofs and progress, each as dear as a sweep.
      patience: Sweeps without progress after which the run is stuck, and a quarter of all so far:
        the deviation may rest for long before it falls.
      progress: What a deviation must fall to, relative to the best one, to count as progress.
      farthest: Multipliers beyond this lose digits in sums that the table needs.
      noise: Relative error of a sum, by which the likelihood may seem to fall.
      remainder: A remainder this small against the published value is rounding error.
      floor: Exponent that stands for a zero, :math:`e^{-100} = 4 \cdot 10^{-44}`.
    """

    check_every: int = 10
    patience: int = 500
    progress: float = 0.9
    farthest: float = 1e4
    noise: float = 1e-13
    remainder: float = 1e-11
    floor: float = -100.0


@dataclass(frozen=True)
class LogLinearSchedule:
    """When a log-linear fit takes which way.

    Attributes:
      never_stored: Inner cells from which passes that store nothing beat sweeps.
      most_published: Share of the inner cells up to which published ones are few. With more, they
        settle many cells, and the vectors of Newton's method are no shorter than the table.
      most_steps: Conjugate gradient steps before sweeps take over.
      most_gradients: Conjugate gradient steps of one Newton step.
      resolution: Deviations below this share of the largest cell are not resolved.
      sweeps_after_conflict: Sweeps of a table that is refuted already: a rough fit will do.
      tighter: Factor by which the sweeps' goal falls while coarser cells still deviate.
      proof: Accuracy of the least squares fit whose residuals may refute the margins.
      proof_steps: Steps of that fit.
    """

    never_stored: int = 100_000
    most_published: float = 0.125
    most_steps: int = 3_000
    most_gradients: int = 500
    resolution: float = 1e-12
    sweeps_after_conflict: int = 10
    tighter: float = 0.25
    proof: float = 1e-9
    proof_steps: int = 10_000


@dataclass(frozen=True)
class PoissonSchedule:
    """The constants of the Poisson fit.

    Attributes:
      check_every: Steps between bounds on the gap, each as dear as some steps.
      small: A loss below this share of the weighted data is measured against that share.
      face: Slopes within so many times the accuracy count as zero.
      sure: So many times the accuracy is how well slopes must be known for that.
      negligible: A gap below this share of the accuracy is proof enough without the slopes.
      sharper: Factor of the accuracy when the log-linear table is not yet an optimum.
      sharpest: Accuracy below which double precision has nothing left to give.
      share: Part of the accuracy by which the log-linear table may fall short of its margins.
      sweeps: Log-linear sweeps at most.
    """

    check_every: int = 100
    small: float = 1e-4
    face: float = 20.0
    sure: float = 5.0
    negligible: float = 1e-3
    sharper: float = 0.1
    sharpest: float = 1e-12
    share: float = 0.01
    sweeps: int = 1_000


SWEEPS, LOG_LINEAR, POISSON = SweepSchedule(), LogLinearSchedule(), PoissonSchedule()
