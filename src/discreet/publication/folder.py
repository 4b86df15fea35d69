"""The files of an edition: its tables in every format and language, notes, series, and the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import __version__
from discreet.design.formula import heading_of
from discreet.files import OWNER_ONLY, write_text
from discreet.publication.drawing import Place, data_set_of, ledger_of, log_file
from discreet.publication.plan import Publication
from discreet.publication.wording import Wording
from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.release.formats.write import (
    About,
    Options,
    TableBook,
    TablePage,
    file_stem,
    file_stems,
    folder_files,
    pages_of,
)
from discreet.release.language import ENGLISH, FOLDER, Language
from discreet.release.notes import notes_files

if TYPE_CHECKING:
    from discreet.facade.release import Release

_BEGINS = "The series begins with ", ": variables or codes were others before."


def edition_files(
    publication: Publication,
    release: Release,
    edition: str,
    notices: Sequence[str],
    folder: Path,
    *,
    is_published: bool = False,
) -> dict[str, bytes]:
    """The files of an edition by name, but release, series and manifest.

    Languages of its own lie in the folder, and are copied to the edition; `is_published` says
    that the folder is an edition's.
    """
    wordings = Wording.read_all(publication, folder, is_published=is_published)
    books = [_book(publication, release, edition, notices, wording) for wording in wordings]
    found = folder_files(books, publication.outlet.formats)
    for wording, book in zip(wordings, books, strict=True):
        found |= notes_files(release, book.options.about, wording.language)
        wording.language.check_complete(folder)
    for code in publication.outlet.languages:
        if (path := folder / FOLDER / f"{code}.toml").is_file():
            found[f"{FOLDER}/{path.name}"] = path.read_bytes()
    return found


def _book(
    publication: Publication,
    release: Release,
    edition: str,
    notices: Sequence[str],
    wording: Wording,
) -> TableBook:
    """All tables in one language."""
    plan = wording.translate(publication)
    about = wording.complete(_about(plan, edition, notices), release)
    told = {
        name: wording.complete(each, release)
        for name, each in _about_by_table(plan, release, edition, notices).items()
    }
    options = Options(about=about, measure=wording.measure(release.unit))
    pages = pages_of(release, options, told)
    return TableBook([replace(p, cube=wording.label(p.cube)) for p in pages], options)


def _about(publication: Publication, edition: str, notices: Sequence[str]) -> About:
    outlet = publication.outlet
    return About(
        title=outlet.title or outlet.name,
        name=file_stem(outlet.name),
        source=outlet.source,
        licence=outlet.licence,
        contact=outlet.contact,
        edition=edition,
        footnotes=(*notices, *outlet.footnotes),
        notices=tuple(notices),
    )


def _about_by_table(
    publication: Publication, release: Release, edition: str, notices: Sequence[str]
) -> dict[str, About]:
    about, stems = _about(publication, edition, notices), file_stems(release.tables)
    return {
        name: replace(
            about,
            title=publication.told.get(name, {}).get("title") or name,
            name=stems[name],
            footnotes=(*about.footnotes, *publication.told.get(name, {}).get("footnotes", ())),
        )
        for name in release.tables
    }


@dataclass(frozen=True)
class Series:
    """Tables over periods."""

    files: Mapping[str, bytes]  # their files by name
    # For each table whose variables or codes changed, the first period of its series.
    broken: Mapping[str, str]


def series_files(
    publication: Publication,
    releases: Mapping[str, Release],
    edition: str,
    folder: Path,
    notices: Sequence[str] = (),
    *,
    is_published: bool = False,
) -> Series:
    """Each table over the periods of releases, without a total over them.

    Where variables or codes of a table changed, its series begins after the change, and a footnote
    of the series says so. Releases come by their periods, in order; the last one is this edition's.
    Notices tell what became of editions since; the folder is as for `edition_files`.
    """
    name, release = publication.time, [*releases.values()][-1]
    by_period = {period: _cubes(each) for period, each in releases.items()}
    stacked = {table: _stack(by_period, table, name) for table in release.tables}
    begins = {table: cube.axis(name).codes[0] for table, cube in stacked.items()}
    broken = {table: period for table, period in begins.items() if period != [*releases][0]}
    begun = {table: (f"{_BEGINS[0]}{period}{_BEGINS[1]}",) for table, period in broken.items()}
    books = []
    for wording in Wording.read_all(publication, folder, is_published=is_published):
        plan, measure = wording.translate(publication), wording.measure(release.unit)
        pages = []
        for table, about in _about_by_table(plan, release, edition, notices).items():
            told = replace(about, footnotes=(*begun.get(table, ()), *about.footnotes))
            options = Options(about=wording.complete(told, release), measure=measure, time=name)
            pages.append(TablePage(table, wording.label(stacked[table]), options))
        about = wording.complete(_about(plan, edition, notices), release)
        books.append(TableBook(pages, Options(about=about)))
        wording.language.check_complete(folder)
    return Series(folder_files(books, publication.outlet.formats), broken)


def _cubes(release: Release) -> dict[str, Cube]:
    alone = next(iter(release.tables))  # the name of a table that stands alone
    return {page.name or alone: page.cube for page in pages_of(release, Options())}


def _stack(by_period: Mapping[str, Mapping[str, Cube]], table: str, name: str) -> Cube:
    """A table over the last periods in which it has the variables and codes of the newest one."""
    kept: dict[str, Cube] = {}
    for period in reversed([*by_period]):
        cube = by_period[period].get(table)
        if cube is None or (kept and _codes(cube) != _codes([*kept.values()][0])):
            break
        kept[period] = cube
    entries = tuple(CubeEntry(code, code, 1, is_sum=False) for code in reversed([*kept]))
    axis = CubeAxis(name, heading_of(name), entries)
    series = Cube.stack(axis, [*kept.values()][::-1])
    return replace(series, axes=(*[*kept.values()][0].axes, axis))  # labels as they are now


def _codes(cube: Cube) -> list[tuple[str, tuple[str, ...]]]:
    return [(axis.name, axis.codes) for axis in cube.axes]


def write_log(
    publication: Publication, place: Place, release: Release, broken: Mapping[str, str]
) -> Path:
    """The confidential log: what was published of which records, and what to watch."""
    language = Wording.read_all(publication, place.base)[0].language
    language = replace(language, fallback=Language(ENGLISH))  # the office reads it, nobody else
    say, edition = language.say, place.edition
    ledger = ledger_of(publication, place.base)
    data_set = data_set_of(publication, edition)
    rows = [] if ledger is None else ledger.rows()
    rows = [r for r in rows if (r.get("name"), r.get("edition")) == (data_set.name, edition)]
    head = [language.word(word) for word in ("table", "cells", "not shown")]
    lines = [
        f"# {publication.outlet.title or publication.outlet.name}, {edition}",
        "",
        say("CONFIDENTIAL. For the office alone."),
        "",
        f"discreet {__version__}; {publication.data.get('source')}.",
        *place.notices,
        "",
        f"| {' | '.join(head)} |",
        "|---|---|---|",
    ]
    for name in release.tables:
        part = release[name]
        lines.append(f"| {name} | {part.design.n_published:,} | {int(part.hidden.sum()):,} |")
    lines += ["", say(f"Entries of this edition in the ledger: {len(rows)}."), ""]
    for name, period in broken.items():
        lines += [say(f"The series of {name!r} begins with {period}, since codes changed."), ""]
    lines += [f"## {say('What to watch')}", "", say(release.statement.office), ""]
    return write_text(log_file(publication, place.base, edition), "\n".join(lines), OWNER_ONLY)
