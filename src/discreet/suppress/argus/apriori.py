"""τ-ARGUS a-priori files, `.hst`: what is known of single cells beforehand."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.errors import DataError, DiscreetError, ParameterError
from discreet.files import write_text
from discreet.records.rda import source_text

_NUMBERS = {"u": 0, "s": 0, "p": 0, "c": 1, "pl": 2}
_MEANINGS = "u (unsafe), s (safe), p (not to be suppressed), c (cost), pl (two protection levels)"


@dataclass(frozen=True)
class AprioriEntry:
    """One line: a cell, what is said of it, and the numbers that go with it.

    Attributes:
      cell: A code for each variable, empty for the total.
      word: `u` unsafe, `s` safe, `p` not to be suppressed, `c` cost, `pl` protection levels.
      numbers: The cost, or the lower and the upper protection level.
      line: The number of the line, for messages.
    """

    cell: tuple[str, ...]
    word: str
    numbers: tuple[float, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, eq=False)
class AprioriCells:
    """What an a-priori file says of the published cells of one design.

    Attributes:
      unsafe: Which cells are sensitive whatever the rules say.
      safe: Which cells are not, whatever the rules say.
      protected: Which cells must not be suppressed.
      cost: What it costs to suppress a cell, not a number where nothing is said.
      lower: How far below its value a cell's interval must reach, not a number where nothing is
        said.
      upper: How far above its value it must reach.
    """

    unsafe: Mask
    safe: Mask
    protected: Mask
    cost: Real
    lower: Real
    upper: Real


@dataclass(frozen=True)
class APriori:
    """The lines of an a-priori file.

    Attributes:
      entries: The lines in their order; a later one about the same cell holds, but none may call
        unsafe what another calls safe or not to be suppressed.
      variables: The variables that the codes of a line belong to, in their order; those of the
        design when absent.
    """

    entries: tuple[AprioriEntry, ...]
    variables: tuple[str, ...] | None = None

    @classmethod
    def of_cells(cls, cells: Mapping[tuple[str, ...], str | tuple[str | float, ...]]) -> APriori:
        """Lines from a mapping: `{("01", ""): "u", ("02", ""): ("pl", 5, 5)}`."""
        entries = []
        for cell, said in cells.items():
            word, *numbers = (said,) if isinstance(said, str) else said
            entries.append(_entry(tuple(cell), str(word), [str(n) for n in numbers], 0))
        return cls(tuple(entries))

    def cells(
        self, design: Design, *, ignore_unknown: bool = False, expand: bool = False
    ) -> AprioriCells:
        """What the lines say of a design's published cells.

        Args:
          design: The design.
          ignore_unknown: Whether lines about cells that are not published are passed over.
          expand: Whether a line also holds for cells that show the same inner cells, such as a
            group with a single code below it.

        Raises:
          DataError: A line is about no published cell, or contradicts an earlier one; the message
            has its number.
        """
        n, same = design.n_published, design.duplicates() if expand else None
        marks = {word: np.zeros(n, dtype=bool) for word in ("u", "s", "p")}
        cost, lower, upper = (np.full(n, np.nan) for _ in range(3))
        for entry in self.entries:
            place = self._position(design, entry, ignore_unknown)
            if place is None:
                continue
            where = np.array([place]) if same is None else np.flatnonzero(same == same[place])
            if entry.word == "c":
                cost[where] = entry.numbers[0]
            elif entry.word == "pl":
                lower[where], upper[where] = entry.numbers
            else:
                others = marks["s"] | marks["p"] if entry.word == "u" else marks["u"]
                if others[where].any():
                    raise DataError(
                        f"{_at_line(entry.line)}cell {', '.join(entry.cell)!r} has "
                        f"{entry.word!r}, but an earlier line says the opposite. A cell is either "
                        "unsafe (u), or safe (s) or not to be suppressed (p)."
                    )
                for word, mark in marks.items():
                    mark[where] = word == entry.word
        return AprioriCells(marks["u"], marks["s"], marks["p"], cost, lower, upper)

    def resolved(self, design: Design, *, ignore_unknown: bool, expand: bool) -> APriori:
        """The same for the cells of a design by all its variables; the arguments are of `cells`."""
        same = design.duplicates() if expand else None
        names = tuple(axis.name for axis in design.axes)
        entries = []
        for entry in self.entries:
            place = self._position(design, entry, ignore_unknown)
            if place is not None:
                where = [place] if same is None else np.flatnonzero(same == same[place]).tolist()
                cells = (design.cell(k) for k in where)
                entries += [replace(entry, cell=tuple(c.get(n, "") for n in names)) for c in cells]
        return APriori(tuple(entries), names)

    def _position(self, design: Design, entry: AprioriEntry, ignore_unknown: bool) -> int | None:
        names = self.variables or [axis.name for axis in design.axes]
        if len(entry.cell) != len(names):
            raise DataError(
                f"{_at_line(entry.line)}{len(entry.cell)} codes were given, but the table has "
                f"{len(names)} variables ({', '.join(names)})."
            )
        codes = {name: code for name, code in zip(names, entry.cell, strict=True) if code}
        try:
            return design.position(codes)
        except DiscreetError as error:
            if ignore_unknown:
                return None
            raise DataError(f"{_at_line(entry.line)}{error}") from error

    def text(self, separator: str = ",") -> str:
        """The text of an `.hst` file."""
        lines = []
        for entry in self.entries:
            codes = [
                f'"{code}"' if not code or separator in code or '"' in code else code
                for code in entry.cell
            ]
            numbers = (f"{n:g}" if n == round(n, 5) else repr(n) for n in entry.numbers)
            lines.append(separator.join([*codes, entry.word, *numbers]))
        return "".join(f"{line}\n" for line in lines)

    def write(self, path: str | Path, separator: str = ",") -> Path:
        """Write the `.hst` file."""
        return write_text(path, self.text(separator))


def read_apriori(source: str | Path, *, separator: str = ",") -> APriori:
    """The lines of an `.hst` file: codes, a word, and perhaps numbers.

    Args:
      source: The file, or its text when it is a string with a line break.
      separator: What stands between values.

    Raises:
      DataError: A line cannot be read; the message has its number.
    """
    entries = []
    for number, line in enumerate(source_text(source).splitlines(), start=1):
        if line.strip():
            values = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
            entries.append(_read_line([value.strip() for value in values], number, separator))
    return APriori(tuple(entries))


def _read_line(values: list[str], line: int, separator: str) -> AprioriEntry:
    """A line with as many numbers at its end as its word asks for."""
    # Fewest numbers first: a code may be called `c` or `pl`, but no number is a word.
    for numbers in (0, 1, 2):
        place = len(values) - 1 - numbers
        if place >= 1 and _NUMBERS.get(values[place].lower()) == numbers:
            return _entry(tuple(values[:place]), values[place], values[place + 1 :], line)
    raise DataError(
        f"line {line}: {separator.join(values)!r} does not end in one of {_MEANINGS}; is the "
        f"separator {separator!r}?"
    )


def _entry(cell: tuple[str, ...], word: str, numbers: Sequence[str], line: int) -> AprioriEntry:
    where, word = _at_line(line), word.lower()
    if _NUMBERS.get(word) != len(numbers):
        raise ParameterError(f"{where}{word!r} with {len(numbers)} numbers is none of {_MEANINGS}.")
    try:
        found = tuple(float(number) for number in numbers)
    except ValueError:
        raise DataError(f"{where}{' '.join(numbers)!r} are no numbers.") from None
    if any(not number >= 0 for number in found):
        raise DataError(f"{where}costs and protection levels must not be negative.")
    return AprioriEntry(cell, word, found, line)


def _at_line(number: int) -> str:
    return f"line {number}: " if number else ""
