"""What a publication calls its tables in each language: labels, titles, footnotes and words.

A language is a file `texts/nb.toml` beside the publication's:

    [publication]
    title = "Folk i kommunene"
    footnotes = ["Alle bosatte."]

    [tables."Age by region"]
    title = "Folk etter landsdel og alder"

    [variables]
    region = "Landsdel"

    [codes.region]
    N = "Nord"

    [units]
    turnover = "omsetning"

The first language of a publication has what data and publication say themselves. Another one must
be complete; what is missing is named. With `fallback = true` at its top, what is missing is said
as in the first language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet.design.base import Design
from discreet.design.formula import heading_of
from discreet.errors import DataError, ParameterError, check_known
from discreet.publication.plan import Publication
from discreet.release.cube import Cube, CubeAxis, axes_of
from discreet.release.formats.write import About
from discreet.release.language import ENGLISH, FOLDER, WORDS, Language, read_own
from discreet.release.notes import headed_methods, public_note
from discreet.tables.protected import PublicTable

_SECTIONS = ("publication", "tables", "variables", "codes", "units", "texts", "words", "fallback")
_NAMES = ("source", "licence", "contact")
"""Entries of [publication] that are often the same in every language."""
_MOST_NAMED = 8  # entries that a message lists
Entry = tuple[str, ...]
"""The place of an entry: its sections and its name."""
Entries = dict[Entry, Any]


@dataclass(frozen=True)
class Wording:
    """What things are called in one language."""

    language: Language  # sentences and words
    is_first: bool = True  # whether it is the publication's first language
    # The publication's file of this language, as plain data.
    own: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read_all(
        cls, publication: Publication, folder: Path, *, is_published: bool = False
    ) -> list[Wording]:
        """The languages of a publication, the first one first.

        What was published may say sentences of an earlier version, which stay English: it must be
        withdrawn all the same.
        """
        codes = publication.outlet.languages
        if not codes or len(set(codes)) < len(codes):
            raise ParameterError(f"languages must be named, each once; got {list(codes)}.")
        found: list[Wording] = []
        for code in codes:
            one = cls._read(code, folder, not found)
            other = Language(ENGLISH) if is_published else None
            if one.own.get("fallback", False):
                other = found[0].language if found else Language(ENGLISH)
            found.append(replace(one, language=replace(one.language, fallback=other, lost={})))
        return found

    @classmethod
    def _read(cls, code: str, folder: Path, is_first: bool) -> Wording:
        language, own = Language.read(code, folder), read_own(code, folder)
        check_known(f"section of {FOLDER}/{code}.toml", own, _SECTIONS)
        return cls(language, is_first, own)

    def missing(self, publication: Publication, axes: Sequence[CubeAxis], unit: str) -> Entries:
        """What the language's file lacks, with the texts of the first language."""
        if self.language.fallback is not None:
            return {}
        found, lost = dict(_entries_in(self.own)), Entries()
        if not self.is_first:  # which is that of data and publication
            needed = dict(_entries_of(publication, axes, unit))
            lost = {e: text for e, text in needed.items() if e not in found and _speaks(text)}
        words = () if self.language.code == ENGLISH else WORDS
        return lost | {("words", w): w for w in words if w not in self.language.words}

    def strange(self, publication: Publication, axes: Sequence[CubeAxis], unit: str) -> list[str]:
        """Entries of the language's file that name nothing, and footnotes of another number."""
        needed, said = dict(_entries_of(publication, axes, unit)), list[str]()
        for entry, text in _entries_in(self.own):
            if entry not in needed:
                said.append(f"names nothing: {_place(entry)}")
            elif isinstance(needed[entry], tuple) and len(needed[entry]) != len(text):
                said.append(f"{len(text)} instead of {len(needed[entry])}: {_place(entry)}")
        return said

    def translate(self, publication: Publication) -> Publication:
        """The publication with titles and footnotes in this language."""
        own = {name: _freeze(text) for name, text in self.own.get("publication", {}).items()}
        tables = self.own.get("tables", {})
        names = publication.margins if isinstance(publication.margins, Mapping) else {}
        told = {name: {**publication.told.get(name, {}), **tables.get(name, {})} for name in names}
        return replace(publication, outlet=replace(publication.outlet, **own), told=told)

    def complete(self, about: About, release: PublicTable) -> About:
        """What is told of a table, with notes, statement and words in this language."""
        say, word = self.language.say, self.language.word
        return replace(
            about,
            footnotes=tuple(map(self.language.say_if_known, about.footnotes)),
            notices=tuple(map(self.language.say_if_known, about.notices)),
            notes=tuple(text for text in [public_note(release, self.language)] if text),
            statement=say(release.statement.text),
            methods=headed_methods(release, self.language),
            language=self.language.code,
            words={each: word(each) for each in WORDS},
        )

    def label(self, cube: Cube) -> Cube:
        """A cube with the labels of this language."""
        return replace(cube, axes=tuple(map(self.label_axis, cube.axes)))

    def label_axis(self, axis: CubeAxis) -> CubeAxis:
        """A variable and its categories with their labels."""
        codes = self.own.get("codes", {}).get(axis.name, {})
        entries = tuple(
            replace(e, label=codes.get(e.code) or (self._word(e.label) if e.is_total else e.label))
            for e in axis.entries
        )
        label = self.own.get("variables", {}).get(axis.name, axis.label)
        return replace(axis, label=label, entries=entries)

    def measure(self, unit: str) -> str:
        """What figures are called; empty where that is their unit."""
        named = self.own.get("units", {}).get(unit) or self._word(unit)
        return "" if named == unit else str(named)

    def _word(self, text: str) -> str:
        """A word of files in this language; what data call something else stays as it is."""
        return self.language.word(text) if text in WORDS else text


@dataclass(frozen=True)
class WordingFaults:
    """What is wrong with the file of a language."""

    # Sections that it lacks, with the texts of the first language, as the file has them.
    missing: Mapping[str, Any]
    said: Sequence[str]  # everything in words


def wording_faults(
    publication: Publication, folder: Path, design: Design
) -> dict[str, WordingFaults]:
    """For each language what is wrong with its file, given the design of the tables."""
    axes = axes_of(design.require_variables("labels to be translated"))
    unit = publication.unit or publication.magnitude.get("value") or "count"
    found = {}
    for wording in Wording.read_all(publication, folder):
        _check_titles(wording.translate(publication), wording.language.code)
        missing = wording.missing(publication, axes, unit)
        said = [f"missing: {_place(entry)}" for entry in missing]
        said += wording.strange(publication, axes, unit)
        found[wording.language.code] = WordingFaults(_nest(missing), said)
    return found


def check_wordings(publication: Publication, folder: Path, design: Design) -> None:
    """Refuse languages that lack something, before anything is drawn."""
    for code, faults in wording_faults(publication, folder, design).items():
        if said := faults.said:
            more = len(said) - _MOST_NAMED
            listed = "; ".join(said[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
            raise DataError(
                f"{FOLDER}/{code}.toml does not fit the publication: {listed}. Complete it "
                "(`discreet check publication` lists all of it), or let it say `fallback = true` "
                "in its first line: what is missing is then as in the first language."
            )


def _check_titles(publication: Publication, code: str) -> None:
    """Refuse two tables of one title, which readers cannot tell from each other."""
    found: dict[str, str] = {}
    for name in publication.margins if isinstance(publication.margins, Mapping) else ():
        title = publication.told.get(name, {}).get("title") or name
        other = found.setdefault(title, name)
        if other != name:
            raise ParameterError(
                f"tables {other!r} and {name!r} have the same title in language {code!r}, "
                f"{title!r}: readers could not tell them from each other."
            )


def _nest(entries: Entries) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (*sections, name), text in entries.items():
        place = found
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = list(text) if isinstance(text, tuple) else text
    return found


def _entries_of(
    publication: Publication, axes: Sequence[CubeAxis], unit: str
) -> Iterator[tuple[Entry, Any]]:
    """Whatever can be translated, with its text in the first language; optional texts are empty."""
    outlet = publication.outlet
    yield ("publication", "title"), outlet.title
    yield ("publication", "footnotes"), outlet.footnotes
    yield from ((("publication", name), "") for name in _NAMES)
    if isinstance(publication.margins, Mapping):
        for name in publication.margins:
            told = publication.told.get(name, {})
            yield ("tables", name, "title"), told.get("title") or name
            yield ("tables", name, "footnotes"), tuple(told.get("footnotes", ()))
    if publication.time:
        yield ("variables", publication.time), heading_of(publication.time)
    for axis in axes:
        yield ("variables", axis.name), axis.label
        for entry in axis.entries:
            is_known = entry.is_total and entry.label in WORDS
            yield ("codes", axis.name, entry.code), "" if is_known else entry.label
    yield ("units", unit), "" if unit in WORDS else unit


def _entries_in(own: Mapping[str, Any]) -> Iterator[tuple[Entry, Any]]:
    """Entries of a language's file, sentences and words apart."""
    for section in ("publication", "variables", "units"):
        yield from (((section, name), text) for name, text in own.get(section, {}).items())
    for section in ("tables", "codes"):
        for group, entries in own.get(section, {}).items():
            yield from (((section, group, name), text) for name, text in entries.items())


def _speaks(text: str | tuple[str, ...]) -> bool:
    """Whether a text has anything to translate: `0-17` and `65+` are the same in every language."""
    return any(letter.isalpha() for letter in "".join(text))


def _place(entry: Entry) -> str:
    *sections, name = entry
    return f"[{'.'.join(sections)}] {name}"


def _freeze(text: Any) -> Any:
    return tuple(text) if isinstance(text, list) else text
