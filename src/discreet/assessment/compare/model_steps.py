r"""Margins chosen as models are built traditionally: one more margin at a time, by its likelihood.

A set of margins is a hierarchical log-linear model: each margin brings the margins inside it, and
the fitted table :math:`\hat y` has them all. With `n` records, deviance
:math:`G^2 = 2\sum_i y_i\log(y_i/\hat y_i)` and `p` free parameters, a further margin is judged by

- the likelihood ratio: :math:`G^2` falls by as much as :math:`\chi^2` with as many degrees of
  freedom as parameters come in; the smallest p-value below `alpha` wins;
- AIC, :math:`G^2 + 2p`, or BIC, :math:`G^2 + p\log n`: the smallest wins while it falls.

Everything here is **confidential**: it follows from true counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.arrays import Real
from discreet.assessment.assess import align_columns
from discreet.design.formula import Margins, Term, parse
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError
from discreet.frames import Frame
from discreet.solve.likelihood.log_linear import LogLinear

Criterion = Literal["likelihood-ratio", "aic", "bic"]
_LARGEST = 5_000_000  # inner cells of a table that is fitted once for every candidate
# Deviances of two fits agree to this accuracy, which no p-value near `alpha` depends on.
_ACCURACY = 1e-8


@dataclass(frozen=True)
class ModelStep:
    """**Confidential.** One more margin, and what the model is like with it.

    Attributes:
      added: The margin; `None` for the model to begin with.
      margins: The margins of the model that lie inside no other.
      deviance: :math:`G^2` of the model.
      parameters: Its free parameters, the constant left out.
      aic: Deviance with two for each parameter.
      bic: Deviance with the logarithm of the number of records for each.
      p_value: Of the likelihood ratio against the model before.
    """

    added: Term | None
    margins: tuple[Term, ...]
    deviance: float
    parameters: int
    aic: float
    bic: float
    p_value: float | None = None


@dataclass(frozen=True, repr=False)
class ModelPath:
    """**Confidential.** Models from the first to the one that no margin improves.

    Attributes:
      steps: The models, in order.
      by: How they were judged.
    """

    steps: tuple[ModelStep, ...]
    by: Criterion

    @property
    def best(self) -> tuple[Term, ...]:
        """The margins that were chosen, those that lie inside no other."""
        return self.steps[-1].margins

    @property
    def frame(self) -> Frame:
        """A row for each step."""
        return Frame.from_rows(
            [
                {
                    "step": k,
                    "added": None if s.added is None else _name(s.added),
                    "margins": _names(s.margins),
                    "deviance": s.deviance,
                    "parameters": s.parameters,
                    "aic": s.aic,
                    "bic": s.bic,
                    "p_value": s.p_value,
                }
                for k, s in enumerate(self.steps)
            ]
        )

    def __repr__(self) -> str:
        rows = [("", "added", "deviance", "parameters", "AIC", "BIC", "p")]
        for k, s in enumerate(self.steps):
            added = _names(s.margins) if s.added is None else f"+ {_name(s.added)}"
            p = "" if s.p_value is None else f"{s.p_value:.3g}"
            figures = (f"{s.deviance:.2f}", f"{s.parameters}", f"{s.aic:.2f}", f"{s.bic:.2f}")
            rows.append((f"{k}", added, *figures, p))
        head = f"Margins step by step, by {self.by} (confidential: true counts were used)"
        return "\n".join([head, *align_columns(rows)])


def build_model(
    design: StructuredDesign,
    counts: Real,
    candidates: Sequence[Margins] | None,
    *,
    by: Criterion,
    alpha: float,
) -> ModelPath:
    """Add margins to the model of all single variables, one at a time, while one improves it.

    A margin is tried once all margins inside it are in the model, as hierarchical models are built.

    Args:
      design: The design on its public support, complete.
      counts: True inner counts.
      candidates: Margins that may be added; by default all of two variables and more.
      by: The criterion.
      alpha: Largest p-value of a margin that comes in, for the likelihood ratio.
    """
    if not 0 < alpha < 1:
        raise ParameterError(f"alpha must lie strictly between 0 and 1, got {alpha!r}.")
    if design.product_form is None or design.n_inner > _LARGEST:
        raise DesignError(
            "models are built on complete tables of at most "
            f"{_LARGEST:,} inner cells; this one has declared zeros or more cells. Tabulate fewer "
            "variables, or rank margins by expected error (by='error')."
        )
    names = [axis.name for axis in design.axes]
    open_ = [term for term in _candidates(names, candidates) if len(term) > 1]
    builder = _Builder(design, counts, names)
    steps = [builder.step(None, [(name,) for name in names], None)]
    while True:
        last = steps[-1]
        inside = _closure(last.margins)
        fitting = [t for t in open_ if t not in inside and _closure([t]) - {t} <= inside]
        found = [builder.step(t, [*last.margins, t], last) for t in fitting]
        better = [s for s in found if _improves(s, last, by, alpha)]
        if not better:
            return ModelPath(tuple(steps), by)
        steps.append(min(better, key=lambda s: _rank(s, by)))


def _improves(step: ModelStep, last: ModelStep, by: Criterion, alpha: float) -> bool:
    if by == "likelihood-ratio":
        return step.p_value is not None and step.p_value < alpha
    return (step.aic < last.aic) if by == "aic" else (step.bic < last.bic)


def _rank(step: ModelStep, by: Criterion) -> tuple[float, float]:
    if by == "likelihood-ratio":
        # p-values of strong margins are all zero in floating point: the deviance decides then
        return (1.0 if step.p_value is None else step.p_value), step.deviance
    return (step.aic if by == "aic" else step.bic), step.deviance


class _Builder:
    """Fits models to one table."""

    def __init__(self, design: StructuredDesign, counts: Real, names: Sequence[str]) -> None:
        self.axes, self.names = design.axes, list(names)
        self.counts, self.sizes = counts, {a.name: len(a) for a in design.axes}
        self.records = float(counts.sum())
        if self.records <= 0:
            raise ParameterError("there are no records to build a model of.")

    def step(self, added: Term | None, terms: Sequence[Term], last: ModelStep | None) -> ModelStep:
        """The model of these margins and how it compares with the one before."""
        from scipy.stats import chi2  # start-up time

        margins = _largest(terms, self.names)
        deviance, parameters = self.deviance(margins), self.parameters(margins)
        aic = deviance + 2 * parameters
        bic = deviance + parameters * math.log(self.records)
        p_value = None
        if last is not None:
            fall = max(0.0, last.deviance - deviance)
            p_value = float(chi2.sf(fall, parameters - last.parameters))
        return ModelStep(added, margins, deviance, parameters, aic, bic, p_value)

    def deviance(self, margins: Sequence[Term]) -> float:
        """:math:`G^2` of the log-linear fit to the true margins."""
        # leaves alone: every level of a hierarchy is a sum of them
        flat = ProductDesign([type(a).flat(a.name, list(a.leaves)) for a in self.axes], margins)
        fit = LogLinear(tolerance=_ACCURACY)(flat, flat.aggregate(self.counts)).require()
        some = self.counts > 0
        fitted = np.maximum(fit.y[some], np.finfo(float).tiny)
        return float(2 * (self.counts[some] * np.log(self.counts[some] / fitted)).sum())

    def parameters(self, margins: Sequence[Term]) -> int:
        """Free parameters of a hierarchical model, the constant left out."""
        return sum(
            math.prod(self.sizes[name] - 1 for name in term) for term in _closure(margins) if term
        )


def _candidates(names: Sequence[str], given: Sequence[Margins] | None) -> list[Term]:
    if given is None:
        orders = range(2, len(names) + 1)
        return [term for k in orders for term in itertools.combinations(names, k)]
    terms = [term for margins in given for term in parse(margins)]
    for term in terms:
        if not set(term) <= set(names):
            raise ParameterError(
                f"candidates are margins of variables ({', '.join(names)}), got {_name(term)}; "
                "levels of hierarchies are not built into models."
            )
    every = {sub for term in terms for sub in _closure([_sort_term(term, names)])}
    return sorted(every, key=lambda t: (len(t), [names.index(n) for n in t]))


def _sort_term(term: Term, names: Sequence[str]) -> Term:
    return tuple(sorted(term, key=names.index))


def _closure(terms: Sequence[Term]) -> set[Term]:
    """The margins and all margins inside them."""
    return {s for t in terms for k in range(len(t) + 1) for s in itertools.combinations(t, k)}


def _largest(terms: Sequence[Term], names: Sequence[str]) -> tuple[Term, ...]:
    """Margins that lie inside no other, in the order of the variables."""
    unique = list(dict.fromkeys(_sort_term(t, names) for t in terms))
    return tuple(t for t in unique if not any(set(t) < set(other) for other in unique))


def _name(term: Term) -> str:
    return ":".join(term) or "1"


def _names(terms: Sequence[Term]) -> str:
    return " + ".join(map(_name, terms))
