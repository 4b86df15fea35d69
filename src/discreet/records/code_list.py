"""Code lists in a file: the codes of each variable, records outside them, and drafts of lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.columns import Column
from discreet.design.codes import MISSING, canonical, factorise, natural_order
from discreet.design.hierarchy import Hierarchy
from discreet.errors import CodeError, DataError, ParameterError, check_known, suggest
from discreet.files import read_toml
from discreet.frames import Frame, fresh_name
from discreet.progress import report
from discreet.records.backend import fetch
from discreet.records.kinds import kind_name
from discreet.records.query import language_of
from discreet.records.recode import Recoded, Trees, is_missing, value_of_code
from discreet.tables.assembly import Hierarchies, free_total
from discreet.tables.sketches import Passage

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords

REFUSE, DROP = "refuse", "drop"
WORDS = (REFUSE, DROP)
_KEYS = ("codes", "hierarchy", "other", "missing", "spelling", "time", "moves")
AS_WRITTEN, NUMBER = "as written", "number"
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
class Outside:
    """What happens to records of a variable that its code list does not cover.

    Attributes:
      other: For records with another code: `"refuse"` makes a table of the variable an error,
        `"drop"` leaves the records out of every table, and a code of the list takes them in.
      missing: The same for records without a value.
    """

    other: str = REFUSE
    missing: str = REFUSE

    def inside(self, table: Any, variable: str, trees: Trees) -> Any:
        """The records without those that are dropped.

        The codes are joined as a small table, which costs the same for two codes and for ten
        thousand.
        """
        if self.other != DROP:
            return table.filter(~is_missing(table[variable])) if self.missing == DROP else table
        kind, name = table[variable].type(), fresh_name("listed_code", table.columns)
        try:
            listed = [value_of_code(code, kind) for code in trees[0].leaves]
        except ParameterError:
            raise ParameterError(
                f"column {variable!r} holds {kind}, which cannot be compared with the codes of a "
                'list; make it text, or choose other = "refuse" or a code instead of "drop".'
            ) from None
        # Codes that the column's type cannot hold do not occur in it.
        values = [value for value in listed if value is not None]
        side = language_of(table).memtable(Frame({name: Column(values, kind_name(kind))}))
        joined = table.left_join(side, table[variable] == side[name])
        kept = joined[name].notnull()
        if self.missing != DROP:
            kept = kept | is_missing(joined[variable])
        return joined.filter(kept).drop(name)

    def after_recode(self, done: Recoded) -> Outside | None:
        """The rule after a recode; none when a code it names is gone."""
        if not done.trees:
            return None
        new: list[str] = []
        for target in (self.other, self.missing):
            if target not in WORDS:
                target = "" if done.moves is None else done.moves(target)
                if target not in done.trees[0].leaves or target in WORDS:
                    return None
            new.append(target)
        return Outside(*new)


@dataclass(frozen=True, eq=False)
class CodeLists:
    """The declared codes of some variables."""

    hierarchies: Hierarchies  # code lists and hierarchies by variable
    outside: Mapping[str, Outside]  # what happens to records that they do not cover, by variable
    passage: Passage = field(default_factory=Passage)  # variables of time, and those that move
    numbers: Collection[str] = ()  # variables of which 47, 47.0 and 047 are one code

    @classmethod
    def read(cls, path: str | Path) -> CodeLists:
        """Code lists from a TOML file with a table for each variable.

        A table holds `codes` (a list, or a table of codes and labels) or `hierarchy` (a file beside
        this one that `Hierarchy.read` can read, or several), and perhaps `other` and `missing`:
        `"refuse"` (the default), `"drop"`, or a code of the list. With `spelling = "number"` the
        texts 47, 47.0 and 047 are the code 47; without it they are different.
        `time = true` says that the variable is the time of a record, and `moves = 1` that it moves
        by so much from one edition to the next; a ledger takes both into account when it
        compares editions.

        Raises:
          DataError: A file is absent, or is not TOML.
          CodeError: An entry makes no code list; the message names file and variable.
          UnknownNameError: An entry has a key that means nothing.
        """
        file = Path(path)
        content = _content(file)
        trees = {name: _trees(file, name, entry) for name, entry in content.items()}
        rules, numbers = {}, []
        for name, entry in content.items():
            where, tree = _where(file, name), trees[name][0]
            given = {key: entry[key] for key in ("other", "missing") if key in entry}
            targets = {key: _target(f"{where}: {key}", v, tree) for key, v in given.items()}
            rules[name] = Outside(**targets)
            spelling = entry.get("spelling", AS_WRITTEN)
            check_known(f"spelling of {where}", [spelling], (AS_WRITTEN, NUMBER))
            numbers += [name] if spelling == NUMBER else []
        return cls(trees, rules, _passage(file, content), numbers)

    @staticmethod
    def files(path: str | Path) -> list[Path]:
        """The file of code lists and the files of hierarchies that it names."""
        file = Path(path)
        named = [entry["hierarchy"] for entry in _content(file).values() if "hierarchy" in entry]
        return [file, *(file.parent / name for files in named for name in _names(files))]

    def inside(self, table: Any) -> Any:
        """The records in one spelling, without those that a code list drops."""
        texts = [name for name in self.numbers if table[name].type().is_string()]
        if texts:
            table = table.mutate(**{name: _as_number(table[name]) for name in texts})
        for variable, rule in self.outside.items():
            table = rule.inside(table, variable, self.hierarchies[variable])
        return table


def _as_number(column: Any) -> Any:
    """Whole numbers without leading zeros, and without decimals that are zeros."""
    short = column.strip().re_replace("[.,]0+$", "").re_replace("^0+([0-9])", r"\1")
    return language_of(column).ifelse(column.re_search(r"^\s*[0-9]+([.,]0+)?\s*$"), short, column)


def _content(file: Path) -> dict[str, dict[str, Any]]:
    """The entries of a file, each a table with known keys."""
    if not file.exists():
        raise DataError(
            f"there is no code list {file}. Draft one: `discreet codes people.csv --out {file}`."
        )
    content = read_toml(file)
    if not content:
        raise CodeError(f"{file} lists no variable; write a table such as [sex] for each.")
    for name, entry in content.items():
        if not isinstance(entry, dict):
            raise CodeError(
                f'{file}: {name!r} must be a table, e.g. [{name}] with codes = ["a", "b"] below it.'
            )
        check_known(f"key of {_where(file, name)}", entry, _KEYS)
    return content


def _passage(file: Path, content: Mapping[str, Mapping[str, Any]]) -> Passage:
    """Variables of time, and those that move."""
    for name, entry in content.items():
        if not isinstance(entry.get("time", False), bool):
            raise CodeError(f"{_where(file, name)}: time must be true or false.")
    time = tuple(name for name, entry in content.items() if entry.get("time"))
    moves = {name: entry["moves"] for name, entry in content.items() if "moves" in entry}
    return Passage(time, moves)


def _where(file: Path, variable: str) -> str:
    return f"{file}, variable {variable!r}"


def _trees(file: Path, variable: str, entry: Mapping[str, Any]) -> Trees:
    where = _where(file, variable)
    if ("codes" in entry) == ("hierarchy" in entry):
        raise CodeError(f'{where} needs either codes = [...] or hierarchy = "file".')
    try:
        if "codes" in entry:
            return (_flat(entry["codes"]),)
        trees = []
        for path in (file.parent / name for name in _names(entry["hierarchy"])):
            if not path.is_file():
                raise DataError(
                    f"{where}: there is no file {path}; a hierarchy lies beside the code list."
                )
            trees.append(Hierarchy.read(path))
        return tuple(trees)
    except CodeError as error:
        raise CodeError(f"{where}: {error}") from error


def _flat(codes: object) -> Hierarchy:
    """A code list: a list of codes, or a table of codes and labels."""
    if not isinstance(codes, (list, dict)) or not codes:
        raise CodeError(f"codes must be a list, or a table of labels by code; got {codes!r:.60}.")
    listed = list(map(canonical, codes))
    for code, times in Counter(listed).items():
        if times > 1:
            raise CodeError(f"code {code!r} is listed twice.")
    labels = codes if isinstance(codes, dict) else {}
    for code, label in labels.items():
        if not isinstance(label, str):
            raise CodeError(
                f"the label of code {code!r} must be a text, got {label!r:.60}; codes with a dot "
                "need quotes."
            )
    root = free_total(listed)
    return Hierarchy(root, dict.fromkeys(listed, root), labels)


def _names(files: object) -> list[str]:
    several = files if isinstance(files, list) else [files]
    names = [name for name in several if isinstance(name, str)]
    if not names or len(names) < len(several):
        raise CodeError(f"hierarchy must be the name of a file, or several; got {files!r:.60}.")
    return names


def _target(what: str, given: object, tree: Hierarchy) -> str:
    """Where records go: one of two words, or a code of the list."""
    target = canonical(given)
    if target == DROP and target in tree.leaves:
        raise CodeError(
            f"{what} = {target!r} could also mean the code {target!r} of the list; give that code "
            "another name in the records and in the list."
        )
    if target in WORDS or target in tree.leaves:
        return target
    raise CodeError(
        f"{what} = {target!r} is neither 'refuse' nor 'drop' nor a code of the list. "
        + suggest(target, [*WORDS, *tree.leaves])
    )


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
