"""τ-ARGUS batch files, `.arb`: the commands of a job, read and checked before any work is done.

The commands are those of the public manual; what they do here stands in `discreet.facade.argus`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import DataError
from discreet.records.rda import source_text

IGNORED = ("VERSIONINFO", "GOINTERACTIVE", "SOLVER")
"""Commands about the program itself: nothing is done for them, and the log says so."""
_FILES = {
    "OPENMICRODATA": "records",
    "OPENTABLEDATA": "table",
    "OPENMETADATA": "metadata",
    "LOGBOOK": "log",
}
KNOWN = (
    *_FILES,
    *("SPECIFYTABLE", "SAFETYRULE", "READMICRODATA", "READTABLE", "RECODE", "APRIORI"),
    *("SUPPRESS", "WRITETABLE", "CLEAR", *IGNORED),
)
"""The commands that are understood."""
RULES = {"P": 1, "NK": 2, "PQ": 2, "FREQ": 1, "ZERO": 1, "REQ": 2, "MIS": 1, "WGT": 1, "MAN": 1}
"""Safety rules, with the number of arguments that each needs."""
WAYS = ("GH", "MOD", "OPT", "NET", "RND", "CTA")
"""Ways of suppression and of perturbation."""
_LINE = re.compile(r"<\s*([A-Za-z]+)\s*>\s*(.*)")
_CALL = re.compile(r"\s*([A-Za-z]+)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True)
class OpenFile:
    """A file that the job names: `records`, `table`, `metadata` or the `log`."""

    line: int
    kind: str
    path: str


@dataclass(frozen=True)
class TableSpec:
    """A table: the variables that span it, what is summed, what rules look at, and costs.

    Attributes:
      line: The number of the line, for messages.
      variables: The spanning variables.
      response: The value that is published; `<freq>` for counts.
      shadow: The value that rules look at; the response when empty.
      cost: The value that is lost by suppression; the response when empty.
    """

    line: int
    variables: tuple[str, ...]
    response: str
    shadow: str = ""
    cost: str = ""

    @property
    def has_counts(self) -> bool:
        """Whether numbers of records are published."""
        return self.response.lower() in ("<freq>", "<frequency>")


@dataclass(frozen=True)
class SafetyRule:
    """The rules of the table before: names with their numbers."""

    line: int
    parts: tuple[tuple[str, tuple[float, ...]], ...]

    def numbers(self, name: str) -> list[tuple[float, ...]]:
        """The numbers of each rule of a name, in their order."""
        return [numbers for found, numbers in self.parts if found == name]


@dataclass(frozen=True)
class ReadData:
    """The tables that were specified are to be made."""

    line: int


@dataclass(frozen=True)
class Recode:
    """A variable of a table is coarsened, by a `.grc` file or to a level of its hierarchy."""

    line: int
    table: int
    variable: str
    by: str


@dataclass(frozen=True)
class UseApriori:
    """A file of single cells for a table."""

    line: int
    path: str
    table: int
    separator: str = ","
    ignores_errors: bool = False
    expands: bool = False


@dataclass(frozen=True)
class SuppressTable:
    """A table is protected; table 0 means all of them, linked."""

    line: int
    way: str
    table: int
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class WriteTable:
    """A table is written: 1 to 3 CSV, 4 SBS, 5 intermediate, 6 JJ."""

    line: int
    table: int
    kind: int
    options: str
    path: str

    def has(self, option: str, *, usual: bool = False) -> bool:
        """Whether an option such as `AS` stands with a plus."""
        found = re.search(rf"{option}\s*([+-])", self.options.upper())
        return usual if found is None else found[1] == "+"


@dataclass(frozen=True)
class Clear:
    """Everything that was read and made is forgotten."""

    line: int


@dataclass(frozen=True)
class Ignored:
    """A command about the program itself."""

    line: int
    word: str
    text: str


Step = (
    OpenFile
    | TableSpec
    | SafetyRule
    | ReadData
    | Recode
    | UseApriori
    | SuppressTable
    | WriteTable
    | Clear
    | Ignored
)


_QUOTED = 5  # unknown commands that are quoted at most


def read_batch(source: str | Path) -> tuple[Step, ...]:
    """The commands of an `.arb` file.

    Args:
      source: The file, or its text when it is a string with a line break.

    Raises:
      DataError: Commands that are not known, each with its line, or one that cannot be read.
    """
    commands: list[tuple[int, str, str]] = []
    unknown: list[str] = []
    for number, line in enumerate(map(str.strip, source_text(source).splitlines()), start=1):
        if not line or line.startswith("//"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or match[1].upper() not in KNOWN:
            # any other line is not quoted: it may be a record of a file that is no batch
            unknown.append(f"line {number}: {'no command' if match is None else f'<{match[1]}>'}")
        else:
            commands.append((number, match[1].upper(), match[2].strip()))
    if unknown:
        known = ", ".join(f"<{word}>" for word in KNOWN)
        more = f"; and {len(unknown) - _QUOTED} more" if len(unknown) > _QUOTED else ""
        raise DataError(f"unknown commands ({'; '.join(unknown[:_QUOTED])}{more}). Known: {known}.")
    if not commands:
        raise DataError('the batch has no commands; it starts with <OPENMICRODATA> "file".')
    return tuple(_step(*command) for command in commands)


def _step(line: int, word: str, text: str) -> Step:
    if word in _FILES:
        return OpenFile(line, _FILES[word], _strip_quotes(text))
    if word in IGNORED:
        return Ignored(line, word, text)
    if word in ("READMICRODATA", "READTABLE"):
        return ReadData(line)
    readers: dict[str, Callable[[int, str], Step]] = {
        "SPECIFYTABLE": _table_spec,
        "SAFETYRULE": _safety_rule,
        "RECODE": _recode,
        "APRIORI": _apriori,
        "SUPPRESS": _suppress,
        "WRITETABLE": _write,
    }
    return Clear(line) if word == "CLEAR" else readers[word](line, text)


def _table_spec(line: int, text: str) -> TableSpec:
    parts = [re.findall(r'"([^"]*)"', part) for part in text.split("|")]
    if len(parts) < 2 or not parts[0] or not parts[1]:
        raise _wrong(line, text, '<SPECIFYTABLE> "region""size"|"turnover"||')
    response, shadow, cost = ([*part, ""][0] for part in [*parts[1:4], [], []][:3])
    for name, given in (("shadow", shadow), ("cost", cost)):
        if re.fullmatch(r"-?\d+", given):
            raise DataError(
                f"line {line}: the {name} variable is the number {given}; name a column instead, "
                'or leave it empty ("") for the response.'
            )
    return TableSpec(line, tuple(parts[0]), response, shadow, cost)


def _safety_rule(line: int, text: str) -> SafetyRule:
    found = []
    for part in text.split("|"):
        if not part.strip():
            continue
        name, numbers = _call(line, part, "<SAFETYRULE> P(10,1)|FREQ(3,10)")
        if name not in RULES:
            raise DataError(
                f"line {line}: safety rule {name!r} is not known. Known: {', '.join(RULES)}."
            )
        if len(numbers) < RULES[name]:
            raise DataError(f"line {line}: {name} needs {RULES[name]} numbers, got {len(numbers)}.")
        found.append((name, numbers))
    return SafetyRule(line, tuple(found))


def _recode(line: int, text: str) -> Recode:
    values = _values(text)
    if len(values) != 3 or not values[0].isdigit():
        raise _wrong(line, text, '<RECODE> 1,"region","region.grc"')
    return Recode(line, int(values[0]), *values[1:])


def _apriori(line: int, text: str) -> UseApriori:
    values = _values(text)
    if len(values) < 2 or not values[1].isdigit():
        raise _wrong(line, text, '<APRIORI> "cells.hst",1,";",0,0')
    flags = [value == "1" for value in values[3:5]]
    separator = values[2] if len(values) > 2 and values[2] else ","
    return UseApriori(line, values[0], int(values[1]), separator, *flags)


def _suppress(line: int, text: str) -> SuppressTable:
    way, numbers = _call(line, text, "<SUPPRESS> MOD(1,5)")
    if way not in WAYS:
        raise DataError(f"line {line}: way {way!r} is not known. Known: {', '.join(WAYS)}.")
    if not numbers:
        raise _wrong(line, text, "<SUPPRESS> MOD(1,5)")
    return SuppressTable(line, way, int(numbers[0]), numbers[1:])


def _write(line: int, text: str) -> WriteTable:
    values = _values(text.strip().removeprefix("(").removesuffix(")"))
    is_read = len(values) == 4 and values[0].isdigit() and values[1].isdigit()
    if not is_read or not 1 <= int(values[1]) <= 6:
        raise _wrong(line, text, '<WRITETABLE> (1,3,AS+,"out.csv")')
    return WriteTable(line, int(values[0]), int(values[1]), values[2], values[3])


def _call(line: int, text: str, example: str) -> tuple[str, tuple[float, ...]]:
    """A name with numbers in brackets; what is left out between commas is 0."""
    match = _CALL.fullmatch(text)
    try:
        if match is not None:
            values = [value.strip() for value in match[2].split(",")]
            numbers = tuple(float(value or 0) for value in values) if match[2].strip() else ()
            return match[1].upper(), numbers
    except ValueError:
        pass
    raise _wrong(line, text, example)


def _values(text: str) -> list[str]:
    """Texts between commas, some in quotation marks."""
    return [value.strip() for value in next(csv.reader([text], skipinitialspace=True))]


def _strip_quotes(text: str) -> str:
    return text.strip().strip('"')


def _wrong(line: int, text: str, example: str) -> DataError:
    return DataError(f"line {line}: {text!r} cannot be read; it is written as {example}.")
