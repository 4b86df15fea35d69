"""Tables in files of every format: the file's name says which."""

from __future__ import annotations

import csv
import io
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from discreet import registry
from discreet.errors import ConfidentialError, ParameterError, check_known
from discreet.files import written_whole
from discreet.release.cube import ABSENT, Cube
from discreet.tables.protected import PublicTable

Layout = Literal["long", "wide"]
Labels = Literal["codes", "labels", "both"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
LABELS: tuple[Labels, ...] = get_args(Labels)
SEPARATORS = (",", ";", "\t", " ")


@dataclass(frozen=True)
class About:
    """What readers are told of a table beside its figures; parts that are empty are left out.

    Attributes:
      title: What the table shows.
      name: A short name for programs.
      source: Who made the figures.
      licence: The terms of use.
      contact: Who answers questions.
      edition: The edition of the data set.
      updated: The day of the edition, `2026-11-16`.
      address: Where the table can be asked for again.
      citation: How the table is cited.
      notes: What was done to the figures, in plain words; the statement's own where it is empty.
      footnotes: What readers must know of the data.
      notices: What became of the edition; footnotes begin with it.
      statement: The statement for methodologists; the release's own, in English, where it is empty.
      methods: The methods note in place of the statement: headings, each with its paragraphs.
      language: The language of titles, labels and notes.
      words: Headings and meanings of symbols in this language; English ones stand for themselves.
    """

    title: str = ""
    name: str = "table"
    source: str = ""
    licence: str = ""
    contact: str = ""
    edition: str = ""
    updated: str = ""
    address: str = ""
    citation: str = ""
    notes: tuple[str, ...] = ()
    footnotes: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    statement: str = ""
    methods: tuple[tuple[str, tuple[str, ...]], ...] = ()
    language: str = "en"
    words: Mapping[str, str] = field(default_factory=dict, hash=False)

    def said(self, cube: Cube) -> Iterator[tuple[str, str]]:
        """Everything that is known of the table, as pairs of a heading and a text."""
        yield from self.told(cube)
        yield from ((heading, " ".join(texts)) for heading, texts in self.methods_of(cube))

    def methods_of(self, cube: Cube) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Headings with paragraphs for methodologists; the statement where nothing else is said."""
        statement = self.statement_of(cube)
        return self.methods or (((self.word("Statement"), (statement,)),) if statement else ())

    def told(self, cube: Cube) -> Iterator[tuple[str, str]]:
        """Title, source, notes and the like, as pairs of a heading and a text."""
        named: dict[str, str | tuple[str, ...]] = {
            "Title": self.title,
            "Source": self.source,
            "Edition": self.edition,
            "Updated": self.updated,
            "Licence": self.licence,
            "Contact": self.contact,
            "Address": self.address,
            "Citation": self.citation,
        }
        named |= {"Note": self.plain_notes(cube), "Footnote": self.footnotes}
        for heading, texts in named.items():
            for text in [texts] if isinstance(texts, str) else texts:
                if text:
                    yield self.word(heading), text

    @property
    def imprint(self) -> str:
        """What stands under a title: who made the figures, and of which edition they are."""
        edition = self.edition and f"{self.word('Edition')} {self.edition}"
        return " · ".join(text for text in (self.source, edition, self.updated) if text)

    def word(self, word: str) -> str:
        """A word of the file in its language."""
        return self.words.get(word, word)

    def statement_of(self, cube: Cube) -> str:
        """The statement for methodologists."""
        return self.statement or cube.statement.text

    def plain_notes(self, cube: Cube) -> tuple[str, ...]:
        """The notes, or what the statement says in plain words."""
        return self.notes or tuple(text for text in [cube.statement.plain] if text)


@dataclass(frozen=True)
class Options:
    """How a cube is written.

    Attributes:
      layout: `"long"`, a row per cell, or `"wide"`, rows and columns as on a page; what suits the
        format if absent.
      labels: Whether categories stand with their codes, their labels, or both.
      columns: The variables in columns of a wide table; the last one if empty.
      measure: The name of the figures, `"count"` or `"row per cent"`; the cube's unit if empty.
      separator: What stands between the fields of a CSV file.
      file: The name or address of the file, where it is known; the metadata of a CSV file name it.
      dataflow: The SDMX data flow, `EXAMPLE:TURNOVER(1.0)`; one is made of the name if empty.
      time: The variable of periods, where there is one.
      about: What readers are told beside the figures.
      others: The same table in further languages, for formats whose file holds several.
    """

    layout: Layout | None = None
    labels: Labels | None = None
    columns: tuple[str, ...] = ()
    measure: str = ""
    separator: str = ","
    file: str = ""
    dataflow: str = ""
    time: str = ""
    about: About = field(default_factory=About)
    others: tuple[TablePage, ...] = ()

    def __post_init__(self) -> None:
        _check("layout", self.layout, (None, *LAYOUTS))
        _check("labels", self.labels, (None, *LABELS))
        _check("separator", self.separator, SEPARATORS)

    def with_defaults(self, layout: Layout, labels: Labels) -> Options:
        """These options, with what suits a format where nothing was asked for."""
        return replace(self, layout=self.layout or layout, labels=self.labels or labels)

    def measure_of(self, cube: Cube) -> str:
        """What the figures are called."""
        return self.measure or cube.unit


def _check(name: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(v) for v in allowed if v)
        raise ParameterError(f"{name} cannot be {value!r}; it is one of {listed}.")


PLAIN = Options()
"""What is written when nothing is asked for."""


@dataclass(frozen=True, eq=False)
class TablePage:
    """One table of several: its name, its figures, and how it is written.

    The name is empty for a table that stands alone.
    """

    name: str
    cube: Cube
    options: Options = PLAIN


@dataclass(frozen=True, eq=False)
class TableBook:
    """All tables of a folder in one language, and what is told of them together."""

    pages: Sequence[TablePage]
    options: Options = PLAIN


class Writer(Protocol):
    """What turns a cube into the content of a file.

    Attributes:
      name: The format's name.
      title: Its name for readers.
      ending: The ending of a file's name, `.csv`.
      media_type: What the format is called on the web.
    """

    name: str
    title: str
    ending: str
    media_type: str

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content; what is not asked for is as it suits the format."""


def writers() -> list[Writer]:
    """Every registered format."""
    texts = ("name", "title", "ending", "media_type")
    return [*registry.each("format", texts=texts, calls=("write",)).values()]


def writer_named(name: str) -> Writer:
    """The writer of a format."""
    found: Writer = registry.build("format", name)
    return found


def writer_of(path: str | Path) -> Writer:
    """The writer whose ending a file's name has; `.sdmx.csv` is looked for before `.csv`."""
    name = Path(path).name.lower()
    known = sorted(writers(), key=lambda writer: -len(writer.ending))
    for writer in known:
        if name.endswith(writer.ending):
            return writer
    listed = ", ".join(sorted(writer.ending for writer in known))
    raise ParameterError(f"cannot write {name!r}: the name must end in one of {listed}.")


def write(
    release: PublicTable, path: str | Path, format: str | Sequence[str] = (), **given: Any
) -> Path:
    """Write the published cells of a release; see `Release.write`."""
    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    formats = (format,) if isinstance(format, str) else tuple(format)
    options, target = options_of(given), Path(path)
    if formats:
        book = TableBook(pages_of(release, options), options)
        contents = {target / n: c for n, c in folder_files([book], formats).items()}
        target.mkdir(parents=True, exist_ok=True)
    else:
        contents = _single_file(release, target, replace(options, file=target.name))
    for name, content in contents.items():
        with written_whole(name) as temporary:
            temporary.write_bytes(content)
    return target


def _single_file(release: PublicTable, path: Path, options: Options) -> dict[Path, bytes]:
    """The content of a file, and of those beside it; several tables only where they have room."""
    writer, pages = writer_of(path), pages_of(release, options)
    if len(pages) > 1 and hasattr(writer, "write_tables"):
        return {path: writer.write_tables(pages, options)}
    if len(pages) > 1 and (writer.name in _ONE_TABLE or options.layout == "wide"):
        raise ParameterError(
            f"the release has {len(pages)} tables, and {path.name} holds one. Write a folder with "
            f"a file for each, `release.write({path.stem!r}, format={writer.name!r})`, or one "
            f"table, `release[{pages[0].name!r}].write({path.name!r})`."
        )
    cube = pages[0].cube if len(pages) == 1 else Cube.of(release)
    return {target: each.write(cube, options) for target, each in files_of(path)}


_ONE_TABLE = ("px", "json-stat")  # formats whose file is one full crossing
_CODES_ALONE = ("csv", "sdmx-csv")  # formats that have codes and no labels unless asked for
INDEX = "index.csv"
"""The file of a folder that lists the others."""


def pages_of(
    release: PublicTable, options: Options, told: Mapping[str, About] | None = None
) -> list[TablePage]:
    """Each table of a release as it is written, with what is told of it alone.

    Args:
      release: The release.
      options: Options of all tables.
      told: What is told of single tables, by their names.
    """
    design = release.design.over_variables
    if design is None or len(design.tables) < 2:
        about = next(iter((told or {}).values()), options.about)
        return [TablePage("", Cube.of(release), replace(options, about=about))]
    pages, stems = [], file_stems(design.tables)
    for name, terms in design.tables.items():
        part = design.part(terms)
        status = None if release.status is None else release.status[part.cells]
        taken = PublicTable(
            part.design, release.z[part.cells], release.statement, release.unit, status=status
        )
        about = (told or {}).get(name) or replace(
            options.about, title=name, name=stems[name], footnotes=()
        )
        columns = tuple(c for c in options.columns if c in [axis.name for axis in part.design.axes])
        own = replace(options, about=about, columns=columns)
        pages.append(TablePage(name, Cube.of(taken), own))
    return pages


def folder_files(books: Sequence[TableBook], formats: Sequence[str]) -> dict[str, bytes]:
    """The files of a folder by name: one for each table and format, a workbook, and the index.

    Args:
      books: The tables in each language. Files of the first have plain names, `age.px`, others that
        of their language, `age.nb.xlsx`. A format that holds several languages has one file, and
        one of codes alone is the same in all; its labels stand in a further file per language.
      formats: Formats by name.
    """
    first, found = books[0], dict[str, bytes]()
    taken = [Path(INDEX).stem, *(page.options.about.name for page in first.pages)]
    if twice := [name for name in taken if taken.count(name) > 1]:
        raise ParameterError(
            f"two files of the folder would be called {twice[0]!r}, the name of the index or of "
            "another table; give the table another name."
        )
    rows: list[tuple[str, ...]] = [("table", "format", "file", "cells", "language")]
    for writer in map(writer_named, formats):
        for part, book, labels in _parts(writer, books):
            about = book.options.about
            if hasattr(writer, "write_tables"):
                name = f"{about.name}{part}{writer.ending}"
                found[name] = writer.write_tables(book.pages, book.options)
                rows.append(_index_row(about, writer, name, book.pages))
                continue
            for k, page in enumerate(book.pages):
                name = f"{page.options.about.name}{part}{writer.ending}"
                others = tuple(other.pages[k] for other in books[1:])
                options = replace(page.options, file=name, labels=labels or page.options.labels)
                for target, each in files_of(name):
                    found[target.name] = each.write(page.cube, replace(options, others=others))
                rows.append(_index_row(page.options.about, writer, name, [page]))
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return {**found, INDEX: text.getvalue().encode("utf-8")}


def _parts(
    writer: Writer, books: Sequence[TableBook]
) -> Iterator[tuple[str, TableBook, Labels | None]]:
    """For each file of a table what its name says of the language, its book, and its labels."""
    is_coded = writer.name in _CODES_ALONE
    yield "", books[0], None
    if len(books) > 1 and not hasattr(writer, "languages"):
        for book in books if is_coded else books[1:]:
            yield f".{book.options.about.language}", book, "both" if is_coded else None


def _index_row(
    about: About, writer: Writer, name: str, pages: Sequence[TablePage]
) -> tuple[str, ...]:
    cells = sum(int((page.cube.status != ABSENT).sum()) for page in pages)
    return (about.title or about.name, writer.name, name, str(cells), about.language)


def file_stem(name: str) -> str:
    """A table's name as that of a file: small letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "table"


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """File names of tables that lie in one folder: equal ones are numbered, the index is spared."""
    plain = {name: file_stem(name) for name in names}
    found: dict[str, str] = {}
    used = {Path(INDEX).stem}
    for name, stem in plain.items():
        # a number must not take the name that another table has by itself: "a", "A", "a 2"
        numbered = (f"{stem}-{k}" for k in itertools.count(2))
        free = (s for s in numbered if s not in used and s not in plain.values())
        found[name] = next(free) if stem in used else stem
        used.add(found[name])
    return found


def files_of(path: str | Path) -> list[tuple[Path, Writer]]:
    """The files that belong to one of this name, with their writers: itself, and what lies beside.

    Beside a CSV file lie its metadata. A format says so by `beside`, names of other formats.
    """
    target, writer = Path(path), writer_of(path)
    stem = target.name[: -len(writer.ending)]
    others = [writer_named(name) for name in getattr(writer, "beside", ())]
    return [(target, writer), *((target.with_name(stem + w.ending), w) for w in others)]


def options_of(given: dict[str, Any]) -> Options:
    """Options by their names, those of `About` among them."""
    known = [*Options.__dataclass_fields__, *About.__dataclass_fields__]
    check_known("option", given, known)
    said = {k: v for k, v in given.items() if k in About.__dataclass_fields__}
    rest = {k: v for k, v in given.items() if k not in said}
    return Options(**rest, about=About(**said))
