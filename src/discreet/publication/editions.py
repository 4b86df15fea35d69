"""Editions of a publication in files: written beside, checked, and renamed at the end.

An edition is a folder with tables, notes, the release itself and a manifest. It appears whole or
not at all. The ledger is written before anybody gets a figure, so a run that is killed has counted
too much and never too little; the next run goes on with the release that was drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from discreet import __version__, registry
from discreet.design.codes import natural_order
from discreet.display.bars import shows_progress
from discreet.errors import DataError, ParameterError
from discreet.facade.table import read_release
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
from discreet.publication.published import (
    MANIFEST,
    OPEN,
    in_series,
    manifest_of,
    put_in_place,
    releases_of,
    renew,
    renew_series,
    require_edition,
    write_files,
    write_manifest,
)

if TYPE_CHECKING:
    from discreet.facade.release import Release
    from discreet.ledger import Ledger
    from discreet.tables.truth import DataSet

_LONGEST_NAME = 64  # of an edition; names of files have it in them


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
    if target.exists() and was_drawn and manifest_of(target).get("corrects") == corrects:
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
    put_in_place(staging, target)
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
    published in their order, so that the last one has the whole series. Arguments are those of
    `publish`.
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
    folder = require_edition(Path(base) / publication.outlet.folder / edition)
    _require_own(folder, publication)
    ledger, data_set = ledger_of(publication, Path(base)), data_set_of(publication, edition)
    # a run that was killed has entered it and not told readers: this one does
    is_entered = manifest_of(folder)["valid"] and bool(_decisions(ledger, data_set, "withdrawn"))
    if ledger is not None and not is_entered:
        ledger.withdraw(data_set, reason)
    renew_series(folder, f"The series has figures of edition {edition}, withdrawn: {reason}")
    renew(folder, f"This edition was withdrawn: {reason}")  # last: until then it may be finished
    return folder


def _decisions(ledger: Ledger | None, data_set: DataSet, decision: str) -> list[dict[str, Any]]:
    """What was decided of an edition by the ledger's rows."""
    named = {"name": data_set.name, "edition": data_set.edition, "decision": decision}
    rows = [] if ledger is None else ledger.rows()
    return [row for row in rows if named.items() <= row.items()]


def _stage(
    staging: Path, publication: Publication, release: Release, place: Place
) -> Mapping[str, str]:
    """Write all files beside the place where they will stand, the manifest last.

    For tables whose codes changed, the first period of their series is returned.
    """
    os.chmod(staging, HIDDEN)
    files = edition_files(publication, release, place.edition, place.notices, place.base)
    write_files(staging, files)
    broken: Mapping[str, str] = {}
    told: dict[str, Any] = {
        "edition": place.edition,
        "period": place.period,
        "notices": list(place.notices),
    }
    if publication.time:
        over = _editions_by_period(publication, place)
        releases = releases_of(over, staging.parent, place.edition, release)
        series = series_files(publication, releases, place.edition, place.base)
        over_periods = in_series(series.files)
        write_files(staging, over_periods)
        files, broken = {**files, **over_periods}, series.broken
        told["series"] = {"time": publication.time, "editions": over, "version": __version__}
    told |= {"corrects": place.corrects, "reason": place.reason, "valid": True}
    write_manifest(staging, publication, files, told)
    return broken


def _editions_by_period(publication: Publication, place: Place) -> dict[str, str]:
    """The newest valid edition of each published period, and this one."""
    newest = _newest_by_period(publication, place)
    found = {period: folder.name for period, folder in newest.items()}
    found[place.period] = place.edition
    return {period: found[period] for period in natural_order(found)}


def _newest_by_period(publication: Publication, place: Place) -> dict[str, Path]:
    """The newest valid edition of each published period, none that is corrected now."""
    folders = (place.base / publication.outlet.folder).glob("[!.]*")
    published = {f.name: (f, manifest_of(f)) for f in folders if (f / MANIFEST).is_file()}
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


def _finish(target: Path, kept: Path) -> None:
    """What follows the rename; whatever of it was done before may be done again."""
    os.chmod(target, OPEN)
    told = manifest_of(target)
    if (corrects := told.get("corrects")) is not None:
        notice = f"Edition {told['edition']} has taken the place of this edition: {told['reason']}"
        old = require_edition(target.with_name(corrects))
        place = f"The series has figures of edition {corrects}, which edition {told['edition']}"
        renew_series(old, f"{place} has taken the place of: {told['reason']}")
        renew(old, notice)
    kept.unlink(missing_ok=True)  # last: as long as it is there, a run may be finished


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


def _period_of(folder: Path) -> str:
    return str(manifest_of(require_edition(folder))["period"])


def _require_own(folder: Path, publication: Publication) -> None:
    """Refuse an edition that another publication has put where this one's would stand."""
    told = manifest_of(folder)["publication"].get("publication", {})
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
