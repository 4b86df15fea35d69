"""The draw of an edition: records are opened, counted and protected once, also over interruptions.

A release that was drawn waits in a hidden folder beside the place where it will be published. What
it was drawn of is kept among the confidential files, so that the next run goes on with it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, GateError, ParameterError, check_known
from discreet.facade.microdata import Microdata
from discreet.facade.opening import open as open_records
from discreet.facade.table import read_release
from discreet.files import OWNER_ONLY, write_text
from discreet.ledger import Ledger
from discreet.publication.plan import Outlet, Publication, is_local
from discreet.publication.wording import Wording, check_wordings
from discreet.records.code_list import CodeLists
from discreet.release.formats.write import file_stem, writer_named
from discreet.tables.truth import DataSet

if TYPE_CHECKING:
    from discreet.facade.release import Release
    from discreet.facade.table import Table
    from discreet.publication.gate import Gatekeeper

RELEASE = "release.parquet"
"""The file of an edition that holds the release itself."""
HIDDEN = 0o700  # the mode of a folder before it is published


@dataclass(frozen=True)
class Place:
    """Where an edition stands: its folder, name and period, which one it corrects, and why."""

    base: Path
    edition: str
    period: str
    corrects: str | None
    reason: str

    @property
    def notices(self) -> tuple[str, ...]:
        """What readers of the edition are told first."""
        if self.corrects is None:
            return ()
        return (f"This edition replaces edition {self.corrects}: {self.reason}",)


def draw_release(
    publication: Publication,
    place: Place,
    staging: Path,
    again: bool,
    accept: str = "",
    previous: Sequence[Release] = (),
) -> Release:
    """The release that an interrupted run has drawn of the same records, or a new one.

    What noise from the operating system has cost is entered in the ledger; so it must not be drawn
    again where the first draw is there. The method passes the gate before the draw, and the release
    after it.
    """
    Wording.read_all(publication, place.base)  # before records are read
    for name in publication.outlet.formats:
        writer_named(name)
    rules = json.dumps(publication.rules.to_dict(), sort_keys=True)
    draw = WaitingDraw(publication.outlet.folder, _origin(publication, place), rules=rules)
    kept = WaitingDraw.file(publication, place.base, place.edition)
    before = WaitingDraw.read(kept)
    waits = draw.origin and (staging / RELEASE).is_file() and not before.stopped
    if waits and (before.folder, before.origin) == (draw.folder, draw.origin):
        _clear(staging)  # of files that the run left, perhaps in other formats or languages
        release = read_release(staging / RELEASE)
        check_wordings(publication, place.base, release.design)
        if before.rules != rules:  # it was drawn under other rules, or under none
            _pass_method(publication, place, _count(publication, place), accept)
            replace(before, rules=rules).write(kept)
        _pass_release(publication, place, release, staging, before, accept)
        return release
    if before.stopped and not again:
        raise GateError(
            f"a release of edition {place.edition} was drawn and stopped by attacks. Drawing until "
            "one passes chooses by the records: change the method or the tables, and draw anew by "
            "--again, which the ledger enters."
        )
    counted = _count(publication, place)
    check_wordings(publication, place.base, counted[1].design)  # before anything is paid
    _pass_method(publication, place, counted, accept)
    if not before.stopped:  # a stop is remembered until another release is there
        kept.unlink(missing_ok=True)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=HIDDEN, parents=True)  # it lies in a public folder
    numbers = _numbers(publication, place)
    plan = publication.at(place.base)
    release = plan.run(counted[1], again=again, previous=list(previous) or None)
    release.save(staging / RELEASE)
    draw = replace(draw, number=max(_numbers(publication, place) - numbers, default=0))
    draw.write(kept)
    _pass_release(publication, place, release, staging, draw, accept)
    return release


def _numbers(publication: Publication, place: Place) -> frozenset[int]:
    """Releases of the edition that the ledger counts."""
    ledger = ledger_of(publication, place.base)
    if ledger is None:
        return frozenset()
    return ledger.release_numbers(data_set_of(publication, place.edition))


def _count(publication: Publication, place: Place) -> tuple[Microdata, Table]:
    """The records of an edition, and its confidential tables."""
    plan = publication.at(place.base)
    data = open_edition(plan, place.edition, place.period)
    table = plan.tabulate(data)
    if not table.z.any():
        source = publication.data["source"]
        raise DataError(f"the tables count no record: is {source} what is to be published?")
    return data, table


def _pass_method(
    publication: Publication, place: Place, counted: tuple[Microdata, Table], accept: str
) -> None:
    """Attack experiments of the method; that nothing is attacked is entered in the ledger."""
    if publication.rules.is_off:
        if (ledger := ledger_of(publication, place.base)) is not None:
            data_set = data_set_of(publication, place.edition)
            ledger.pass_unjudged(data_set, "everything", "[gate] attack = 'off'")
        return
    from discreet.publication.gate import judge_method  # start-up time

    found = judge_method(publication.at(place.base), *counted)
    _gatekeeper(publication, place, accept).check(found)


def _pass_release(
    publication: Publication,
    place: Place,
    release: Release,
    staging: Path,
    draw: WaitingDraw,
    accept: str,
) -> None:
    """Look for people who are certain, by the public side alone, before anybody gets the release.

    A release that is stopped waits no more, and nothing of it stays where files are published: the
    next run draws another one, by decision only.
    """
    if publication.rules.is_off:
        return
    from discreet.publication.gate import judge_release  # start-up time

    found = judge_release(publication, release)
    try:
        _gatekeeper(publication, place, accept).check(found, draw.number)
    except GateError:
        if found.broken:
            kept = WaitingDraw.file(publication, place.base, place.edition)
            replace(draw, stopped=True).write(kept)
            shutil.rmtree(staging)
        raise


def _gatekeeper(publication: Publication, place: Place, accept: str) -> Gatekeeper:
    from discreet.publication.gate import Gatekeeper  # start-up time

    log = log_file(publication, place.base, place.edition)
    ledger, data_set = ledger_of(publication, place.base), data_set_of(publication, place.edition)
    return Gatekeeper(log.with_name(f"{log.stem}.gate.md"), accept, ledger, data_set)


def check_outlet(publication: Publication, base: Path) -> None:
    """Refuse folders where readers would find what is confidential, and no format at all."""
    outlet, data = publication.outlet, publication.data
    if not outlet.formats:
        raise ParameterError('[publication] formats names none, such as formats = ["xlsx", "csv"].')
    custody = {f"[data] {name}": data.get(name) for name in _CUSTODY if data.get(name)}
    private = {"[publication] log": outlet.log, **custody}
    public = (base / outlet.folder).resolve()
    for entry, path in private.items():
        if is_local(str(path)) and (base / str(path)).resolve().is_relative_to(public):
            raise ParameterError(
                f"{entry} = {str(path)!r} is confidential, and lies in the folder that readers "
                f"get, [publication] folder = {outlet.folder!r}. Name another folder for one of "
                "them."
            )


_CUSTODY = ("source", "secret", "ledger", "keys", "random_keys")
"""Entries of [data] that name confidential files."""


def ledger_of(publication: Publication, base: Path) -> Ledger | None:
    """The ledger of a publication, if it has one."""
    path = publication.data.get("ledger")
    return None if path is None else Ledger(base / path)


def data_set_of(publication: Publication, edition: str) -> DataSet:
    """The name under which the ledger knows an edition."""
    name = publication.data.get("name") or Path(str(publication.data.get("source"))).stem
    return DataSet(str(name), edition)


def open_edition(publication: Publication, edition: str, period: str) -> Microdata:
    """The records of an edition: all of them, or those of its period where they tell periods."""
    given = {"edition": edition}
    if isinstance(publication.data.get("time"), str):
        given["period"] = period
    return _open(publication, given)


def _open(publication: Publication, more: Mapping[str, Any]) -> Microdata:
    given = {**publication.data, **more}
    if "source" not in given:
        raise ParameterError("the publication has no [data] with a source.")
    known = [*signature(open_records).parameters]
    check_known("publication entry of [data]", given, known)
    return open_records(given.pop("source"), **given)


def count_edition(publication: Publication, base: Path) -> Table:
    """The confidential tables of an edition to come, for a check; nothing is drawn or entered."""
    publication.build()
    check_outlet(publication, base)
    plan = _without_custody(publication.at(base))
    edition = str(plan.data.get("edition") or "")
    if not edition and isinstance(plan.data.get("time"), str):
        edition = edition_periods(publication, base)[-1]
    return plan.tabulate(open_edition(plan, edition or "1", edition or "1"))


def edition_periods(publication: Publication, base: Path) -> list[str]:
    """The periods of the records, each of which is an edition, in their order."""
    return _open(_without_custody(publication.at(base)), {}).periods


def _without_custody(publication: Publication) -> Publication:
    """The publication without secret, keys and ledger: records are looked at, nothing is made."""
    custody = {*_CUSTODY} - {"source"}
    given = {name: value for name, value in publication.data.items() if name not in custody}
    return replace(publication, data=given)


def _clear(staging: Path) -> None:
    for path in staging.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != RELEASE:
            path.unlink()


@dataclass(frozen=True)
class WaitingDraw:
    """A release that was drawn and waits to be published; never among public files."""

    folder: str = ""  # the folder it is to be published in, as the publication names it
    origin: str = ""  # a digest of what it was drawn of; empty where that is unknown
    stopped: bool = False  # whether attacks stopped it
    rules: str = ""  # the rules of the gate that its method has passed
    number: int = 0  # the number that the ledger gave it; none where it had one before

    @staticmethod
    def file(publication: Publication, base: Path, edition: str) -> Path:
        """Where this is kept."""
        log = log_file(publication, base, edition)
        return log.with_name(f".{log.stem}.origin")

    @classmethod
    def read(cls, path: Path) -> WaitingDraw:
        """What is kept; nothing where there is no such file."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else cls()

    def write(self, path: Path) -> None:
        """Keep it, for its owner alone."""
        write_text(path, json.dumps(vars(self)), OWNER_ONLY)


def log_file(publication: Publication, base: Path, edition: str) -> Path:
    """Where the confidential log of an edition is kept."""
    folder = base / publication.outlet.log
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{file_stem(publication.outlet.name)}-{edition}.md"


def _origin(publication: Publication, place: Place) -> str:
    """What a release is drawn of: publication, edition, records and all code lists.

    Empty where that is unknown.
    """
    # no figure depends on these
    drawn = replace(publication, outlet=Outlet(), told={}, gate=None).to_dict()
    said = json.dumps([drawn, place.edition, place.period], sort_keys=True)
    found, plan = hashlib.sha256(said.encode()), publication.at(place.base)
    files = [Path(str(plan.data.get("source")))]
    if "codes" in plan.data:
        files += CodeLists.files(plan.data["codes"])
    for named in (plan.data.get("hierarchies", {}), plan.hierarchies):
        for one in named.values():
            files += [Path(file) for file in ([one] if isinstance(one, str) else one)]
    for path in files:
        if not is_local(str(path)) or not path.is_file():
            return ""
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
