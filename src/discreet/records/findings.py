"""What is to know of records before anything runs: spellings, mixed types, ids, size of a table.

Everything here is **confidential**: it has counts, places and values of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.design.codes import canonical
from discreet.design.formula import Margins, parse
from discreet.display import align_columns
from discreet.errors import check_known
from discreet.records.backend import fetch
from discreet.records.query import language_of
from discreet.records.recode import is_missing
from discreet.records.records import UnitRecords
from discreet.records.tabulate import Size, Variables, crossing, holds_inner, largest_sets
from discreet.tables.assembly import variables_of

# What a text looks like. The first that fits counts.
_LOOKS = {
    "date": r"^\s*([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{4})([ T].*)?$",
    "whole": r"^\s*[+-]?(0|[1-9][0-9]*)\s*$",
    "with_zero": r"^\s*[+-]?(0|[1-9][0-9]*)[.,]0+\s*$",
    "leading_zero": r"^\s*0[0-9]+\s*$",
    "decimal": r"^\s*[+-]?[0-9][0-9.,' ]*([eE][+-]?[0-9]+)?\s*$",
}
_IN_WORDS = {
    "whole": "like 47",
    "with_zero": "like 47.0",
    "leading_zero": "like 047",
    "decimal": "like 4.7",
    "date": "dates",
    "text": "other texts",
}
_SHOWN = 3  # places that are shown of each fault
_COMPARED = 10_000  # codes that are compared one by one; a column with more is no list of codes
_SPELLINGS = ("whole", "with_zero", "leading_zero")


@dataclass(frozen=True)
class ColumnFacts:
    """**Confidential.** What a column holds."""

    name: str
    kind: str  # its type
    missing: int  # records without a value
    codes: int  # different values
    looks: Mapping[str, int]  # of texts: how many look like what


@dataclass(frozen=True)
class Findings:
    """**Confidential.** What is to know of records before anything runs."""

    origin: str
    records: int
    columns: tuple[ColumnFacts, ...]
    remarks: tuple[str, ...]  # what should be decided or mended, with the remedy
    size: Size | None = None  # of the crossing that is planned

    def __str__(self) -> str:
        lines = [f"{self.origin} (confidential): {self.records:,} records"]
        rows = [("  " + column.name, _said_of(column)) for column in self.columns]
        lines += align_columns(rows) if rows else []
        if self.size is not None:
            inner, mebibytes = self.size.inner, self.size.memory / 2**20
            held = f"{inner:,} combinations of codes" if inner else "no crossing of all variables"
            lines.append(
                f"  the table: {held}, {self.size.published:,} cells without totals, "
                f"{mebibytes:,.1f} MiB of memory"
            )
        return "\n".join([*lines, *(f"- {remark}" for remark in self.remarks)])


def _said_of(column: ColumnFacts) -> str:
    line = f"{column.kind}, {_number_of(column.codes, 'value')}"
    line += f", {column.missing:,} missing" if column.missing else ""
    shown = [f"{n:,} {_IN_WORDS[look]}" for look, n in column.looks.items() if n]
    return line + (f": {', '.join(shown)}" if shown else "")


def _number_of(n: int, thing: str) -> str:
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def look_through(
    data: UnitRecords,
    margins: Margins | None = None,
    *,
    numbers: Sequence[str] = (),
    max_codes: int = 200,
) -> Findings:
    """Look through all records: one query for the counts, one more for each fault found.

    Args:
      data: The records.
      margins: A table that is planned; its size is computed, and nothing is built.
      numbers: Columns that must be numbers; the records were opened without these roles, so that a
        value that is none can be shown instead of ending the look.
      max_codes: Codes of a variable beyond which classes are suggested.
    """
    check_known("column", numbers, data.columns)
    records, columns = _count(data)
    remarks = [note[:1].upper() + note[1:] + "." for note in data.notes]
    if len(columns) == 1 and records:
        remarks.append(
            "There is one column. If values are separated by another sign, say delimiter=';'; if "
            "lines come before the names of the columns, say header=3."
        )
    if not records:
        remarks.append("There are no records.")
    for facts in columns:
        if facts.name == data.id:
            remarks += _about_ids(data, facts, records)
        elif facts.name in numbers:
            remarks += _about_numbers(data, facts)
        else:
            remarks += _about_codes(data, facts, records, max_codes)
    size = None if margins is None else _size(data, margins, columns, len(numbers))
    return Findings(data.origin, records, columns, tuple(remarks), size)


def _count(data: UnitRecords) -> tuple[int, tuple[ColumnFacts, ...]]:
    table = data.table
    lang = language_of(table)
    asked: dict[str, Any] = {"records": table.count()}
    for k, (name, kind) in enumerate(table.schema().items()):
        column = table[name]
        empty = is_missing(column)
        asked[f"missing{k}"] = lang.ifelse(empty, 1, 0).sum()
        asked[f"codes{k}"] = lang.literal(0) if kind.is_nested() else column.nunique()
        if kind.is_string():
            branches = [(column.re_search(p), look) for look, p in _LOOKS.items()]
            look = lang.cases((empty, lang.null(str)), *branches, else_="text")
            for each in (*_LOOKS, "text"):
                asked[f"{each}{k}"] = lang.ifelse(look == each, 1, 0).sum()
    (found,) = fetch(data.backend, table.aggregate(**asked), data.origin).to_pylist()
    columns = []
    for k, (name, kind) in enumerate(table.schema().items()):
        looks = {look: int(found.get(f"{look}{k}") or 0) for look in (*_LOOKS, "text")}
        looks = looks if kind.is_string() else {}
        missing, codes = int(found[f"missing{k}"] or 0), int(found[f"codes{k}"])
        columns.append(ColumnFacts(name, str(kind.copy(nullable=True)), missing, codes, looks))
    return int(found["records"]), tuple(columns)


def _about_ids(data: UnitRecords, facts: ColumnFacts, records: int) -> list[str]:
    remarks = []
    if facts.missing:
        remarks.append(f"{facts.missing:,} records have no id in {facts.name!r}; give them one.")
    repeated = records - facts.missing - facts.codes
    if repeated > 0:
        by_id = data.table.group_by(id=data.table[facts.name]).aggregate(n=data.table.count())
        often = by_id.filter(by_id.id.notnull() & (by_id.n > 1)).order_by(
            [by_id.n.desc(), by_id.id]
        )
        rows = fetch(data.backend, often.limit(_SHOWN), data.origin).to_pylist()
        named = ", ".join(f"{canonical(row['id'])} ({row['n']:,} times)" for row in rows)
        remarks.append(
            f"{facts.name!r} has {repeated:,} duplicates: {named}. Remove the doubles; or, where "
            f"one unit has several records, name it with person={facts.name!r} and another column "
            "with id=; or draw keys without ids, random_keys='with-keys.parquet'."
        )
    return remarks


def _about_numbers(data: UnitRecords, facts: ColumnFacts) -> list[str]:
    others = facts.looks.get("text", 0) + facts.looks.get("date", 0)
    remarks = [f"{facts.missing:,} records have no {facts.name!r}."] if facts.missing else []
    return remarks + ([_places(data, facts, others, "is to be summed")] if others else [])


def _about_codes(data: UnitRecords, facts: ColumnFacts, records: int, max_codes: int) -> list[str]:
    remarks, looks, name = [], facts.looks, facts.name
    spellings = [look for look in _SPELLINGS if looks.get(look)]
    numbers = sum(looks.get(look, 0) for look in (*_SPELLINGS, "decimal"))
    others = looks.get("text", 0) + looks.get("date", 0)
    is_asked = len(spellings) > 1 and not looks["decimal"] and name not in data.hierarchies
    if is_asked and not _is_padded(data, facts):
        found = ", ".join(f"{looks[look]:,} {_IN_WORDS[look]}" for look in spellings)
        remarks.append(
            f'{name!r} has {found}. If 47, 47.0 and 047 are one code, say spelling = "number" '
            "in its code list; otherwise they are different codes."
        )
    if numbers > 9 * others > 0:
        remarks.append(_places(data, facts, others, "holds numbers"))
    elif numbers and others:
        remarks.append(f"{name!r} mixes {numbers:,} numbers and {others:,} texts or dates.")
    if looks.get("date", 0) or facts.kind.startswith(("date", "timestamp")):
        remarks.append(f"{name!r} holds dates: recode it to year, quarter, month or 'age on …'.")
    elif max_codes < facts.codes and name not in data.hierarchies:
        differ = facts.codes == records - facts.missing
        is_id = data.id is None and differ and not looks.get("decimal")
        amount = f": if it is an amount or a weight, say value={name!r} or weight={name!r}; else "
        remarks.append(
            f"{name!r} has a different value in every record; if it is the id, say id={name!r}."
            if is_id
            else f"{name!r} has {facts.codes:,} values{amount if numbers or not looks else ': '}"
            "recode it into classes, or list them all with "
            f"`discreet codes … --max-codes {facts.codes}`."
        )
    return remarks


def _is_padded(data: UnitRecords, facts: ColumnFacts) -> bool:
    """Whether zeros in front bring all numbers to one length, so that none is written twice."""
    if facts.looks["with_zero"] or facts.codes > _COMPARED:
        return False
    codes = data.table.group_by(code=data.table[facts.name]).aggregate(n=data.table.count())
    found = fetch(data.backend, codes, data.origin).column("code").to_pylist()
    return len({len(code.strip()) for code in found if code and code.strip().isdigit()}) == 1


def _places(data: UnitRecords, facts: ColumnFacts, others: int, what: str) -> str:
    """Where the values are that are no numbers, with the values."""
    numbered = data.table.mutate(place_=language_of(data.table).row_number())
    column = numbered[facts.name]
    is_number = column.re_search("|".join(f"({_LOOKS[k]})" for k in (*_SPELLINGS, "decimal")))
    asked = numbered.filter(column.notnull() & ~is_number).select("place_", value=column)
    rows = fetch(data.backend, asked.limit(_SHOWN), data.origin).to_pylist()
    shown = ", ".join(f"{row['value']!r:.40} in record {row['place_'] + 1:,}" for row in rows)
    more = ", …" if others > len(rows) else ""
    found = f"{_number_of(others, 'value')} that {'is' if others == 1 else 'are'} no number"
    return f"{facts.name!r} {what}, and has {found}: {shown}{more}."


def _size(
    data: UnitRecords, margins: Margins, columns: Sequence[ColumnFacts], n_numbers: int
) -> Size:
    """The size of a planned table, by the codes that are declared or found."""
    terms, trees = parse(margins), data.hierarchies
    sizes = {c.name: c.codes + (c.missing > 0) for c in columns}
    sizes |= {name: len(tree[0].leaves) for name, tree in trees.items()}
    variables: Variables = tuple(variables_of(terms, data.dimensions, trees))
    sets = largest_sets([tuple(variables_of([t], data.dimensions, trees)) for t in terms])
    inner = crossing(variables, sizes) if holds_inner(variables, sets, sizes) else 0
    values = 1 + 2 * n_numbers  # weights with their squares, and keys
    return Size(inner, sum(crossing(s, sizes) for s in sets), values)
