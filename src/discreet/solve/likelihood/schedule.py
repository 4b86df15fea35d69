"""The constants of likelihood fits, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.solve.dual_newton import NewtonSchedule


@dataclass(frozen=True)
class LogLinearSchedule:
    r"""When a log-linear fit takes which way, and how far Newton's method goes.

    Attributes:
      never_stored: Inner cells from which passes that store nothing beat stored ones.
      most_published: Share of the inner cells up to which published ones are few. With more, they
        settle many cells, and the vectors of Newton's method are no shorter than the table.
      forcing: Factor by which conjugate gradients reduce the residual in a Newton step on stored
        tables. A tighter one overshoots where a rough fit will do, as within `Poisson`.
      most_gradients: Conjugate gradient steps of one Newton step.
      resolution: Deviations below this share of the largest cell are not resolved.
      tighter: Factor by which the goal falls while cells that others imply still deviate.
      closed: The multiplier of a published zero; its exponential is zero.
      floor: Exponent that stands for a settled zero, :math:`e^{-100} = 4 \cdot 10^{-44}`.
      remainder: A remainder this small against the published value is rounding error.
      sweeps: Sweeps of proportional fitting after which its drift may refute the margins.
      proof: Accuracy of the least squares fits whose residuals may refute the margins.
      proof_steps: Steps of these fits.
    """

    never_stored: int = 100_000
    most_published: float = 0.125
    forcing: float = 0.3
    most_gradients: int = 500
    resolution: float = 1e-12
    tighter: float = 0.3
    closed: float = -1000.0
    floor: float = -100.0
    remainder: float = 1e-11
    sweeps: int = 10
    proof: float = 1e-9
    proof_steps: int = 10_000

    def newton(self, max_steps: int) -> NewtonSchedule:
        """The constants of Newton's method within so many steps of conjugate gradients."""
        most = min(self.most_gradients, max_steps)
        return NewtonSchedule(most_gradients=most, most_in_all=max_steps - 1)


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
      gradients: Conjugate gradient steps of the log-linear fit at most.
    """

    check_every: int = 100
    small: float = 1e-4
    face: float = 20.0
    sure: float = 5.0
    negligible: float = 1e-3
    sharper: float = 0.1
    sharpest: float = 1e-12
    share: float = 0.01
    gradients: int = 1_000


LOG_LINEAR, POISSON = LogLinearSchedule(), PoissonSchedule()
