"""A first draft of code lists, made from the codes that the records hold."""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet.design.codes import MISSING, factorise, natural_order
from discreet.errors import DataError
from discreet.progress import report
from discreet.records.backend import fetch
from discreet.records.code_list import REFUSE
from discreet.records.records import UnitRecords

_NAMES_OF_ROLES = re.compile(r"(.*[_\W])?(id|ids|pid|uuid|key|keys|rkey|weight|weights|wgt)", re.I)
_HEADER = """\
# Code lists of {origin}, drafted by `discreet codes`.
#
# Every code listed here becomes public: tables show it, whether anyone has it or not.
# These codes were found in the records, so review them before use:
# - Remove every code that must not be public, such as a diagnosis that a single person has.
# - Add codes that are possible and did not occur.
# - Say what happens to records with a code that is not listed (other) and to records without
#   a value (missing). "refuse" stops with an error, "drop" leaves the records out of every
#   table, and a code of the list takes them in. For differentially private tables choose
#   "drop" or a code: the error itself would tell that such a record exists.
"""
_SPELLINGS = """\
# Some codes are the same number. If 47, 47.0 and 047 are one code, remove all but 47 and say:
# spelling = "number"
"""


@dataclass(frozen=True)
class Draft:
    """Code lists to review, as the text of a file."""

    text: str  # the file, in TOML; see `CodeLists.read`
    listed: tuple[str, ...]  # variables with a code list
    skipped: dict[str, str]  # other columns, with the reason why they have none


def draft_code_lists(data: UnitRecords, max_codes: int) -> Draft:
    """Code lists of every column that looks like a variable and has at most `max_codes` codes."""
    entries, skipped = {}, {}
    for done, name in enumerate(data.columns):
        report("codes", done / len(data.columns))
        codes, reason = _codes_of(data, name, max_codes)
        if reason is None:
            entries[name] = codes
        else:
            skipped[name] = reason
    report("codes", 1.0)
    if not entries:
        reasons = "; ".join(f"{name!r} {reason}" for name, reason in skipped.items())
        raise DataError(f"no column of {data.origin} can have a code list: {reasons}.")
    return Draft(_text(data.origin, entries, skipped), tuple(entries), skipped)


def _codes_of(data: UnitRecords, name: str, max_codes: int) -> tuple[list[str], str | None]:
    """The codes of a column in their order, or the reason why it gets no code list."""
    if name not in data.dimensions:
        return [], "is the id, the weight or the key"
    if _NAMES_OF_ROLES.fullmatch(name):
        return [], "has the name of an id, a weight or a key"
    if data.table.schema()[name].is_nested():
        return [], f"holds {data.table.schema()[name]}, not single values"
    cells = data.table.group_by(value=data.table[name]).aggregate(n=data.table.count())
    # One code too many and a missing value are enough to know that the column is left out.
    cells = fetch(data.backend, cells.limit(max_codes + 2), data.origin)
    codes, index = factorise(cells.column(0))
    if len(codes) > max_codes:
        return [], (
            f"has more than {max_codes} codes; an amount or a weight needs no list; otherwise "
            "group the codes by a hierarchy, or list them all with --max-codes"
        )
    if not any(map(str.strip, codes)):
        return [], "has no values"
    records = cells.column(1).to_numpy()[index >= 0]
    if len(codes) > 1 and (records == 1).all():
        return [], "has a different value in every record, like an id"
    return natural_order({*codes, *([MISSING] if (index < 0).any() else [])}), None


def _number(code: str) -> str:
    found = re.fullmatch(r"0*([0-9]+)(?:[.,]0+)?", code)
    return found[1] if found else code


def _text(origin: str, entries: dict[str, list[str]], skipped: dict[str, str]) -> str:
    import tomli_w

    parts = [_HEADER.format(origin=" ".join(origin.split()))]
    if skipped:
        lines = (f"# - {name!r} {reason}.\n" for name, reason in skipped.items())
        parts.append("".join(["# Columns without a code list:\n", *lines]))
    for name, codes in entries.items():
        listed = [code for code in codes if code.strip()]
        note = "# Blank values occur, which cannot be codes: see other.\n"
        missing = MISSING if MISSING in codes else REFUSE
        entry = {"codes": listed, "other": REFUSE, "missing": missing}
        ask = _SPELLINGS if len(set(map(_number, listed))) < len(listed) else ""
        parts.append((note if listed != codes else "") + tomli_w.dumps({name: entry}) + ask)
    return "\n".join(parts)
