"""Editions of a publication in files: written beside, checked, and renamed at the end.

An edition is a folder with tables, notes, the release itself and a manifest. It appears whole or
not at all. The ledger is written before anybody gets a figure, so a run that is killed has counted
too much and never too little; the next run goes on with the release that was drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.design.codes import natural_order
from discreet.errors import DataError, ParameterError
from discreet.facade.opening import open as open_records
from discreet.facade.table import read_release
from discreet.files import EVERYONE, OWNER_ONLY, written_whole
from discreet.ledger import Ledger
from discreet.publication import Outlet, Publication
from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.release.formats.write import (
    About,
    Options,
    TablePage,
    file_stem,
    file_stems,
    folder_files,
    page_files,
    pages_of,
    writer_named,
)
from discreet.tables.truth import DataSet

if TYPE_CHECKING:
    from discreet.facade.release import Release

RELEASE, MANIFEST, SERIES = "release.parquet", "manifest.json", "series"
"""Files of an edition: the release itself, what the folder holds, and series over editions."""
_HIDDEN, _OPEN = 0o700, 0o755  # folders before and after they are published
_PATHS = ("source", "codes", "secret", "ledger", "keys", "random_keys", "metadata")


@dataclass(frozen=True)
class PublishedEdition:
    """An edition that was published.

    Attributes:
      folder: Its files.
      log: The confidential log.
      edition: Its name.
      release: The release.
    """

    folder: Path
    log: Path
    edition: str
    release: Release


@dataclass(frozen=True)
class _Place:
    """Where an edition stands: its folder, name and period, which one it corrects, and why."""

    base: Path
    edition: str
    period: str
    corrects: str | None
    reason: str


def publish(
    publication: Publication,
    base: str | Path,
    *,
    edition: str | None = None,
    corrects: str | None = None,
    reason: str = "",
    again: bool = False,
) -> PublishedEdition:
    """Publish an edition: tables, notes, release and manifest, and a confidential log.

    Promise: the folder of the edition is there with everything in it, or not at all, wherever the
    run is interrupted. A second run after an interruption publishes the figures of the first, also
    where titles, footnotes, languages or formats were mended in between. That needs records and
    codes in plain files, which can be compared: of a database or a folder the figures are drawn
    again, and a private budget is paid again.

    Args:
      publication: What is published.
      base: The folder of its file; paths are relative to it.
      edition: The edition, where `[data]` does not name it.
      corrects: The edition that this one takes the place of.
      reason: What was wrong with it.
      again: As for `Table.protect`.
    """
    base = Path(base)
    if corrects is not None and not reason.strip():
        raise ParameterError("a correction needs a reason that readers are told: --reason.")
    named = edition or publication.data.get("edition")
    if not named:
        raise ParameterError("an edition needs a name: [data] edition, or --edition 2026-1.")
    target = base / publication.outlet.folder / str(named)
    _check_name(str(named))
    kept = _origin_file(publication, base, str(named))
    if target.exists() and kept.is_file() and _manifest(target).get("corrects") == corrects:
        _finish(target, kept)  # a run was killed after the rename
        release = read_release(target / RELEASE)
        return PublishedEdition(target, kept.with_name(f"{named}.md"), str(named), release)
    if target.exists():
        raise DataError(
            f"edition {named} is published already, in {target}. A corrected one has a name of its "
            f"own: discreet publish --edition {named}-r1 --corrects {named} --reason '…'."
        )
    before = None if corrects is None else _require_edition(target.with_name(corrects))
    period = str(named) if before is None else _manifest(before)["period"]
    staging = target.with_name(f".{named}.part")
    _check_outlet(publication, base)
    release = _drawn_release(publication, base, str(named), staging, again)
    notices = () if corrects is None else (f"This edition replaces edition {corrects}: {reason}",)
    data_set = _data_set(publication, base, str(named))
    _enter_correction(publication, base, data_set, corrects, reason)
    _stage(
        staging, publication, release, _Place(base, str(named), period, corrects, reason), notices
    )
    log = _write_log(publication, base, str(named), release, notices)
    _rename(staging, target)
    _finish(target, kept)
    return PublishedEdition(target, log, str(named), release)


def withdraw(publication: Publication, base: str | Path, edition: str, reason: str) -> Path:
    """Withdraw a published edition: an entry in the ledger, and a notice in its files."""
    if not reason.strip():
        raise ParameterError("a withdrawal needs a reason that readers are told: --reason.")
    folder = _require_edition(Path(base) / publication.outlet.folder / edition)
    if (ledger := _ledger(publication, Path(base))) is not None:
        ledger.withdraw(_data_set(publication, Path(base), edition), reason)
    _renew(folder, f"This edition was withdrawn: {reason}")
    return folder


def republish(folder: str | Path, out: str | Path) -> Path:
    """Make the files of a published edition again, with the figures it had.

    Raises:
      DataError: Files would differ from those that were published; the message names the version
        that makes them.
    """
    source = _require_edition(Path(folder))
    manifest = _manifest(source)
    release = read_release(source / RELEASE)
    publication = Publication.from_dict(manifest["publication"])
    files = edition_files(publication, release, manifest["edition"], manifest["notices"], source)
    changed = [
        name for name, content in files.items() if manifest["files"].get(name) != _digest(content)
    ]
    if changed and manifest["version"] != __version__:
        raise DataError(
            f"{', '.join(changed[:3])} would differ from what was published. The edition was made "
            f"by version {manifest['version']}, this is {__version__}: install discreet=="
            f"{manifest['version']}."
        )
    if changed:
        raise DataError(f"{source} was changed since it was published: {', '.join(changed[:3])}.")
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        with written_whole(target / name) as temporary:
            temporary.write_bytes(content)
    return target


def edition_files(
    publication: Publication, release: Release, edition: str, notices: Any, folder: Path
) -> dict[str, bytes]:
    """The files of an edition by name, but release, series and manifest.

    Languages of its own lie in the folder, and are copied to the edition.
    """
    from discreet.release.notes import notes_files  # start-up time: only publications write notes

    about = _about(publication, edition, tuple(notices))
    options = Options(about=about)
    found = folder_files(
        release, publication.outlet.formats, options, _about_by_table(publication, release, about)
    )
    languages = publication.outlet.languages
    own = {path.name: path for code in languages if (path := folder / f"{code}.toml").is_file()}
    found |= {name: path.read_bytes() for name, path in own.items()}
    return found | notes_files(release, about, languages, folder)


def _about(publication: Publication, edition: str, notices: tuple[str, ...]) -> About:
    outlet = publication.outlet
    return About(
        title=outlet.title or outlet.name,
        name=file_stem(outlet.name),
        source=outlet.source,
        licence=outlet.licence,
        contact=outlet.contact,
        edition=edition,
        footnotes=(*notices, *outlet.footnotes),
        language=outlet.languages[0],
    )


def _about_by_table(publication: Publication, release: Release, about: About) -> dict[str, About]:
    stems = file_stems(release.tables)
    return {
        name: replace(
            about,
            title=publication.told.get(name, {}).get("title") or name,
            name=stems[name],
            footnotes=(*about.footnotes, *publication.told.get(name, {}).get("footnotes", ())),
        )
        for name in release.tables
    }


def _drawn_release(
    publication: Publication, base: Path, edition: str, staging: Path, again: bool
) -> Release:
    """The release that an interrupted run has drawn of the same records, or a new one.

    What noise from the operating system has cost is entered in the ledger; so it must not be drawn
    again where the first draw is there.
    """
    origin = _origin(publication, base, edition)
    kept = _origin_file(publication, base, edition)
    is_drawn = (staging / RELEASE).is_file() and kept.is_file()
    if origin and is_drawn and kept.read_text(encoding="utf-8") == origin:
        return read_release(staging / RELEASE)
    kept.unlink(missing_ok=True)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=_HIDDEN, parents=True)  # it lies in a public folder
    release = publication.run(_records(publication, base, edition), again=again)
    release.save(staging / RELEASE)
    with written_whole(kept, OWNER_ONLY) as temporary:
        temporary.write_text(origin, encoding="utf-8")
    return release


def _check_outlet(publication: Publication, base: Path) -> None:
    """Read languages and formats before anything is drawn, and perhaps paid for."""
    from discreet.release.notes import Language  # start-up time: only publications write notes

    for code in publication.outlet.languages:
        Language.read(code, base)
    for name in publication.outlet.formats:
        writer_named(name)


def _origin_file(publication: Publication, base: Path, edition: str) -> Path:
    """Of which publication and records a release was drawn that waits; never among public files."""
    folder = base / publication.outlet.log
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f".{edition}.origin"


def _records(publication: Publication, base: Path, edition: str) -> Any:
    given = dict(publication.data)
    if "source" not in given:
        raise ParameterError("the publication has no [data] with a source.")
    for name in _PATHS:
        if isinstance(given.get(name), str) and _is_local(given[name]):
            given[name] = str(base / given[name])
    return open_records(given.pop("source"), **{**given, "edition": edition})


def _is_local(text: str) -> bool:
    return "://" not in text and not text.startswith("::")


def _origin(publication: Publication, base: Path, edition: str) -> str:
    """What a release is drawn of: publication, edition and records; empty where that is unknown."""
    drawn = replace(publication, outlet=Outlet(), told={}).to_dict()  # no figure depends on these
    found = hashlib.sha256(json.dumps([drawn, edition], sort_keys=True).encode())
    for name in ("source", "codes"):
        text = publication.data.get(name)
        if text is None:
            continue
        path = base / str(text)
        if not _is_local(str(text)) or not path.is_file():
            return ""
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _stage(
    staging: Path,
    publication: Publication,
    release: Release,
    place: _Place,
    notices: tuple[str, ...],
) -> None:
    """Write all files beside the place where they will stand, the manifest last."""
    os.chmod(staging, _HIDDEN)
    files = edition_files(publication, release, place.edition, notices, place.base)
    for name, content in files.items():
        (staging / name).write_bytes(content)
    if publication.outlet.time:
        series = _series_files(publication, release, place)
        (staging / SERIES).mkdir(exist_ok=True)
        for name, content in series.items():
            (staging / SERIES / name).write_bytes(content)
    told: dict[str, Any] = {
        "edition": place.edition,
        "period": place.period,
        "notices": list(notices),
    }
    told |= {"corrects": place.corrects, "reason": place.reason, "valid": True}
    _write_manifest(staging, publication, files, told)


def _write_manifest(
    folder: Path, publication: Publication, files: Mapping[str, bytes], told: Mapping[str, Any]
) -> None:
    """What the folder holds; `told` says which edition it is and what became of it."""
    public = replace(publication, data={})  # where records lie is nobody's business
    manifest = {
        "format": 1,
        **told,
        "version": __version__,
        "publication": public.to_dict(),
        "release": _digest((folder / RELEASE).read_bytes()),
        "files": {name: _digest(content) for name, content in files.items()},
    }
    with written_whole(folder / MANIFEST) as temporary:
        text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
        temporary.write_text(text + "\n", encoding="utf-8")


def _series_files(publication: Publication, release: Release, place: _Place) -> dict[str, bytes]:
    """Each table over all published editions that are valid, without a total over them."""
    name = publication.outlet.time
    folders = (place.base / publication.outlet.folder).glob("[!.]*")
    published = {f.name: (f, _manifest(f)) for f in folders if (f / MANIFEST).is_file()}
    corrected = {place.corrects, *(told.get("corrects") for _, told in published.values())}
    newest: dict[str, Path] = {}
    for edition in natural_order(published):
        folder, told = published[edition]
        if told["valid"] and edition not in corrected:
            newest[told["period"]] = folder
    releases = {period: read_release(folder / RELEASE) for period, folder in newest.items()}
    releases[place.period] = release
    editions = natural_order(releases)
    entries = tuple(CubeEntry(code, code, 1, is_sum=False) for code in editions)
    axis = CubeAxis(name, name[:1].upper() + name[1:], entries)
    about, found = _about(publication, place.edition, ()), dict[str, bytes]()
    for table, its_about in _about_by_table(publication, release, about).items():
        cubes = [_cube(releases[code], table) for code in editions]
        if any(cube is None or cube.axes != cubes[0].axes for cube in cubes):
            continue  # codes that changed make no series; the table stands in its edition
        stacked = Cube.stack(axis, cubes)
        page = TablePage(table, stacked, Options(about=its_about, time=name))
        found |= page_files(page, publication.outlet.formats)
    return found


def _cube(release: Release, table: str) -> Any:
    pages = {page.name or table: page.cube for page in pages_of(release, Options())}
    return pages.get(table)


def _rename(staging: Path, target: Path) -> None:
    """The one moment at which an edition is published."""
    for path in staging.rglob("*"):
        os.chmod(path, _OPEN if path.is_dir() else EVERYONE)
        _flush(path)
    _flush(staging)
    os.rename(staging, target)
    _flush(target.parent)


def _finish(target: Path, kept: Path) -> None:
    """What follows the rename; whatever of it was done before may be done again."""
    os.chmod(target, _OPEN)
    told = _manifest(target)
    if (corrects := told.get("corrects")) is not None:
        notice = f"Edition {told['edition']} has taken the place of this edition: {told['reason']}"
        _renew(_require_edition(target.with_name(corrects)), notice)
    kept.unlink(missing_ok=True)  # last: as long as it is there, a run may be finished


def _flush(path: Path) -> None:
    """Bring a file or a folder to the disk, so that a rename never points at less than it said."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _renew(folder: Path, notice: str) -> None:
    """Write the files of a published edition again, with a notice; its figures stay."""
    manifest = _manifest(folder)
    notices = tuple(dict.fromkeys([*manifest["notices"], notice]))
    publication = Publication.from_dict(manifest["publication"])
    release = read_release(folder / RELEASE)
    files = edition_files(publication, release, manifest["edition"], notices, folder)
    for name, content in files.items():
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(content)
    names = ("edition", "period", "corrects", "reason")
    told = {name: manifest[name] for name in names if name in manifest}
    told |= {"notices": list(notices), "valid": False}
    _write_manifest(folder, publication, files, told)


def _ledger(publication: Publication, base: Path) -> Ledger | None:
    path = publication.data.get("ledger")
    return None if path is None else Ledger(base / path)


def _data_set(publication: Publication, base: Path, edition: str) -> DataSet:
    name = publication.data.get("name") or Path(str(publication.data.get("source"))).stem
    return DataSet(str(name), edition)


def _enter_correction(
    publication: Publication, base: Path, new: DataSet, corrects: str | None, reason: str
) -> None:
    """Enter a correction once, also where an interrupted run has entered it."""
    ledger = _ledger(publication, base)
    if corrects is None or ledger is None:
        return
    entered = [
        row
        for row in ledger.rows()
        if row.get("decision") == "corrected" and row.get("edition") == corrects
    ]
    if any(row.get("about") == new.edition for row in entered):
        return
    ledger.correct(replace(new, edition=corrects), new.edition, reason)


def _write_log(
    publication: Publication,
    base: Path,
    edition: str,
    release: Release,
    notices: tuple[str, ...],
) -> Path:
    """What the office keeps: what was published of which records, and what to watch."""
    folder = base / publication.outlet.log
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    from discreet.release.notes import Language  # start-up time: only publications write notes

    say = Language.read(publication.outlet.languages[0], base).say
    ledger = _ledger(publication, base)
    rows = [] if ledger is None else [r for r in ledger.rows() if r.get("edition") == edition]
    lines = [
        f"# {publication.outlet.title or publication.outlet.name}, {edition}",
        "",
        say("CONFIDENTIAL. For the office alone."),
        "",
        f"discreet {__version__}; {publication.data.get('source')}.",
        *notices,
        "",
        f"| {say('table')} | {say('cells')} | {say('not shown')} |",
        "|---|---|---|",
    ]
    for name in release.tables:
        part = release[name]
        lines.append(f"| {name} | {part.design.n_published:,} | {int(part.hidden.sum()):,} |")
    lines += ["", say(f"Entries of this edition in the ledger: {len(rows)}."), ""]
    lines += [f"## {say('What to watch')}", "", say(release.statement.office), ""]
    path = folder / f"{edition}.md"
    with written_whole(path, OWNER_ONLY) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
    return path


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return found


def _require_edition(folder: Path) -> Path:
    if not (folder / MANIFEST).is_file() or not (folder / RELEASE).is_file():
        raise DataError(f"{folder} is no published edition: {MANIFEST} and {RELEASE} are expected.")
    return folder


def _check_name(edition: str) -> None:
    if edition.startswith(".") or "/" in edition or "\\" in edition:
        raise ParameterError(f"an edition names a folder, so {edition!r} cannot be one.")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
