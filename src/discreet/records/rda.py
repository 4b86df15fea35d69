"""τ-ARGUS metadata, `.rda`: the columns of a file of records or of a finished table.

See the τ-ARGUS manual (Hundepool et al.). The file has nothing to do with R's `.rda`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from discreet.design.formats.files import read_text
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, UnknownNameError
from discreet.files import write_text
from discreet.frames import Frame

Options = Mapping[str, tuple[str, ...]]
"""Words in angle brackets, with what follows each."""
_TOKEN = re.compile(r'"([^"]*)"|<([^<>"]*)>|([^\s"<>]+)')
_FILE_OPTIONS = ("SEPARATOR", "SAFE", "UNSAFE", "PROTECT")
_BARE = {"DECIMALS", "DISTANCE", "HIERLEVELS"}  # followed by numbers, which are not quoted
_OF_NUMBERS = ("SHADOW", "COSTVAR", "LOWERPL", "UPPERPL")
"""Roles of numbers; τ-ARGUS knows them on the line of `<NUMERIC>` alone."""
STATUS = {"SAFE": "S", "UNSAFE": "U", "PROTECT": "P"}
"""How the status of a cell is written unless the metadata say otherwise."""


@dataclass(frozen=True)
class Variable:
    """A column of a file."""

    name: str  # its name
    start: int | None = None  # place of its first character, from 1, in a file of fixed width
    width: int | None = None  # number of its characters in such a file
    missing: tuple[str, ...] = ()  # codes for missing values
    # Words in angle brackets, with what follows each.
    options: Options = field(default_factory=dict)

    def has(self, option: str) -> bool:
        """Whether a word is there."""
        return option in self.options

    @property
    def is_dimension(self) -> bool:
        """Whether tables can be spanned by it."""
        return self.has("RECODEABLE") or self.has("RECODABLE")

    @property
    def total(self) -> str:
        """Code of the total."""
        return (self.options.get("TOTCODE") or ("Total",))[0]

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        numbers = ("NUMERIC", "FREQUENCY", "SHADOW", "COSTVAR", "MAXSCORE", "LOWERPL", "UPPERPL")
        return any(self.has(option) for option in (*numbers, "WEIGHT"))

    @property
    def decimals(self) -> int:
        """How many decimals its numbers are shown with."""
        return int((self.options.get("DECIMALS") or ("0",))[0])

    def hierarchy(self, folder: Path, codes: Iterable[object] = ()) -> Hierarchy | None:
        """The hierarchy that is named, or that the digits of the codes form; none for flat codes.

        Codes of an `.hrc` file that differ from those that occur by leading blanks are these.

        Args:
          folder: Where the files lie.
          codes: The codes that occur.
        """
        if self.has("HIERCODELIST"):
            leading = (self.options.get("HIERLEADSTRING") or ("@",))[0]
            path = folder / self.options["HIERCODELIST"][0]
            tree = Hierarchy.from_hrc(path, root=self.total, leading=leading)
            padded = {str(code).strip(): str(code) for code in codes}
            parents = {padded.get(c, c): padded.get(p, p) for c, p in tree.parents.items()}
            return Hierarchy(tree.root, parents)
        if self.has("HIERLEVELS"):
            return Hierarchy.from_digits(codes, " ".join(self.options["HIERLEVELS"]), self.total)
        return None


@dataclass(frozen=True)
class Metadata:
    """The columns of a file and how they are written."""

    variables: tuple[Variable, ...]  # the columns, in the file's order
    separator: str | None = None  # what stands between values; `None` in a file of fixed width
    # How the status of a cell is written: `SAFE`, `UNSAFE` and `PROTECT`.
    statuses: Mapping[str, str] = field(default_factory=lambda: dict(STATUS))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(variable.name for variable in self.variables)

    @property
    def dimensions(self) -> tuple[Variable, ...]:
        """The columns that span tables."""
        return tuple(variable for variable in self.variables if variable.is_dimension)

    def variable(self, name: str) -> Variable:
        """A column by its name."""
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise UnknownNameError("column of the metadata", name, self.names)

    def with_option(self, option: str) -> tuple[Variable, ...]:
        """The columns that have a word."""
        return tuple(variable for variable in self.variables if variable.has(option))

    @property
    def text(self) -> str:
        """The text of an `.rda` file."""
        lines = [] if self.separator is None else [f'<SEPARATOR> "{self.separator}"']
        lines += [f'<{k}> "{v}"' for k, v in self.statuses.items() if STATUS.get(k) != v]
        for variable in self.variables:
            place = [] if variable.start is None else [str(variable.start), str(variable.width)]
            lines.append(" ".join([variable.name, *place, *map('"{}"'.format, variable.missing)]))
            roles = [role for role in _OF_NUMBERS if variable.has(role)]
            if roles:
                lines.append("   " + " ".join(f"<{key}>" for key in ("NUMERIC", *roles)))
            for key, values in variable.options.items():
                if not roles or key not in ("NUMERIC", *roles):
                    texts = values if key in _BARE else map('"{}"'.format, values)
                    lines.append(" ".join([f"   <{key}>", *texts]))
        return "".join(f"{line}\n" for line in lines)

    def write(self, path: str | Path) -> Path:
        """Write the `.rda` file."""
        return write_text(path, self.text)


def source_text(source: str | Path) -> str:
    """The text of a file, or the source itself when it is a string with a line break."""
    is_text = isinstance(source, str) and "\n" in source
    return str(source) if is_text else read_text(Path(source))


def read_metadata(source: str | Path) -> Metadata:
    """The columns that an `.rda` file describes.

    Args:
      source: The file, or its text when it is a string with a line break.

    Raises:
      DataError: A line cannot be read; the message has its number.
    """
    about: dict[str, tuple[str, ...]] = {}
    variables: list[Variable] = []
    options = about  # those of the file, until a column is named
    for number, line in enumerate(source_text(source).splitlines(), start=1):
        if line.lstrip().startswith("<"):
            _add_options(options, line, number, is_first=not variables)
        elif line.strip():
            options = {}
            variables.append(_variable(line, number, options))
    if not variables:
        raise DataError("the metadata name no column; a line such as 'region' was expected.")
    separator = about.get("SEPARATOR", (None,))[0]
    statuses = {key: about.get(key, (usual,))[0] for key, usual in STATUS.items()}
    names = [variable.name for variable in variables]
    for variable in variables:
        if names.count(variable.name) > 1:
            raise DataError(f"the metadata name column {variable.name!r} twice.")
    for variable in variables if separator is None else ():
        if variable.start is None:
            raise DataError(
                f"column {variable.name!r} has no place and width, and there is no separator. "
                'Add <SEPARATOR> ";" for values between signs.'
            )
    return Metadata(tuple(variables), separator, statuses)


def _add_options(
    options: dict[str, tuple[str, ...]], line: str, number: int, is_first: bool
) -> None:
    """Add the words in angle brackets of a line, each with the texts that follow it."""
    found: dict[str, tuple[str, ...]] = {}
    key = ""
    for kind, text in _tokens(line, number):
        if kind == "option":
            key = text.strip().upper()
            found[key] = ()
        else:
            found[key] = (*found[key], text)
    for needed in (*_FILE_OPTIONS, "TOTCODE", "HIERCODELIST", "HIERLEADSTRING"):
        if found.get(needed) == ():
            raise DataError(f'line {number}: <{needed}> needs a value, e.g. <{needed}> "…".')
    for key, values in found.items():
        if is_first and key not in _FILE_OPTIONS:
            raise DataError(
                f"line {number}: <{key}> stands before the first column; it belongs under one."
            )
        if key in options:
            raise DataError(f"line {number}: <{key}> is said twice.")
        options[key] = values


def _variable(line: str, number: int, options: Options) -> Variable:
    (_, name), *rest = _tokens(line, number)
    if any(kind == "option" for kind, _ in rest):
        raise DataError(f"line {number}: words in angle brackets stand on lines of their own.")
    texts = [text for _, text in rest]
    numbers = [text for kind, text in rest[:2] if kind == "word" and text.isdigit()]
    if len(numbers) == 2:
        return Variable(name, int(texts[0]), int(texts[1]), tuple(texts[2:]), options)
    return Variable(name, missing=tuple(texts), options=options)


def _tokens(line: str, number: int) -> Iterator[tuple[str, str]]:
    """Texts in quotation marks, words in angle brackets, and other words."""
    place = 0
    for match in _TOKEN.finditer(line):
        if line[place : match.start()].strip():
            break
        place = match.end()
        kinds = zip(("text", "option", "word"), match.groups(), strict=True)
        yield next((kind, text) for kind, text in kinds if text is not None)
    if line[place:].strip():
        raise DataError(
            f"line {number}: {line[place:].strip()!r} cannot be read; a quotation mark or an angle "
            "bracket is not closed."
        )


def read_rows(path: str | Path, metadata: Metadata, *, decimal: str = ".") -> Frame:
    """The rows of a table or of records, codes as text and numbers as numbers.

    Codes that stand for missing values are null.

    Args:
      path: The file.
      metadata: Its columns.
      decimal: The decimal sign.

    Raises:
      DataError: A line cannot be read; the message has its number.
    """
    return numbered_rows(path, metadata, decimal)[1]


def numbered_rows(
    path: str | Path, metadata: Metadata, decimal: str, *, keeps_missing: bool = False
) -> tuple[list[int], Frame]:
    """The rows as `read_rows` gives them, or with codes for missing values, and their lines."""
    rows = list(_rows(read_text(Path(path)), metadata))
    columns = {
        variable.name: [
            _value(row[i], number, variable, decimal, () if keeps_missing else variable.missing)
            for number, row in rows
        ]
        for i, variable in enumerate(metadata.variables)
    }
    kinds = {v.name: "float64" if v.is_number else "string" for v in metadata.variables}
    return [number for number, _ in rows], Frame(columns, kinds)


def _rows(text: str, metadata: Metadata) -> Iterator[tuple[int, list[str]]]:
    """The texts of each row, with the number of its line."""
    wanted = len(metadata.variables)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if metadata.separator is None:
            yield number, [_part(line, variable, number) for variable in metadata.variables]
            continue
        values = next(csv.reader([line], delimiter=metadata.separator, skipinitialspace=True))
        if len(values) != wanted:
            raise DataError(
                f"line {number} has {len(values)} values, but the metadata describe {wanted} "
                f"columns separated by {metadata.separator!r}."
            )
        yield number, [value.strip() for value in values]


def _part(line: str, variable: Variable, number: int) -> str:
    start = (variable.start or 1) - 1
    if len(line) < start:
        raise DataError(
            f"line {number} has {len(line)} characters, but column {variable.name!r} begins at "
            f"{variable.start}."
        )
    text = line[start : start + (variable.width or 0)].rstrip()
    # " 1" and "1" are two codes in a column of fixed width; numbers have no use for blanks.
    return text.strip() if variable.is_number or not text.strip() else text


def _value(
    text: str, number: int, variable: Variable, decimal: str, missing: Sequence[str]
) -> str | float | None:
    if text.strip() in missing or (variable.is_number and not text):
        return None
    if not variable.is_number:
        return text
    try:
        return float(text.replace(decimal, ".") if decimal != "." else text)
    except ValueError:
        raise DataError(
            f"line {number}: {text!r} in column {variable.name!r} is not a number with decimal "
            f"sign {decimal!r}."
        ) from None
