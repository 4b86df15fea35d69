r"""Laws that every method keeps, whatever it promises of its values.

* *sentence*: every sentence about values in the final statement is true of the final values.
* *neighbour*: with secret and noise held fixed, a table that differs by one record has the same
  labels, shape, types, metadata, statement and public errors, and status follows from values.
* *hidden*: where published values are the same, nothing public varies with a hidden cell.
* *secret*: tables of other records share no noise under one secret.
* *likelihood ratio*: no outcome of a private method is more than :math:`e^\varepsilon` times as
  likely with a record as without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.accounting import rho_to_epsilon
from discreet.arrays import Array, Real
from discreet.design.axis import Axis
from discreet.design.product import ProductDesign
from discreet.errors import DiscreetError
from discreet.facade.table import Table
from discreet.protect.draws import SecretDraws, SeededSecret
from discreet.protect.publish import in_unit, run
from discreet.protect.sentences import LEAST_P
from discreet.tables.protected import CellStatus, Protected
from discreet.tables.statement import PrivacyStatement, Statement
from discreet.testing.draws import published

_SECRETS = 40
_TESTED_DELTA = 0.02
_OUTCOMES = 800


class Broken(Exception):
    """Why a promise is broken."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the sentences of a statement are judged by.

    Attributes:
      truth: True values of the published cells, in the unit of the release.
      finals: Final values, made under many secrets.
      agrees_elsewhere: Whether the same cells have the same values in other tables.
    """

    truth: Array
    finals: Sequence[Protected]
    agrees_elsewhere: Callable[[], bool]


def check_sentences(statement: Statement, evidence: Evidence) -> str:
    """Raise when a sentence about the values is not true of them."""
    about_values = [s for s in statement.sentences if s.about == "values"]
    for sentence in about_values:
        if sentence.holds is None:
            raise Broken(f"nothing can test the sentence {sentence.text!r}.")
        if not sentence.holds(evidence):
            raise Broken(f"the statement says {sentence.text!r}, and that is not so.")
    return f"{len(about_values)} sentences about values are true"


def neighbour(method: Any, table: Table, seed: int = 1) -> str:
    """Whatever is public beside the values is the same for tables that differ by one record."""
    if "neighbour" in method.claims.follows_truth:
        return "exempt: the statement says so"
    tables = [table, *neighbours(table)]
    outcomes = [_public_face(method, each, seed) for each in tables]
    for place, face in enumerate(outcomes[1:], 1):
        for part, value in face.items():
            if value != outcomes[0].get(part):
                raise Broken(f"one record more or less (case {place}) changes the public {part}.")
    _status_follows_values(method, tables, seed)
    return f"{len(tables) - 1} neighbours look alike"


def neighbours(table: Table) -> Iterator[Table]:
    """Tables in which one record moved, came or went, the fullest and the emptiest cells included.

    Weights and keys move along.
    """
    y = table.y
    full, empty, single = int(np.argmax(y)), np.flatnonzero(y == 0), np.flatnonzero(y == 1)
    moves = [(full, None), (None, full), (full, int(np.argsort(y)[len(y) // 2]))]
    moves += [(full, int(empty[0])), (None, int(empty[0]))] if len(empty) else []
    moves += [(int(single[0]), full), (int(single[0]), None)] if len(single) else []
    return (_moved(table, source, target) for source, target in moves)


def _moved(table: Table, source: int | None, target: int | None) -> Table:
    """The table with one record taken out of a cell and put into another."""
    inner = table.require_inner()
    count = inner.count.copy()
    parts: dict[str, Array] = {}
    for name in ("weight", "weight_squared", "key"):
        values = getattr(inner, name)
        if values is not None:
            parts[name] = values.copy()
    for cell, sign in ((source, -1), (target, 1)):
        if cell is None:
            continue
        share = {name: values[cell] / max(count[cell], 1) for name, values in parts.items()}
        count[cell] += sign
        for name, values in parts.items():
            step = 12_345 if name == "key" else (share[name] or 30.0)
            values[cell] = values[cell] + sign * step if count[cell] else 0
    if "key" in parts:
        parts["key"] %= table.convention.modulus
    changed = Table.from_inner(table.design, replace(inner, count=count, **parts), table.convention)
    kept = {name: getattr(table, name) for name in ("data_set", "unit", "secret", "ledger")}
    return replace(changed, **kept)


def _public_face(method: Any, table: Table, seed: int) -> dict[str, Any]:
    """What the public sees beside the values, or the error it sees instead."""
    try:
        made = published(method, table, 0, seed)
    except DiscreetError as error:
        return {"error": error.public()}
    design, parts = made.design, ("z", "y", "status", "quality", "precision")
    arrays = {name: getattr(made, name) for name in parts}
    precision = arrays["precision"]
    return {
        "labels": [(axis.name, axis.leaves, axis.total) for axis in design.axes],
        "codes": [codes for _, codes in design.published_codes()] if design.axes else [],
        "shape": (design.n_inner, design.n_published),
        "types": {k: None if v is None else v.dtype.str for k, v in arrays.items()},
        "precision": None if precision is None else precision.tolist(),
        "unit": made.unit,
        "statement": made.statement.to_json(),
    }


def _status_follows_values(method: Any, tables: Sequence[Table], seed: int) -> None:
    """The same released value has the same status, wherever a cell can have records."""
    seen: dict[Any, int] = {}
    for table in tables:
        try:
            made = published(method, table, 0, seed)
        except DiscreetError:
            continue
        status = np.zeros(len(made.z), np.int8) if made.status is None else made.status
        for value, kind in zip(made.z.tolist(), status.tolist(), strict=True):
            if kind != CellStatus.structural_zero and seen.setdefault(value, kind) != kind:
                raise Broken(f"cells released as {value} have different status.")


def hidden(method: Any, table: Table, seed: int = 1) -> str:
    """Where two tables are released alike, nothing public tells their hidden cells apart."""
    first = published(method, table, 0, seed)
    if not first.hidden.any():
        return "not exercised: no cell is hidden"
    compared = 0
    for other in neighbours(table):
        again = published(method, other, 0, seed)
        both = first.hidden & again.hidden
        compared += int(both.sum())
        for part in ("z", "status", "precision", "quality"):
            here, there = getattr(first, part), getattr(again, part)
            if here is not None and there is not None and (here[both] != there[both]).any():
                raise Broken(f"{part} of a hidden cell varies with its true count.")
    return f"{compared} hidden cells show nothing"


def secret(method: Any, table: Table, seed: int = 1) -> str:
    """The same secret gives unrelated noise to tables of other records."""
    if method.source == "system":
        return "not exercised: noise comes from the system"
    if "source" in method.claims.follows_truth:
        return "not exercised: nothing is drawn"
    other = _other_records(table)
    pairs = []
    for k in range(_SECRETS):
        here = published(method, table, k, seed)
        there = published(method, other, k, seed, keys=f"others {k}")
        pairs.append((here.z - _truth(table, here), there.z - _truth(other, there)))
    one, two = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    one, two = one - one.mean(axis=0), two - two.mean(axis=0)
    products = (one * two).sum(axis=1)
    spread = float(products.std(ddof=1)) / math.sqrt(len(products))
    score = 0.0 if spread == 0 else abs(float(products.mean())) / spread
    scale = float(np.sqrt((one**2).sum() * (two**2).sum())) or 1.0
    correlation = float(products.sum()) / scale
    if math.erfc(score / math.sqrt(2)) < LEAST_P:
        raise Broken(f"noise of other records is correlated by {correlation:.2f} under one secret.")
    return f"noise of other records is uncorrelated ({correlation:+.3f})"


def _other_records(table: Table) -> Table:
    """A table of the same size with other records: counts turned round, keys drawn elsewhere."""
    inner = table.require_inner()
    parts: dict[str, Any] = {
        name: None if values is None else values[::-1].copy()
        for name, values in vars(inner).items()
    }
    other = Table.from_inner(table.design, replace(inner, **parts), table.convention)
    kept = {name: getattr(table, name) for name in ("data_set", "unit", "secret", "ledger")}
    return replace(other, **kept)


def _truth(table: Table, made: Protected) -> Array:
    values = table.published.weight if made.unit == "weight" else table.z
    return np.asarray(values)


def likelihood_ratio(method: Any) -> str:
    """Outcomes on tiny tables are about as likely with a record as without, or with another.

    Events are thresholds of sums of released values, and of several values at once.
    """
    if method.source != "system":
        return "not claimed"
    base = tiny_table([2, 1])
    worst = 0.0
    cases = {"added": [3, 1], "removed": [1, 1], "replaced": [1, 2]}
    here, stated = _outcomes(method, base, base.z), published(method, base, 0).statement.privacy
    if stated is None:
        raise Broken("a method that draws from the system states no guarantee.")
    for case, counts in cases.items():
        there = _outcomes(method, tiny_table(counts), base.z)
        for one, two in ((here, there), (there, here)):
            excess = _largest_excess(one, two, *_stated(stated, case == "replaced"))
            worst = max(worst, excess)
            if excess > 1:
                raise Broken(f"an outcome is likelier than ε allows when a record is {case}.")
    return f"no outcome is beyond the guarantee (at most {worst:.2f} of it for certain)"


def _stated(privacy: PrivacyStatement, replaced: bool) -> tuple[float, float]:
    """ε and δ of the guarantee; of Gaussian noise at a δ that few draws can test."""
    if privacy.rho is not None:
        rho = 2 * privacy.rho if replaced else privacy.rho
        return rho_to_epsilon(rho, _TESTED_DELTA), _TESTED_DELTA
    if replaced:
        return privacy.epsilon_replace, privacy.delta_replace
    return privacy.epsilon, privacy.delta


def tiny_table(counts: Sequence[int]) -> Table:
    """A table of one variable with as many categories as counts, and its total."""
    axis = Axis.flat("a", [str(k) for k in range(len(counts))])
    table = Table.from_inner(ProductDesign([axis], "a"), np.array(counts))
    return table.with_secret(SeededSecret(1, "tiny table"))


def _outcomes(method: Any, table: Table, centre: Array) -> Real:
    """Statistics of many draws: sums of released values, and the least of them, with every sign."""
    table, draws = in_unit(table, method, table.unit), SecretDraws()
    drawn = [run(method, table, draws).z - centre for _ in range(_OUTCOMES)]
    z = np.array(drawn, dtype=np.float64)
    signs = np.array(np.meshgrid(*[[-1, 0, 1]] * z.shape[1])).reshape(z.shape[1], -1)
    signs = signs[:, signs.any(axis=0)]
    signed = z[:, :, None] * signs
    least = np.where(signs == 0, np.inf, signed).min(axis=1)
    return np.hstack([signed.sum(axis=1), least])


def _largest_excess(one: Real, two: Real, epsilon: float, delta: float) -> float:
    """The largest ratio of P(E) to e^ε P'(E) + δ over threshold events, five errors apart."""
    n, factor, worst = len(one), math.exp(min(epsilon, 50.0)), 0.0
    for a, b in zip(one.T, two.T, strict=True):
        cuts = np.unique(a)
        p = np.searchsorted(np.sort(-a), -cuts, side="right") / n
        q = np.searchsorted(np.sort(-b), -cuts, side="right") / n
        least = p - 5 * np.sqrt(p * (1 - p) / n) - 15 / n
        most = q + 5 * np.sqrt(q * (1 - q) / n) + 15 / n
        worst = max(worst, float((least / (factor * most + delta)).max()))
    return worst
