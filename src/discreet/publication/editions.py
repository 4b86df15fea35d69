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
from typing import TYPE_CHECKING, Any, Never

from discreet import __version__, registry
from discreet.design.codes import natural_order
from discreet.display.bars import shows_progress
from discreet.errors import DataError, ParameterError
from discreet.facade.table import read_release
from discreet.files import EVERYONE, flush, write_text, written_whole
from discreet.publication.drawing import (
    HIDDEN,
    RELEASE,
    Place,
    WaitingDraw,
    check_outlet,
    data_set_of,
    draw_release,
    edition_periods,
    ledger_of,
    log_file,
)
from discreet.publication.folder import edition_files, series_files, write_log
from discreet.publication.plan import Publication

if TYPE_CHECKING:
    from discreet.facade.release import Release
    from discreet.ledger import Ledger
    from discreet.tables.truth import DataSet

MANIFEST, SERIES = "manifest.json", "series"
"""Files of an edition: what the folder holds, and series over editions."""
_LONGEST_NAME = 64  # of an edition; names of files have it in them
_OPEN = 0o755  # the mode of a folder that is published


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


@shows_progress("publishing")
def publish(
    publication: Publication,
    base: str | Path,
    *,
    edition: str | None = None,
    corrects: str | None = None,
    reason: str = "",
    again: bool = False,
    accept: str = "",
) -> PublishedEdition:
    """Publish an edition: tables, notes, release and manifest, and a confidential log.

    Promise: the folder of the edition is there with everything in it, or not at all, wherever the
    run is interrupted. A second run after an interruption publishes the figures of the first, also
    where titles, footnotes, languages or formats were mended in between. That needs records and
    codes in plain files, which can be compared: of a database or a folder the figures are drawn
    again, and a private budget is paid again.

    Attacks come first: `publication.rules` says what they may find, of the method before anything
    is drawn, and of the release before anybody gets it. A confidential report says what they found.

    Args:
      publication: What is published.
      base: The folder of its file; paths are relative to it.
      edition: The edition, where `[data]` does not name it.
      corrects: The edition that this one takes the place of.
      reason: What was wrong with it.
      again: As for `Table.protect`; also draws anew after attacks stopped a release.
      accept: Why it may be published where attacks did not finish; entered in the ledger.

    Raises:
      GateError: Attacks found more than the gate allows, or did not finish.
    """
    base = Path(base)
    if corrects and not reason.strip():
        raise ParameterError("a correction needs a reason that readers are told: --reason.")
    check_outlet(publication, base)
    named = _require_name(edition or publication.data.get("edition"))
    target = base / publication.outlet.folder / named
    if target.exists() and not (target / MANIFEST).is_file():
        raise DataError(f"{target} is there and no published edition; move it away first.")
    kept = WaitingDraw.file(publication, base, named)
    was_drawn = WaitingDraw.read(kept).folder == publication.outlet.folder
    if target.exists() and was_drawn and _manifest(target).get("corrects") == corrects:
        _finish(target, kept)  # a run was killed after the rename
        log = log_file(publication, base, named)
        return PublishedEdition(target, log, named, read_release(target / RELEASE))
    if target.exists():
        _refuse_published(target, publication)
    period = _period_of(target.with_name(corrects)) if corrects else named
    place = Place(base, named, period, corrects, reason)
    staging = target.with_name(f".{named}.part")
    previous = _releases_to_follow(publication, place)
    release = draw_release(publication, place, staging, again, accept, previous)
    _enter_correction(publication, base, data_set_of(publication, named), corrects, reason)
    broken = _stage(staging, publication, release, place)
    log = write_log(publication, place, release, broken)
    _rename(staging, target)
    _finish(target, kept)
    return PublishedEdition(target, log, named, release)


def _refuse_published(target: Path, publication: Publication) -> Never:
    _require_own(target, publication)
    raise DataError(
        f"edition {target.name} is published already, in {target}. A corrected one has a name of "
        f"its own: discreet publish --edition {target.name}-r1 --corrects {target.name} "
        "--reason '…'."
    )


@shows_progress("publishing")
def publish_periods(
    publication: Publication, base: str | Path, *, again: bool = False, accept: str = ""
) -> list[PublishedEdition]:
    """Publish every period of the records that is not published yet, each as an edition.

    The records say by a column which period they are of, `[data] time = "year"`. Periods are
    published in their order, so that the last one has the whole series.

    Args:
      publication: What is published.
      base: The folder of its file.
      again: As for `publish`.
      accept: As for `publish`.
    """
    found = edition_periods(publication, Path(base))
    folder = Path(base) / publication.outlet.folder
    waiting = [period for period in found if not (folder / period / MANIFEST).is_file()]
    for period in {*found} - {*waiting}:
        _require_own(folder / period, publication)
    if not waiting:
        raise DataError(f"all periods of the records are published already: {', '.join(found)}.")
    return [
        publish(publication, base, edition=period, again=again, accept=accept) for period in waiting
    ]


def withdraw(publication: Publication, base: str | Path, edition: str, reason: str) -> Path:
    """Withdraw a published edition: an entry in the ledger, and a notice in its files."""
    if not reason.strip():
        raise ParameterError("a withdrawal needs a reason that readers are told: --reason.")
    folder = _require_edition(Path(base) / publication.outlet.folder / edition)
    _require_own(folder, publication)
    ledger, data_set = ledger_of(publication, Path(base)), data_set_of(publication, edition)
    # a run that was killed has entered it and not told readers: this one does
    is_entered = _manifest(folder)["valid"] and bool(_decisions(ledger, data_set, "withdrawn"))
    if ledger is not None and not is_entered:
        ledger.withdraw(data_set, reason)
    _renew(folder, f"This edition was withdrawn: {reason}")
    return folder


def _decisions(ledger: Ledger | None, data_set: DataSet, decision: str) -> list[dict[str, Any]]:
    """What was decided of an edition by the ledger's rows."""
    named = {"name": data_set.name, "edition": data_set.edition, "decision": decision}
    rows = [] if ledger is None else ledger.rows()
    return [row for row in rows if named.items() <= row.items()]


def republish(folder: str | Path, out: str | Path) -> Path:
    """Make a published edition again, with the figures it had: all its files, or none.

    Series are made of the releases of the editions beside it.

    Raises:
      DataError: Files would differ from those that were published; the message names the version
        that makes them.
    """
    source, target = _require_edition(Path(folder)), Path(out).absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise DataError(f"{out} is not empty; name a folder that is not there yet.")
    manifest = _manifest(source)
    made = _make_again(source, manifest)
    listed = {**manifest["files"], RELEASE: manifest["release"]}
    changed = [name for name, digest in listed.items() if _digest(made.get(name, b"")) != digest]
    made_by = {name: _version_of(name, manifest) for name in changed}
    if others := [version for version in made_by.values() if version != __version__]:
        raise DataError(
            f"{', '.join(changed[:3])} would differ from what was published. The edition was made "
            f"by version {others[0]}, this is {__version__}: install discreet=={others[0]}."
        )
    if changed:
        raise DataError(f"{source} was changed since it was published: {', '.join(changed[:3])}.")
    staging = target.with_name(f".{target.name}.part")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    _write_files(staging, {**made, MANIFEST: (source / MANIFEST).read_bytes()})
    if target.exists():
        target.rmdir()
    _rename(staging, target)
    return Path(out)


def _version_of(name: str, manifest: Mapping[str, Any]) -> str:
    """The version that made a file; series stay as they are when an edition gets a notice."""
    made = manifest.get("series", {}) if name.startswith(f"{SERIES}/") else {}
    return str(made.get("version", manifest["version"]))


def _make_again(source: Path, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of an edition and its release; of a release that was changed nothing else."""
    found = {RELEASE: (source / RELEASE).read_bytes()}
    if _digest(found[RELEASE]) != manifest["release"]:
        return found
    edition, release = manifest["edition"], read_release(source / RELEASE)
    publication = Publication.from_dict(manifest["publication"])
    notices = manifest["notices"]
    found |= edition_files(publication, release, edition, notices, source, is_published=True)
    if told := manifest.get("series"):
        outlet = replace(publication.outlet, time=told["time"])
        releases = _releases_of(told["editions"], source.parent, edition, release)
        plan = replace(publication, outlet=outlet)
        series = series_files(plan, releases, edition, source, is_published=True)
        found |= _in_folder(series.files)
    return found


def _stage(
    staging: Path, publication: Publication, release: Release, place: Place
) -> Mapping[str, str]:
    """Write all files beside the place where they will stand, the manifest last.

    For tables whose codes changed, the first period of their series is returned.
    """
    os.chmod(staging, HIDDEN)
    files = edition_files(publication, release, place.edition, place.notices, place.base)
    _write_files(staging, files)
    broken: Mapping[str, str] = {}
    told: dict[str, Any] = {
        "edition": place.edition,
        "period": place.period,
        "notices": list(place.notices),
    }
    if publication.time:
        over = _editions_by_period(publication, place)
        releases = _releases_of(over, staging.parent, place.edition, release)
        series = series_files(publication, releases, place.edition, place.base)
        over_periods = _in_folder(series.files)
        _write_files(staging, over_periods)
        files, broken = {**files, **over_periods}, series.broken
        told["series"] = {"time": publication.time, "editions": over, "version": __version__}
    told |= {"corrects": place.corrects, "reason": place.reason, "valid": True}
    _write_manifest(staging, publication, files, told)
    return broken


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(content)


def _write_manifest(
    folder: Path, publication: Publication, files: Mapping[str, bytes], told: Mapping[str, Any]
) -> None:
    """What the folder holds; `told` says which edition it is and what became of it."""
    # where records lie is nobody's business, nor what attacks may find
    public = replace(publication, data={}, gate=None)
    manifest = {
        "format": 1,
        **told,
        "version": __version__,
        "publication": public.to_dict(),
        "release": _digest((folder / RELEASE).read_bytes()),
        "files": {name: _digest(content) for name, content in files.items()},
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
    write_text(folder / MANIFEST, text + "\n")


def _editions_by_period(publication: Publication, place: Place) -> dict[str, str]:
    """The newest valid edition of each published period, and this one."""
    newest = _newest_by_period(publication, place)
    found = {period: folder.name for period, folder in newest.items()}
    found[place.period] = place.edition
    return {period: found[period] for period in natural_order(found)}


def _newest_by_period(publication: Publication, place: Place) -> dict[str, Path]:
    """The newest valid edition of each published period, none that is corrected now."""
    folders = (place.base / publication.outlet.folder).glob("[!.]*")
    published = {f.name: (f, _manifest(f)) for f in folders if (f / MANIFEST).is_file()}
    corrected = {place.corrects, *(told.get("corrects") for _, told in published.values())}
    newest: dict[str, Path] = {}
    for edition in natural_order(published):
        folder, told = published[edition]
        if told["valid"] and edition not in corrected:
            newest[told["period"]] = folder
    return newest


def _releases_to_follow(publication: Publication, place: Place) -> list[Release]:
    """What the method goes on from: the period before, and the edition that is corrected.

    Only methods that hide cells depend on it: a cell that one edition shows opens others.
    """
    plan = publication.method
    method = registry.build("method", plan.name, plan.parameters)
    if publication.fitter is not None or not hasattr(method, "follow"):
        return []
    newest = _newest_by_period(publication, place)
    periods = natural_order({*newest, place.period})
    folders = [newest[each] for each in periods[: periods.index(place.period)][-1:]]
    if place.corrects:
        folders.append(place.base / publication.outlet.folder / place.corrects)
    releases = [read_release(folder / RELEASE) for folder in folders]
    made_by = f"protect:{plan.name}"
    return [each for each in releases if [s.name for s in each.statement.steps[1:]] == [made_by]]


def _releases_of(
    over: Mapping[str, str], folder: Path, edition: str, release: Release
) -> dict[str, Release]:
    """The releases of periods: this edition's, and those of editions in the folder."""
    for name in over.values():
        if name != edition and not (folder / name / RELEASE).is_file():
            raise DataError(
                f"the series of edition {edition} need edition {name} as well, in {folder / name}."
            )
    return {
        period: release if name == edition else read_release(folder / name / RELEASE)
        for period, name in over.items()
    }


def _in_folder(series: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{SERIES}/{name}": content for name, content in series.items()}


def _rename(staging: Path, target: Path) -> None:
    """The one moment at which an edition is published."""
    for path in staging.rglob("*"):
        os.chmod(path, _OPEN if path.is_dir() else EVERYONE)
        flush(path)
    flush(staging)
    os.rename(staging, target)
    flush(target.parent)


def _finish(target: Path, kept: Path) -> None:
    """What follows the rename; whatever of it was done before may be done again."""
    os.chmod(target, _OPEN)
    told = _manifest(target)
    if (corrects := told.get("corrects")) is not None:
        notice = f"Edition {told['edition']} has taken the place of this edition: {told['reason']}"
        _renew(_require_edition(target.with_name(corrects)), notice)
    kept.unlink(missing_ok=True)  # last: as long as it is there, a run may be finished


def _renew(folder: Path, notice: str) -> None:
    """Write the files of a published edition again, with a notice; its figures stay."""
    manifest = _manifest(folder)
    notices = tuple(dict.fromkeys([*manifest["notices"], notice]))
    publication = Publication.from_dict(manifest["publication"])
    release = read_release(folder / RELEASE)
    edition = manifest["edition"]
    files = edition_files(publication, release, edition, notices, folder, is_published=True)
    _write_files(folder, files)
    series = [name for name in manifest["files"] if name.startswith(f"{SERIES}/")]
    files = {**files, **{name: (folder / name).read_bytes() for name in series}}
    names = ("edition", "period", "corrects", "reason", "series")
    told = {name: manifest[name] for name in names if name in manifest}
    told |= {"notices": list(notices), "valid": False}
    _write_manifest(folder, publication, files, told)


def _enter_correction(
    publication: Publication, base: Path, new: DataSet, corrects: str | None, reason: str
) -> None:
    """Enter a correction once, also where an interrupted run has entered it."""
    ledger = ledger_of(publication, base)
    if corrects is None or ledger is None:
        return
    old = replace(new, edition=corrects)
    if all(row.get("about") != new.edition for row in _decisions(ledger, old, "corrected")):
        ledger.correct(old, new.edition, reason)


def _manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return found


def _period_of(folder: Path) -> str:
    return str(_manifest(_require_edition(folder))["period"])


def _require_edition(folder: Path) -> Path:
    if not (folder / MANIFEST).is_file() or not (folder / RELEASE).is_file():
        raise DataError(f"{folder} is no published edition: {MANIFEST} and {RELEASE} are expected.")
    return folder


def _require_own(folder: Path, publication: Publication) -> None:
    """Refuse an edition that another publication has put where this one's would stand."""
    told = _manifest(folder)["publication"].get("publication", {})
    name = told.get("name", publication.outlet.name)
    if name != publication.outlet.name:
        raise DataError(
            f"{folder} is an edition of the publication {name!r}, and this one is called "
            f"{publication.outlet.name!r}. Give it a folder of its own: [publication] folder = "
            f"{publication.outlet.name!r}."
        )


def _require_name(given: object) -> str:
    """The name of an edition, which a folder can have."""
    edition = str(given or "")
    if not edition:
        raise ParameterError("an edition needs a name: [data] edition, or --edition 2026-1.")
    is_name = edition.isprintable() and len(edition) <= _LONGEST_NAME
    if not is_name or edition.startswith(".") or "/" in edition or "\\" in edition:
        raise ParameterError(f"an edition names a folder, so {edition!r} cannot be one.")
    return edition


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
