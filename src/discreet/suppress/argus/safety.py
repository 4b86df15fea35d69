"""Safety rules of τ-ARGUS as ours: on units and on holdings, exceptions, and lists of cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discreet.arrays import Mask, Real
from discreet.errors import DataError
from discreet.frames import Frame
from discreet.records.rda import Metadata
from discreet.rules.counts import PrimaryRule, Threshold
from discreet.rules.magnitudes import PQ, Dominance, FewContributors, PPercent, ZeroUnsafe
from discreet.suppress.argus.apriori import AprioriEntry
from discreet.suppress.argus.batch import Recode, SafetyRule, TableSpec, UseApriori
from discreet.suppress.exceptions import Exempt
from discreet.tables.truth import TrueTable

RECORD = "(record)"
"""The column of contributors where every record is one; no column of a file has this name."""
UNITS, HOLDINGS = 0, 1
"""Levels on which rules look at contributors."""


@dataclass
class TableJob:
    """A table that a job specifies, and what it says of it.

    Attributes:
      spec: The table.
      data: The file of records or of the finished table.
      is_records: Whether it holds records.
      metadata: The file that describes its columns.
      rule: The safety rules.
      recodes: Recodings, in their order.
      apriori: Files about single cells.
    """

    spec: TableSpec
    data: Path
    is_records: bool
    metadata: Path
    rule: SafetyRule = field(default_factory=lambda: SafetyRule(0, ()))
    recodes: list[Recode] = field(default_factory=list)
    apriori: list[tuple[UseApriori, Path]] = field(default_factory=list)


def rules_of(job: TableJob, level: int, has_counts: bool) -> list[PrimaryRule]:
    """The rules on units or on holdings: the first two of P, PQ and NK, or the next two."""
    shares = [part for part in job.rule.parts if part[0] in ("P", "NK", "PQ")]
    found: list[PrimaryRule] = []
    for name, numbers in shares[2 * level : 2 * level + 2] if not has_counts else ():
        first, *more = numbers
        if name == "P" and first > 0:
            found.append(PPercent(first, n=int(max([*more, 1.0][0], 1))))
        elif name == "PQ" and first > 0:
            found.append(PQ(first, more[0], n=int(max([*more[1:], 1.0][0], 1))))
        elif name == "NK" and first > 0 and more[0] > 0:
            found.append(Dominance(int(first), more[0]))
    for numbers in job.rule.numbers("FREQ")[level : level + 1]:
        least, share = int(numbers[0]), [*numbers[1:], 0.0][0] or 10.0
        if least >= 2:
            found.append(Threshold(least - 1) if has_counts else FewContributors(least, share))
    for numbers in job.rule.numbers("ZERO") if not has_counts else ():
        # A cell of zero has no holdings or units to speak of, so one level is enough.
        if numbers[0] > 0 and (found or level == UNITS):
            found.append(ZeroUnsafe(numbers[0]))
    return found


def exempt_missing(
    rules: list[PrimaryRule], jobs: Sequence[TableJob], about: Metadata, rows: Frame
) -> list[PrimaryRule]:
    """The rules without cells of missing codes, where these are safe."""
    if (1.0,) not in jobs[0].rule.numbers("MIS"):
        return rules
    missing = {}
    for name in dict.fromkeys(name for job in jobs for name in job.spec.variables):
        occurring = set(rows.column(name).unique().to_pylist())
        if codes := [code for code in about.variable(name).missing if code in occurring]:
            missing[name] = codes
    return [Exempt(rule, codes=missing) for rule in rules] if missing else rules


def listed_by(
    rules: Sequence[PrimaryRule], source: TrueTable, beside: Sequence[PrimaryRule], table: TrueTable
) -> list[AprioriEntry]:
    """What rules find in one table, as a list of cells of another with the same design."""
    n = table.design.n_published
    found, lower, upper = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n)
    for rule in rules:
        found |= rule.primaries(source)
        below, above = rule.needs(source)
        lower, upper = np.maximum(lower, below), np.maximum(upper, above)
    for rule in beside:  # the levels of a list hold instead of a rule's, so they must be as large
        below, above = rule.needs(table)
        lower, upper = np.maximum(lower, below), np.maximum(upper, above)
    return listed_cells(table, found, lower, upper)


def has_request(job: TableJob, level: int) -> bool:
    """Whether the job has a request rule on this level."""
    return bool(job.rule.numbers("REQ")[level : level + 1])


def requested_cells(
    job: TableJob, level: int, about: Metadata, rows: Frame, table: TrueTable
) -> tuple[Mask, Real, Real]:
    """Cells whose largest contributor asked for protection and has more than a share."""
    shares = job.rule.numbers("REQ")[level]
    request = about.variable(only_column(job, about, "REQUEST"))
    who = RECORD if level == UNITS else only_column(job, about, "HOLDING")
    pairs = zip(rows.column(who).to_pylist(), rows.column(request.name).to_pylist(), strict=True)
    # A holding asks where one of its units does; most units have another code.
    asked = {owner: code for owner, code in pairs if code in request.options["REQUEST"]}
    given = table.require_contributions()
    code_of = np.array([str(asked.get(owner, "")) for owner in given.owners] + [""], dtype=object)
    code = code_of[given.owner[:, 0]]
    share = np.full(len(code), np.inf)
    for text, percent in zip(request.options["REQUEST"], shares[:2], strict=False):
        share[code == text] = percent
    found = given.largest[:, 0] > share / 100.0 * given.published.absolute
    reach = np.where(found, ([*shares[2:], 0.0][0] or 10.0) / 100.0 * np.abs(given.sum), 0.0)
    return np.asarray(found), reach, reach


def listed_cells(table: TrueTable, found: Mask, lower: Real, upper: Real) -> list[AprioriEntry]:
    """Some cells as unsafe, with how far their intervals must reach."""
    cells, said = codes_of_cells(table), []
    for k in np.flatnonzero(found).tolist():
        said.append(AprioriEntry(cells[k], "u"))
        said.append(AprioriEntry(cells[k], "pl", (float(lower[k]), float(upper[k]))))
    return said


def codes_of_cells(table: TrueTable) -> list[tuple[str, ...]]:
    """The codes of all published cells, empty for totals, as a-priori files write them."""
    names = [axis.name for axis in table.design.axes]
    cells = (table.design.cell(k) for k in range(table.design.n_published))
    return [tuple(cell.get(name, "") for name in names) for cell in cells]


def only_column(job: TableJob, about: Metadata, role: str) -> str:
    """The one column of a role that the rules need."""
    found = about.with_option(role)
    if len(found) != 1:
        raise DataError(
            f"line {job.rule.line}: the rules need one column with <{role}> in the metadata, and "
            f"{len(found)} have it."
        )
    return found[0].name


def sizes_of(job: TableJob) -> Iterable[tuple[float, ...]]:
    """How many contributors each rule looks at."""
    for name, numbers in job.rule.parts:
        if name in ("P", "NK", "PQ"):
            place = {"P": 1, "NK": 0, "PQ": 2}[name]
            yield (numbers[place],) if len(numbers) > place else (1.0,)
