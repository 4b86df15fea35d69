"""One battery for every method: what it declares is checked on draws, and lies are caught."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Array, Mask, Whole
from discreet.facade.table import Table
from discreet.protect.cells import NoiseCells, on_public_support
from discreet.protect.publish import SOURCES, built
from discreet.protect.sentences import LARGE_COUNT, LEAST_P, is_additive, mean_p
from discreet.tables.protected import WEIGHT, Method, Protected
from discreet.testing.laws import (
    Broken,
    BrokenPromiseError,
    ReleaseEvidence,
    by_cell,
    check_sentences,
    chi_square,
    chi_square_p,
    hidden,
    likelihood_ratio,
    neighbour,
    publish,
    retabulate,
    sample_table,
    secret,
)

_FEWEST_RELEASES = 8


def check_method(
    method: Method | str, table: Table | None = None, *, draws: int = 100_000, seed: int = 1
) -> dict[str, str]:
    """Hold a method to what it declares, and raise when it does not keep it.

    Checked are: the input stays untouched; the same secret gives the same release and another
    secret another one; the statement is complete and its sentences are true; every claim
    (additive, unbiased, zeros, largest move, blocked values, variance, consistency over tables that
    share a cell); the order of variables has no effect; the declared law of every cell, where the
    method offers it; and the laws of `discreet.testing.laws`. Statistical tests reject at a
    probability of 10⁻⁶.

    Args:
      method: The method, or its name.
      table: A table with inner cells; `draws.sample_table` when absent.
      draws: How many cells are drawn in all; more draws find smaller lies.
      seed: Seed of the draws.

    Returns:
      What was found, by check.

    Raises:
      BrokenPromiseError: With every promise that is broken.
    """
    method = built(method, {})
    trial = _Trial(method, sample_table() if table is None else table, draws, seed)
    found, broken = {}, {}
    for name, check in _CHECKS.items():
        try:
            found[name] = check(trial)
        except Broken as why:
            broken[name] = str(why)
    if broken:
        raise BrokenPromiseError(method.name, broken)
    return found


@dataclass(frozen=True, eq=False)
class _Trial:
    method: Method
    table: Table
    draws: int
    seed: int

    def release(self, table: Table | None = None, number: int = 0) -> Protected:
        """One release, under keys and a secret that belong to the number."""
        return publish(self.method, self.table if table is None else table, number, self.seed)

    @cached_property
    def cells(self) -> NoiseCells:
        """The published cells on public support."""
        return NoiseCells(on_public_support(self.table))

    @cached_property
    def first(self) -> Protected:
        return self.release()

    @cached_property
    def truth(self) -> Array:
        """What the release is to be compared with."""
        return self.cells.weight if self.first.unit == WEIGHT else self.cells.count

    @cached_property
    def releases(self) -> list[Protected]:
        """Independent releases, each under keys and a secret of its own."""
        n = max(_FEWEST_RELEASES, math.ceil(self.draws / max(len(self.cells.distinct), 1)))
        if "source" in self.method.claims.follows_truth:  # nothing is drawn: they are all the same
            n = _FEWEST_RELEASES
        return [self.release(number=k) for k in range(n)]

    @cached_property
    def values(self) -> tuple[Array, Mask]:
        """Released values, a row for each release, and which of them are shown."""
        return np.array([r.z for r in self.releases]), np.array([~r.hidden for r in self.releases])

    @cached_property
    def moves(self) -> Array:
        """Released minus true values, a row for each release; hidden cells count as unmoved."""
        z, shown = self.values
        return np.where(shown, z - self.truth, 0)

    @property
    def distinct(self) -> Whole:
        return self.cells.distinct

    def by_count(self, least: int = 0) -> dict[int, Whole]:
        """Positions of the distinct cells by their true count."""
        count = self.cells.count[self.distinct]
        return {int(c): self.distinct[count == c] for c in np.unique(count) if c >= least}


def _leaves_input(trial: _Trial) -> str:
    copies = {name: array.copy() for name, array in _arrays(trial.table).items()}
    trial.release()
    for name, array in _arrays(trial.table).items():
        if not np.array_equal(array, copies[name]):
            raise Broken(f"the call changed the table's {name}.")
    return f"{len(copies)} arrays are as they were"


def _arrays(table: Table) -> dict[str, Array]:
    both = {"published": table.published, "inner": table.inner}
    parts = {kind: vars(values) for kind, values in both.items() if values is not None}
    return {f"{k} {n}": a for k, part in parts.items() for n, a in part.items() if a is not None}


def _repeats(trial: _Trial) -> str:
    again = [trial.release().z for _ in range(_FEWEST_RELEASES)]
    if trial.method.source == "system":
        return _some_differ(trial.first.z, again, "calls")
    if not all(np.array_equal(trial.first.z, z) for z in again):
        raise Broken("a second call with the same keys and secret gave other values.")
    return "the same secret gives the same values"


def _source(trial: _Trial) -> str:
    if trial.method.source not in SOURCES:
        raise Broken(f"source must be one of {SOURCES}, got {trial.method.source!r}.")
    releases = [trial.release(number=k) for k in range(1, _FEWEST_RELEASES + 1)]
    if "source" in trial.method.claims.follows_truth:
        for each in releases:
            # Which cells are shown may depend on the secret; what they show may not.
            shown = ~trial.first.hidden & ~each.hidden
            if not np.array_equal(trial.first.z[shown], each.z[shown]):
                raise Broken("values follow from the truth alone, but another secret changed them.")
        return "exempt: no value is drawn"
    return _some_differ(trial.first.z, [each.z for each in releases], "other secrets")


def _some_differ(first: Array, others: list[Array], what: str) -> str:
    if all(np.array_equal(first, z) for z in others):
        raise Broken(f"{len(others)} {what} gave the same values.")
    return f"{what} give other values"


def _statement(trial: _Trial) -> str:
    statement = trial.first.statement
    if not any(trial.method.name in step.name for step in statement.steps):
        raise Broken(f"no step of the statement names the method {trial.method.name!r}.")
    if not statement.text or not statement.plain or not statement.version:
        raise Broken("the statement has no text, no plain text or no version.")
    if not any(sentence.about == "limits" for sentence in statement.sentences):
        raise Broken("the statement does not say what is not protected.")
    try:
        json.dumps(statement.to_json())
    except TypeError as error:
        raise Broken(f"the parameters in the statement are not plain data: {error}.") from None
    return "method, parameters, version and text are there"


def _additive(trial: _Trial) -> str:
    if not trial.method.claims.additive:
        return "not claimed"
    if not is_additive(trial.releases[:5]):
        raise Broken("published cells miss the sums of any inner table.")
    return "published cells are sums"


def _keeps_zeros(trial: _Trial) -> str:
    if not trial.method.claims.keeps_zeros:
        return "not claimed"
    zeros = trial.cells.count == 0
    if not zeros.any():
        return "not exercised: the table has no zero"
    if trial.moves[:, zeros].any():
        raise Broken("a true zero was published as something else.")
    return f"{int(zeros.sum())} zeros stayed zero"


def _max_move(trial: _Trial) -> str:
    allowed, worst = trial.method.claims.max_move, float(np.abs(trial.moves).max())
    if worst > allowed:
        raise Broken(f"a cell moved by {worst:g}; the largest move claimed is {allowed:g}.")
    return f"largest move {worst:g}"


def _blocked_values(trial: _Trial) -> str:
    blocked = trial.method.claims.blocked
    z, shown = trial.values
    whole = np.unique(z[shown][z[shown] == np.rint(z[shown])]).astype(np.int64)
    seen = [value for value in whole.tolist() if value in blocked]
    if seen:
        raise Broken(f"the blocked values {seen} were published.")
    return f"blocked values absent: {blocked[0]} to {blocked[-1]}" if blocked else "not claimed"


def _is_unbiased(trial: _Trial) -> str:
    if not trial.method.claims.unbiased:
        return "not claimed"
    tests = {f"cell {k}": trial.moves[:, k] for k in trial.distinct}
    tests |= {f"count {c}": trial.moves[:, at].sum(1) for c, at in trial.by_count().items()}
    tests["all cells"] = trial.moves[:, trial.distinct].sum(axis=1)
    p = {name: mean_p(values) for name, values in tests.items()}
    worst = min(p, key=lambda name: p[name])
    if p[worst] * len(p) < LEAST_P:
        raise Broken(f"the mean move of {worst} is {tests[worst].mean():+.4g}, p = {p[worst]:.2g}.")
    return f"no mean move differs from zero (least p = {p[worst]:.2g})"


def _variance(trial: _Trial) -> str:
    claimed = trial.method.claims.variance
    if claimed is None:
        return "not claimed"
    large = [k for at in trial.by_count(LARGE_COUNT).values() for k in at]
    if not large:
        return f"not exercised: the table has no count of {LARGE_COUNT} or more"
    moves = trial.moves[:, large]
    squares = (moves - moves.mean(axis=0)) ** 2 * len(moves) / (len(moves) - 1)
    p = mean_p(squares.mean(axis=1), claimed)
    if p < LEAST_P:
        raise Broken(f"the variance is {squares.mean():.4g}, not {claimed:.4g}, p = {p:.2g}.")
    return f"variance {squares.mean():.4g} where {claimed:.4g} is claimed (p = {p:.2g})"


def _sentences(trial: _Trial) -> str:
    def agrees_elsewhere() -> bool:
        try:
            _consistent(trial)
        except Broken:
            return False
        return True

    evidence = ReleaseEvidence(trial.truth, trial.releases, agrees_elsewhere)
    return check_sentences(trial.first.statement, evidence)


def _consistent(trial: _Trial) -> str:
    if not trial.method.claims.consistent:
        return "not claimed"
    for term in _terms(trial.table):
        _agrees(trial, f"a table of {':'.join(term) or 'the total'} alone", [term])
    return "cells that tables share have the same value"


def _agrees(trial: _Trial, what: str, terms: list[tuple[str, ...]]) -> str:
    if not terms:
        return "not exercised: the table has no variables"
    here, there = by_cell(trial.first), by_cell(trial.release(retabulate(trial.table, terms)))
    for cell, value in there.items():  # sums of weights are equal up to the order of summation
        if not math.isclose(here[cell], value, rel_tol=1e-9, abs_tol=1e-9):
            raise Broken(f"{what} changes the value of cell {sorted(cell) or 'total'}.")
    return f"{what} has no effect"


def _terms(table: Table) -> list[tuple[str, ...]]:
    design = table.design
    return list(design.terms) if design.axes else []


def _law(trial: _Trial) -> str:
    cell_law = getattr(trial.method, "cell_law", None)
    fits = {}
    for count, positions in trial.by_count().items():
        at_count = []
        for k in positions.tolist():
            law = None if cell_law is None else cell_law(trial.cells.table, k)
            if law is None:
                return "no law declared"
            at_count.append(chi_square(trial.moves[:, k], *law))
        fits[f"count {count}"] = np.sum(at_count, axis=0)
    fits["all counts"] = np.sum(list(fits.values()), axis=0)
    p = {name: chi_square_p(float(fit[0]), int(fit[1])) for name, fit in fits.items()}
    worst = min(p, key=lambda name: p[name])
    if p[worst] * len(p) < LEAST_P:
        raise Broken(f"the moves of {worst} do not follow the law, p = {p[worst]:.2g}.")
    return f"{trial.moves[:, trial.distinct].size:,} draws follow the law (p = {p[worst]:.2g})"


_CHECKS: dict[str, Callable[[_Trial], str]] = {
    "untouched input": _leaves_input,
    "repeatable": _repeats,
    "source": _source,
    "statement": _statement,
    "additive": _additive,
    "keeps zeros": _keeps_zeros,
    "largest move": _max_move,
    "blocked values": _blocked_values,
    "unbiased": _is_unbiased,
    "variance": _variance,
    "order of variables": lambda trial: (
        "not claimed"
        if trial.method.source == "system"
        else _agrees(trial, "the order of variables", _terms(trial.table))
    ),
    "consistent": _consistent,
    "law": _law,
    "sentences": _sentences,
    "neighbour": lambda trial: neighbour(trial.method, trial.table, trial.seed),
    "hidden": lambda trial: hidden(trial.method, trial.table, trial.seed),
    "secret": lambda trial: secret(trial.method, trial.table, trial.seed),
    "likelihood ratio": lambda trial: likelihood_ratio(trial.method),
}
