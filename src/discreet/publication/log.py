"""The confidential log of an edition: what the office keeps of it, and what to watch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import __version__
from discreet.files import OWNER_ONLY, written_whole
from discreet.publication.drawing import Place, data_set_of, ledger_of, log_file
from discreet.publication.plan import Publication
from discreet.publication.wording import Wording
from discreet.release.language import ENGLISH, Language

if TYPE_CHECKING:
    from discreet.facade.release import Release


def write_log(
    publication: Publication, place: Place, release: Release, broken: Mapping[str, str]
) -> Path:
    """What the office keeps: what was published of which records, and what to watch."""
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
    path = log_file(publication, place.base, edition)
    with written_whole(path, OWNER_ONLY) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return path
