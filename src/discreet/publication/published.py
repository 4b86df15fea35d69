"""Published editions as they lie in files: written, written again with notices, made elsewhere.

A manifest says which files a folder holds, what they were made of, and what became of the edition.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.errors import DataError
from discreet.facade.table import read_release
from discreet.files import EVERYONE, flush, write_text, written_whole
from discreet.publication.drawing import RELEASE
from discreet.publication.folder import edition_files, series_files
from discreet.publication.plan import Publication

if TYPE_CHECKING:
    from discreet.facade.release import Release

MANIFEST, SERIES = "manifest.json", "series"
"""Files of an edition: what the folder holds, and series over editions."""
OPEN = 0o755  # the mode of a folder that is published


def republish(folder: str | Path, out: str | Path) -> Path:
    """Make a published edition again, with the figures it had: all its files, or none.

    Series are made of the releases of the editions beside it.

    Raises:
      DataError: Files would differ from those that were published; the message names the version
        that makes them.
    """
    source, target = require_edition(Path(folder)), Path(out).absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise DataError(f"{out} is not empty; name a folder that is not there yet.")
    manifest = manifest_of(source)
    if _digest((source / RELEASE).read_bytes()) != manifest["release"]:
        raise DataError(f"{source} was changed since it was published: {RELEASE}.")
    made, listed = _make_again(source, manifest), manifest["files"]
    changed = [n for n, digest in listed.items() if n not in made or _digest(made[n]) != digest]
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
    # another version may make more files than were published
    write_files(staging, {name: made[name] for name in listed})
    write_files(staging, {name: (source / name).read_bytes() for name in (RELEASE, MANIFEST)})
    if target.exists():
        target.rmdir()
    put_in_place(staging, target)
    os.chmod(target, OPEN)
    return Path(out)


def _version_of(name: str, manifest: Mapping[str, Any]) -> str:
    """The version that made a file; series stay as they are when an edition gets a notice."""
    made = manifest.get("series", {}) if name.startswith(f"{SERIES}/") else {}
    return str(made.get("version", manifest["version"]))


def _make_again(source: Path, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of an edition, beside its release."""
    edition, release = manifest["edition"], read_release(source / RELEASE)
    publication = Publication.from_dict(manifest["publication"])
    notices = manifest["notices"]
    found = edition_files(publication, release, edition, notices, source, is_published=True)
    if told := manifest.get("series"):
        return {**found, **_series_again(source, publication, release, edition, told)}
    return dict(found)


def _series_again(
    source: Path,
    publication: Publication,
    release: Release,
    edition: str,
    told: Mapping[str, Any],
) -> dict[str, bytes]:
    """The series of a published edition, of the releases beside it."""
    plan = replace(publication, outlet=replace(publication.outlet, time=told["time"]))
    releases = releases_of(told["editions"], source.parent, edition, release)
    notices = told.get("notices", ())
    series = series_files(plan, releases, edition, source, notices, is_published=True)
    return in_series(series.files)


def renew(folder: Path, notice: str) -> None:
    """Write the files of a published edition again, with a notice; its figures stay."""
    manifest = manifest_of(folder)
    notices = tuple(dict.fromkeys([*manifest["notices"], notice]))
    publication = Publication.from_dict(manifest["publication"])
    release = read_release(folder / RELEASE)
    edition = manifest["edition"]
    files = edition_files(publication, release, edition, notices, folder, is_published=True)
    write_files(folder, files)
    series = [name for name in manifest["files"] if name.startswith(f"{SERIES}/")]
    files = {**files, **{name: (folder / name).read_bytes() for name in series}}
    names = ("edition", "period", "corrects", "reason", "series")
    told = {name: manifest[name] for name in names if name in manifest}
    told |= {"notices": list(notices), "valid": False}
    write_manifest(folder, publication, files, told)


def renew_series(folder: Path, notice: str) -> None:
    """Write all series that have figures of an edition again, with a notice.

    Where editions that they are made of are no more, they stay as they are.
    """
    for other in sorted(folder.parent.glob("[!.]*")):
        manifest = manifest_of(other) if (other / MANIFEST).is_file() else {}
        told = manifest.get("series", {})
        over = told.get("editions", {}).values()
        if folder.name not in over or not all(
            (folder.with_name(e) / RELEASE).is_file() for e in over
        ):
            continue
        notices = list(dict.fromkeys([*told.get("notices", []), notice]))
        manifest["series"] = {**told, "notices": notices, "version": __version__}
        publication = Publication.from_dict(manifest["publication"])
        release = read_release(other / RELEASE)
        files = _series_again(other, publication, release, manifest["edition"], manifest["series"])
        write_files(other, files)
        manifest["files"] |= {name: _digest(content) for name, content in files.items()}
        _put_manifest(other, manifest)


def releases_of(
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


def put_in_place(staging: Path, target: Path) -> None:
    """The one moment at which an edition is published."""
    for path in staging.rglob("*"):
        os.chmod(path, OPEN if path.is_dir() else EVERYONE)
        flush(path)
    flush(staging)
    os.rename(staging, target)
    flush(target.parent)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files of an edition, each of them whole."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(content)


def write_manifest(
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
    _put_manifest(folder, manifest)


def _put_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True)
    write_text(folder / MANIFEST, text + "\n")


def in_series(series: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files of series by their names in the folder of an edition."""
    return {f"{SERIES}/{name}": content for name, content in series.items()}


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a published edition."""
    found: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return found


def require_edition(folder: Path) -> Path:
    """Refuse a folder that holds no published edition."""
    if not (folder / MANIFEST).is_file() or not (folder / RELEASE).is_file():
        raise DataError(f"{folder} is no published edition: {MANIFEST} and {RELEASE} are expected.")
    return folder


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
