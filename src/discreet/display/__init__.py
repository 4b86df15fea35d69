"""What objects show of themselves: one page of HTML for notebooks, one layout of text columns.

An object says what there is to see as plain data, a `Display`; the templates beside this module
make HTML of it. Texts are escaped there, and nowhere else.
"""

from __future__ import annotations

import io
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jinja2 import Environment, Template

Side = Literal["public", "confidential", ""]
Line = str | tuple[str, Sequence[str]]
"""A sentence, or a heading with its sentences."""
_WIDE = 100_000  # of a text without line breaks: the reader's own terminal breaks it


@dataclass(frozen=True)
class Heading:
    """The heading of a row or a column, which may be a part of another one."""

    text: str  # what stands there; escaped when it is shown
    depth: int = 0  # how far it is set in
    above: tuple[int, ...] = ()  # places of the headings it lies under, the nearest last


@dataclass(frozen=True)
class Mark:
    """A figure with a shade between 0 and 1 behind it, or a sign in place of a figure."""

    text: str
    meaning: str = ""
    shade: float = 0.0


@dataclass(frozen=True)
class Grid:
    """Figures by rows and columns, each of them a list or a tree that can be folded."""

    rows: Sequence[Heading]  # headings of the rows
    columns: Sequence[Heading]  # headings of the columns
    cells: Sequence[Sequence[str | Mark]]  # the figures, row by row
    caption: str = ""  # what the table is
    corner: str = ""  # what the headings of the rows are
    unfolded: tuple[int, int] = (99, 99)  # above which depth rows and columns stand open at first
    left: Container[int] = ()  # columns that hold words
    note: str = ""  # what is left out

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[str]], caption: str = "", right: Container[int] = ()
    ) -> Grid:
        """A plain table from its lines, the header first; columns on the right hold numbers."""
        head, *body = rows
        left = [j - 1 for j in range(1, len(head)) if j not in right]
        return cls(
            [Heading(line[0]) for line in body],
            [Heading(text) for text in head[1:]],
            [list(line[1:]) for line in body],
            caption,
            head[0],
            left=left,
        )

    def parents(self, side: int) -> list[int]:
        """Places of the rows (0) or columns (1) that have others under them."""
        return sorted({k for heading in (self.rows, self.columns)[side] for k in heading.above})


@dataclass(frozen=True)
class Display:
    """What there is to see of an object."""

    title: str  # what it is
    side: Side = ""  # whether everybody may see it
    facts: Mapping[str, str] | Sequence[tuple[str, str]] = ()  # names and values
    grids: Sequence[Grid] = ()  # tables
    lines: Sequence[Line] = ()  # sentences
    note: str = ""  # the short note for readers

    @property
    def listed_facts(self) -> list[tuple[str, str]]:
        """Names and values that are not empty."""
        facts = self.facts.items() if isinstance(self.facts, Mapping) else self.facts
        return [(name, value) for name, value in facts if value]

    @property
    def blocks(self) -> Iterator[tuple[str, Sequence[str]]]:
        """Sentences under their headings."""
        for line in self.lines:
            yield ("", [line]) if isinstance(line, str) else line


class Displayed:
    """Something that notebooks show: it gives a `Display`, this class the HTML."""

    def _display(self) -> Display:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return render(self._display())


def render(display: Display) -> str:
    """A display as a piece of HTML, without scripts and without anything from elsewhere."""
    return _template().render(display=display)


@cache
def _template() -> Template:
    return environment("discreet.display").get_template("display.html")


def environment(*packages: str) -> Environment:
    """The templates of packages, the first of a name; whatever is put into one is escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        auto_reload=False,  # nobody edits templates under a running site: a look at each takes time
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def align_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Columns under each other; some of them to the right. Wide letters take their two places."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    for j in range(len(rows[0])):
        grid.add_column(justify="right" if j in right else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    page = io.StringIO()
    options: dict[str, Any] = {"color_system": None, "force_terminal": False, "width": _WIDE}
    Console(file=page, force_jupyter=False, **options).print(grid)
    return [line.rstrip() for line in page.getvalue().splitlines()]
