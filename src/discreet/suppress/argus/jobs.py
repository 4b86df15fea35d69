"""Tables of a τ-ARGUS job: made from its records or read from a file, with the rules it names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.formula import Term
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError
from discreet.rules.counts import PrimaryRule, Threshold
from discreet.rules.magnitudes import PQ, Dominance, FewContributors, PPercent, ZeroUnsafe
from discreet.suppress.apriori import Exempt, with_apriori
from discreet.suppress.argus.apriori import APriori, AprioriEntry, read_apriori
from discreet.suppress.argus.batch import Recode, SafetyRule, TableSpec, UseApriori
from discreet.suppress.argus.metadata import Metadata, numbered_rows, read_metadata
from discreet.suppress.argus.recoding import recoding
from discreet.suppress.argus.tables import ArgusTable, read_table, tree_with_missing
from discreet.suppress.pattern import published_values
from discreet.tables.from_frames import cells_to_table, contributions_to_table
from discreet.tables.magnitude import LARGEST, Magnitude
from discreet.tables.truth import DataSet, TrueTable

if TYPE_CHECKING:
    import pyarrow as pa


_RECORD, _ONE = "(record)", "(one)"  # columns beside those of the file, which have other names
_UNITS, _HOLDINGS = 0, 1
_MANUAL = 20.0  # range of cells that are listed, where the job does not say


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


@dataclass(frozen=True, eq=False)
class JobTable:
    """**Confidential.** A table, and the arguments of `Suppress` that follow from the job.

    Attributes:
      table: The table; of several that are linked, all of them.
      arguments: Rules, frozen cells and priorities.
      decimals: How many decimals the response is shown with.
      metadata: The columns of the data.
      notes: What differs from the job, in sentences.
    """

    table: TrueTable
    arguments: dict[str, Any]
    decimals: int
    metadata: Metadata
    notes: tuple[str, ...]


def make_table(jobs: Sequence[TableJob]) -> JobTable:
    """The table of a job, or of several jobs that are linked."""
    first = jobs[0]
    about = read_metadata(first.metadata)
    notes: list[str] = []
    listed: list[AprioriEntry] = []
    if first.is_records:
        table, rules, listed = _from_records(jobs, about)
    else:
        if len(jobs) > 1 or first.recodes:
            raise DataError(
                f"line {first.spec.line}: finished tables cannot be linked or recoded, since their "
                "records are not known. Read the records with <OPENMICRODATA>."
            )
        found = read_table(
            first.data, about, response=first.spec.response, folder=first.metadata.parent
        )
        table, rules, listed = _from_table(found, first, notes)
    named = replace(table, data_set=DataSet(first.data.stem, "1"))
    response = next((v for v in about.variables if v.name == first.spec.response), None)
    decimals = 0 if response is None or first.spec.has_counts else response.decimals
    arguments = _arguments(named, rules, listed, jobs)
    return JobTable(named, arguments, decimals, about, tuple(notes))


def _arguments(
    table: TrueTable,
    rules: list[PrimaryRule],
    computed: list[AprioriEntry],
    jobs: Sequence[TableJob],
) -> dict[str, Any]:
    """Rules, frozen cells and priorities, with what files say of single cells."""
    entries: list[AprioriEntry] = []
    for job in jobs:
        for use, path in job.apriori:
            read = replace(
                read_apriori(path, separator=use.separator), variables=job.spec.variables
            )
            options = {"ignore_unknown": use.ignores_errors, "expand": use.expands}
            entries += read.resolved(table.design, **options).entries
    # What a file calls safe or not to be suppressed is so, whatever was computed.
    spared = {entry.cell for entry in entries if entry.word in ("s", "p")}
    entries = [e for e in computed if e.word == "c" or e.cell not in spared] + entries
    if not rules and not any(entry.word == "u" for entry in entries):
        raise DataError(
            f"line {jobs[0].spec.line}: nothing says which cells are unsafe. Give <SAFETYRULE>, a "
            "column with <STATUS>, or <APRIORI>."
        )
    if not entries:
        return {"rules": rules}
    names = tuple(axis.name for axis in table.design.axes)
    manual = [numbers[0] for job in jobs for numbers in job.rule.numbers("MAN")]
    known = APriori(tuple(entries), names)
    return with_apriori(table, rules, known, range=(manual or [_MANUAL])[0])


def _from_table(
    found: ArgusTable[TrueTable], job: TableJob, notes: list[str]
) -> tuple[TrueTable, list[PrimaryRule], list[AprioriEntry]]:
    """A finished table: its statuses decide; rules do where it has none."""
    table, has_status = found.table, bool(found.metadata.with_option("STATUS"))
    listed: list[AprioriEntry] = []
    if has_status:
        rules: list[PrimaryRule] = []
        if any(name not in ("MAN", "MIS", "WGT") for name, _ in job.rule.parts):
            notes.append("The statuses of the file decide which cells are unsafe, not the rules.")
    else:
        rules = _rules(job, _UNITS, table.contributions is None)
        rules += _rules(job, _HOLDINGS, table.contributions is None)
    cells = [table.design.cell(k) for k in range(table.design.n_published)]
    codes = [tuple(cell.get(axis.name, "") for axis in table.design.axes) for cell in cells]
    for k in np.flatnonzero(np.isin(found.status, ["U", "P"])).tolist() if has_status else ():
        listed.append(AprioriEntry(codes[k], found.status[k].lower()))
        if found.status[k] == "U" and found.lower is not None and found.upper is not None:
            levels = (float(found.lower[k]), float(found.upper[k]))
            listed += [AprioriEntry(codes[k], "pl", levels)] if any(levels) else []
    if found.cost is not None:
        pairs = enumerate(found.cost.tolist())
        listed += [AprioriEntry(codes[k], "c", (cost,)) for k, cost in pairs if cost > 0]
    return table, rules, listed


def _from_records(
    jobs: Sequence[TableJob], about: Metadata
) -> tuple[TrueTable, list[PrimaryRule], list[AprioriEntry]]:
    """A table of records, by units or by holdings; rules on the other level become a list."""
    first = jobs[0]
    for job in jobs[1:]:
        others = (job.data, job.metadata, job.spec.response, job.spec.shadow, job.rule.parts)
        ours = (first.data, first.metadata, first.spec.response, first.spec.shadow)
        if others != (*ours, first.rule.parts) or job.recodes != first.recodes:
            raise DataError(
                f"line {job.spec.line}: linked tables have the same records, response, rules and "
                "recodings; suppress this one by itself."
            )
    rows, trees = _recoded(first, about, [v for job in jobs for v in job.spec.variables])
    has_counts = first.spec.has_counts
    levels = [level for level in (_UNITS, _HOLDINGS) if _rules(first, level, has_counts)]
    main = _HOLDINGS if _HOLDINGS in levels or _has_request(first, _HOLDINGS) else _UNITS

    def tabulate(value: str, level: int) -> TrueTable:
        return _tabulate(jobs, about, rows, trees, value, level)

    table = tabulate(first.spec.response, main)
    shadow = first.spec.shadow or first.spec.response
    listed: list[AprioriEntry] = []
    rules = _exempt(_rules(first, main, has_counts), first, about, rows)
    sources = {main: table}
    if shadow != first.spec.response and not has_counts:
        sources[main] = tabulate(shadow, main)
        listed += _as_list(rules, sources[main], [], table)
        rules = []
    for level in levels:
        if level != main:
            sources[level] = tabulate(shadow, level)
            more = _exempt(_rules(first, level, has_counts), first, about, rows)
            listed += _as_list(more, sources[level], rules, table)
    for level in (_UNITS, _HOLDINGS):
        if _has_request(first, level):
            source = sources.get(level) or tabulate(shadow, level)
            requested = _requested(first, level, about, rows, source)
            listed += _entries(table, *requested)
    if first.spec.cost and first.spec.cost != first.spec.response:
        costs = published_values(tabulate(first.spec.cost, main))
        cells = _cells(table)
        listed += [
            AprioriEntry(cells[k], "c", (float(costs[k]),)) for k in np.flatnonzero(costs > 0)
        ]
    return table, rules, listed


def _tabulate(
    jobs: Sequence[TableJob],
    about: Metadata,
    rows: pa.Table,
    trees: dict[str, Hierarchy],
    value: str,
    level: int,
) -> TrueTable:
    first = jobs[0]
    terms: dict[Term, None] = {}
    for job in jobs:
        sizes = range(len(job.spec.variables), -1, -1)
        parts = (itertools.combinations(job.spec.variables, n) for n in sizes)
        terms |= dict.fromkeys(itertools.chain(*parts))
    holding = _only_column(first, about, "HOLDING") if level == _HOLDINGS else None
    weight = _only_column(first, about, "WEIGHT") if (1.0,) in first.rule.numbers("WGT") else None
    n = max([LARGEST, *(int(1 + max(numbers)) for numbers in _sizes(first))])
    design: dict[str, Any] = {"hierarchies": trees, "support": "all", "structural_zeros": ()}
    if first.spec.has_counts:
        ones = rows.append_column(_ONE, [np.ones(len(rows), dtype=np.int64)])
        more: dict[str, Any] = {
            "key": None,
            "weight": None,
            "convention": "discreet",
            "declared": False,
        }
        return cells_to_table(ones, list(terms), count=_ONE, **design, **more)
    is_signed = bool((np.asarray(rows.column(about.variable(value).name)) < 0).any())
    of = Magnitude(value, _RECORD, holding, "absolute" if is_signed else "refuse", n)
    return contributions_to_table(rows, list(terms), of, weight=weight, declared=False, **design)


def _sizes(job: TableJob) -> Iterable[tuple[float, ...]]:
    """How many contributors each rule looks at."""
    for name, numbers in job.rule.parts:
        if name in ("P", "NK", "PQ"):
            place = {"P": 1, "NK": 0, "PQ": 2}[name]
            yield (numbers[place],) if len(numbers) > place else (1.0,)


def _recoded(
    job: TableJob, about: Metadata, names: Sequence[str]
) -> tuple[pa.Table, dict[str, Hierarchy]]:
    """The records with new codes, and the hierarchy of each variable."""
    import pyarrow as pa

    _, rows = numbered_rows(job.data, about, ".", keeps_missing=True)
    rows = rows.append_column(_RECORD, pa.array([str(k) for k in range(len(rows))]))
    trees: dict[str, Hierarchy] = {}
    for name in dict.fromkeys(names):
        variable = about.variable(name)
        codes = [code for code in rows.column(name).unique().to_pylist() if code is not None]
        tree = tree_with_missing(variable, job.metadata.parent, codes)
        for recode in job.recodes:
            if recode.variable != name:
                continue
            new, tree = recoding(recode.by, job.metadata.parent, codes, tree)
            column = [new.get(code, code) for code in rows.column(name).to_pylist()]
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(column))
            codes = list(dict.fromkeys(column))
        trees[name] = tree or Hierarchy.flat(sorted(codes), root=variable.total)
    return rows, trees


def _rules(job: TableJob, level: int, has_counts: bool) -> list[PrimaryRule]:
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
        if numbers[0] > 0 and (found or level == _UNITS):
            found.append(ZeroUnsafe(numbers[0]))
    return found


def _exempt(
    rules: list[PrimaryRule], job: TableJob, about: Metadata, rows: pa.Table
) -> list[PrimaryRule]:
    """The rules without cells of missing codes, where these are safe."""
    if (1.0,) not in job.rule.numbers("MIS"):
        return rules
    missing = {}
    for name in job.spec.variables:
        occurring = set(rows.column(name).unique().to_pylist())
        if codes := [code for code in about.variable(name).missing if code in occurring]:
            missing[name] = codes
    return [Exempt(rule, codes=missing) for rule in rules] if missing else rules


def _as_list(
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
    return _entries(table, found, lower, upper)


def _entries(table: TrueTable, found: Mask, lower: Real, upper: Real) -> list[AprioriEntry]:
    cells, said = _cells(table), []
    for k in np.flatnonzero(found).tolist():
        said.append(AprioriEntry(cells[k], "u"))
        said.append(AprioriEntry(cells[k], "pl", (float(lower[k]), float(upper[k]))))
    return said


def _cells(table: TrueTable) -> list[tuple[str, ...]]:
    names = [axis.name for axis in table.design.axes]
    cells = (table.design.cell(k) for k in range(table.design.n_published))
    return [tuple(cell.get(name, "") for name in names) for cell in cells]


def _has_request(job: TableJob, level: int) -> bool:
    return bool(job.rule.numbers("REQ")[level : level + 1])


def _requested(
    job: TableJob, level: int, about: Metadata, rows: pa.Table, table: TrueTable
) -> tuple[Mask, Real, Real]:
    """Cells whose largest contributor asked for protection and has more than a share."""
    shares = job.rule.numbers("REQ")[level]
    request = about.variable(_only_column(job, about, "REQUEST"))
    who = _RECORD if level == _UNITS else _only_column(job, about, "HOLDING")
    asked = dict(
        zip(rows.column(who).to_pylist(), rows.column(request.name).to_pylist(), strict=True)
    )
    given = table.require_contributions()
    code_of = np.array([str(asked.get(owner, "")) for owner in given.owners] + [""], dtype=object)
    code = code_of[given.owner[:, 0]]
    share = np.full(len(code), np.inf)
    for text, percent in zip(request.options["REQUEST"], shares[:2], strict=False):
        share[code == text] = percent
    found = given.largest[:, 0] > share / 100.0 * given.published.absolute
    reach = np.where(found, ([*shares[2:], 0.0][0] or 10.0) / 100.0 * np.abs(given.sum), 0.0)
    return np.asarray(found), reach, reach


def _only_column(job: TableJob, about: Metadata, role: str) -> str:
    found = about.with_option(role)
    if len(found) != 1:
        raise DataError(
            f"line {job.rule.line}: the rules need one column with <{role}> in the metadata, and "
            f"{len(found)} have it."
        )
    return found[0].name
