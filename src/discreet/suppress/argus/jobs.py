"""Tables of a τ-ARGUS job: made from its records or read from a file, with the rules it names.

Recodings, `.grc` files and levels, are the new code of every old one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.design.formats.files import read_text
from discreet.design.formula import Term
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError
from discreet.frames import Frame, concat
from discreet.records.rda import Metadata, numbered_rows, read_metadata
from discreet.rules.counts import PrimaryRule
from discreet.suppress.apriori import with_apriori
from discreet.suppress.argus.apriori import APriori, AprioriEntry, read_apriori
from discreet.suppress.argus.safety import (
    HOLDINGS,
    RECORD,
    UNITS,
    TableJob,
    codes_of_cells,
    exempt_missing,
    has_request,
    listed_by,
    listed_cells,
    only_column,
    requested_cells,
    rules_of,
    sizes_of,
)
from discreet.suppress.argus.tables import ArgusTable, read_table, tree_with_missing
from discreet.suppress.pattern import published_values
from discreet.tables.from_frames import CountColumns, cells_to_table, contributions_to_table
from discreet.tables.magnitude import LARGEST, Magnitude
from discreet.tables.truth import DataSet, TrueTable

_ONE = "(one)"  # a column beside those of the file, which have other names
INDICATOR = "(response)"
"""The variable that tells linked responses apart."""
_MANUAL = 20.0  # range of cells that are listed, where the job does not say


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
        rules = rules_of(job, UNITS, table.contributions is None)
        rules += rules_of(job, HOLDINGS, table.contributions is None)
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
    _check_linked(jobs)
    rows, trees = _recode_records(jobs, about)
    responses = tuple(dict.fromkeys(job.spec.response for job in jobs))
    if len(responses) > 1:
        rows, trees[INDICATOR] = _stack_responses(jobs, rows, responses)
    has_counts = first.spec.has_counts
    levels = [level for level in (UNITS, HOLDINGS) if rules_of(first, level, has_counts)]
    main = HOLDINGS if HOLDINGS in levels or has_request(first, HOLDINGS) else UNITS

    def tabulate(value: str, level: int) -> TrueTable:
        return _tabulate(jobs, about, rows, trees, value, level)

    response = trees[INDICATOR].root if INDICATOR in trees else first.spec.response
    table = tabulate(response, main)
    shadow = first.spec.shadow or response
    listed: list[AprioriEntry] = []
    rules = exempt_missing(rules_of(first, main, has_counts), jobs, about, rows)
    sources = {main: table}
    if shadow != response and not has_counts:
        sources[main] = tabulate(shadow, main)
        listed += listed_by(rules, sources[main], [], table)
        rules = []
    for level in levels:
        if level != main:
            sources[level] = tabulate(shadow, level)
            more = exempt_missing(rules_of(first, level, has_counts), jobs, about, rows)
            listed += listed_by(more, sources[level], rules, table)
    for level in (UNITS, HOLDINGS):
        if has_request(first, level):
            source = sources.get(level) or tabulate(shadow, level)
            requested = requested_cells(first, level, about, rows, source)
            listed += listed_cells(table, *requested)
    if first.spec.cost and first.spec.cost != response:
        costs = published_values(tabulate(first.spec.cost, main))
        cells = codes_of_cells(table)
        listed += [
            AprioriEntry(cells[k], "c", (float(costs[k]),)) for k in np.flatnonzero(costs > 0)
        ]
    return table, rules, listed


def _check_linked(jobs: Sequence[TableJob]) -> None:
    first = jobs[0]
    for job in jobs[1:]:
        others = (job.data, job.metadata, job.spec.shadow, job.rule.parts)
        if others != (first.data, first.metadata, first.spec.shadow, first.rule.parts):
            raise DataError(
                f"line {job.spec.line}: linked tables have the same records, shadow variable and "
                "rules; suppress this one by itself."
            )


def _stack_responses(
    jobs: Sequence[TableJob], rows: Frame, responses: tuple[str, ...]
) -> tuple[Frame, Hierarchy]:
    """The records once for each response that is part of another, and the variable of responses."""
    if any(job.spec.has_counts or job.spec.shadow or job.spec.cost for job in jobs):
        raise DataError(
            f"line {jobs[-1].spec.line}: linked tables of several responses have no counts, shadow "
            "or cost variables."
        )
    values = {name: np.asarray(rows.column(name)) for name in responses}
    for total in responses:
        parts = tuple(name for name in responses if name != total)
        whole = values[total]
        if np.allclose(sum(values[name] for name in parts), whole, rtol=1e-9, atol=1e-9):
            pieces = [
                rows.with_column(total, values[name]).with_column(INDICATOR, [name] * len(rows))
                for name in parts
            ]
            return concat(pieces), Hierarchy.flat(parts, root=total)
    raise DataError(
        f"line {jobs[-1].spec.line}: the linked tables have responses {', '.join(responses)}, and "
        "none of them is the sum of the others in every record; suppress them one by one."
    )


def _tabulate(
    jobs: Sequence[TableJob],
    about: Metadata,
    rows: Frame,
    trees: dict[str, Hierarchy],
    value: str,
    level: int,
) -> TrueTable:
    first = jobs[0]
    terms: dict[Term, None] = {}
    for job in jobs:
        names = (*job.spec.variables, *([INDICATOR] if INDICATOR in trees else []))
        sizes = range(len(names), -1, -1)
        parts = (itertools.combinations(names, n) for n in sizes)
        terms |= dict.fromkeys(itertools.chain(*parts))
    holding = only_column(first, about, "HOLDING") if level == HOLDINGS else None
    weight = only_column(first, about, "WEIGHT") if (1.0,) in first.rule.numbers("WGT") else None
    n = max([LARGEST, *(int(1 + max(numbers)) for numbers in sizes_of(first))])
    design: dict[str, Any] = {"hierarchies": trees, "support": "all", "structural_zeros": ()}
    if first.spec.has_counts:
        ones = rows.with_column(_ONE, np.ones(len(rows), dtype=np.int64))
        return cells_to_table(ones, list(terms), CountColumns(_ONE), **design)
    is_signed = bool((np.asarray(rows.column(about.variable(value).name)) < 0).any())
    of = Magnitude(value, RECORD, holding, "absolute" if is_signed else "refuse", n)
    return contributions_to_table(rows, list(terms), of, weight=weight, declared=False, **design)


def _recodes_of(jobs: Sequence[TableJob], name: str) -> list[str]:
    """How a variable is recoded, in all tables that it spans alike."""
    found = [
        [recode.by for recode in job.recodes if recode.variable == name]
        for job in jobs
        if name in job.spec.variables
    ]
    if any(one != found[0] for one in found):
        raise DataError(
            f"line {jobs[-1].spec.line}: {name!r} is recoded differently in linked tables; recode "
            "it in the same way in each, or suppress them one by one."
        )
    return found[0]


def _recode_records(
    jobs: Sequence[TableJob], about: Metadata
) -> tuple[Frame, dict[str, Hierarchy]]:
    """The records with new codes, and the hierarchy of each variable."""
    names = [name for job in jobs for name in job.spec.variables]
    folder = jobs[0].metadata.parent
    _, rows = numbered_rows(jobs[0].data, about, ".", keeps_missing=True)
    rows = rows.with_column(RECORD, [str(k) for k in range(len(rows))])
    trees: dict[str, Hierarchy] = {}
    for name in dict.fromkeys(names):
        variable = about.variable(name)
        codes = [code for code in rows.column(name).unique().to_pylist() if code is not None]
        tree = tree_with_missing(variable, folder, codes)
        for by in _recodes_of(jobs, name):
            new, tree = recoding(by, folder, codes, tree)
            column = [new.get(code, code) for code in rows.column(name).to_pylist()]
            rows = rows.with_column(name, column)
            codes = list(dict.fromkeys(column))
        trees[name] = tree or Hierarchy.flat(sorted(codes), root=variable.total)
    return rows, trees


def recoding(
    by: str, folder: Path, codes: Sequence[str], tree: Hierarchy | None
) -> tuple[dict[str, str], Hierarchy | None]:
    """The new code of each old one that changes, and the hierarchy of the new codes.

    Args:
      by: A `.grc` file, or a level: 1 keeps the codes right under the total.
      folder: Where the file lies.
      codes: The codes that occur.
      tree: The hierarchy of the codes; `None` for flat ones.
    """
    if by.isdigit():
        if tree is None:
            raise DataError(f"level {by} is asked for, but the variable has no hierarchy.")
        return close_nodes(tree, tree.codes_at(int(by)))
    lines = [line.strip() for line in read_text(folder / by).splitlines()]
    body = [line for line in lines if line and not line.startswith("<")]
    if "<TREERECODE>" in (line.upper() for line in lines):
        if tree is None:
            raise DataError(f"{by} closes nodes of a tree, but the variable has no hierarchy.")
        return close_nodes(tree, body)
    if tree is not None:
        raise DataError(
            f"{by} groups single codes, but the variable has a hierarchy; close its nodes with "
            "<TREERECODE>, or leave <HIERARCHICAL> out of the metadata."
        )
    return {code: new for line in body for new, code in _read_groups(line, by, codes)}, None


def close_nodes(tree: Hierarchy, nodes: Sequence[str]) -> tuple[dict[str, str], Hierarchy]:
    """The tree with these nodes as leaves, and for each code below one the node it becomes."""
    below = {code: code.strip() for code in tree.codes}
    moved: dict[str, str] = {}
    for node in nodes:
        found = next((code for code, plain in below.items() if plain == node.strip()), None)
        if found is None:
            raise DataError(f"node {node!r} is to be closed, but the hierarchy has no such code.")
        moved |= dict.fromkeys(tree.descendants(found), found)
    return moved, Hierarchy(tree.root, {c: p for c, p in tree.parents.items() if c not in moved})


def _read_groups(line: str, file: str, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a new code and an old one, of a line such as `1: 01-05, 07`."""
    new, colon, listed = line.partition(":")
    if not colon or not new.strip():
        raise DataError(f"{line!r} in {file} cannot be read; a line is written as '1: 01-05, 07'.")
    found = []
    for part in filter(None, map(str.strip, listed.split(","))):
        ends = re.fullmatch(r"([^-]*?)\s*-\s*([^-]*)", part)
        if ends is None:
            inside = [code for code in codes if code.strip() == part]
        else:
            least, most = ends[1] or min(codes), ends[2] or max(codes)
            inside = [code for code in codes if least <= code.strip() <= most]
        found += [(new.strip(), code) for code in inside]
    return found
