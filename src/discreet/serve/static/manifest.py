"""What a site of files consists of, file by file, sealed last and looked at again.

The manifest lists every file with its SHA-256, the editions, and what is stated of them. It lies
among the files that are named by their content; `site.json`, which visitors open first, names it
and may carry a signature of it. Whoever exchanges a page can exchange the script that checks it, so
a signature is for programs: `discreet check site out/ --signed-by public.pem`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, MissingDependencyError, ParameterError
from discreet.files import written_whole
from discreet.serve.static.folder import HEAD, SiteFolder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

ALGORITHM = "ed25519"
_NAMED = re.compile(
    r"(?:files|app)/[0-9a-f]{32}[./].*|d/[^/]+/(?:about/|table/)?index\.html", re.DOTALL
)
"""Files that an edition brings for itself: those named by their content, and data sets' pages."""
_MANIFEST = re.compile(r"files/([0-9a-f]{32})\.json")


@dataclass(frozen=True)
class SiteCheck:
    """What was found in a folder of files.

    Attributes:
      version: The version of discreet that wrote it.
      editions: For each data set its edition.
      files: How many files the manifest lists.
      older: How many more are there that an edition before left to visitors who were in the middle.
      is_signed: Whether `site.json` carries a signature.
      faults: What is missing, damaged, exchanged or unknown, each in one sentence.
    """

    version: str
    editions: Mapping[str, str]
    files: int
    older: int
    is_signed: bool
    faults: tuple[str, ...]


def seal(
    folder: SiteFolder,
    head: Mapping[str, Any],
    editions: Mapping[str, Mapping[str, Any]],
    private_key: Path | None = None,
) -> None:
    """Write the manifest, exchange `site.json` in one step, and take away what nobody opens.

    The files of the edition before stay, for visitors who are in the middle of it.

    Args:
      folder: The folder with all its files.
      head: What `site.json` says.
      editions: For each data set its edition, its day, its title and its statement.
      private_key: An Ed25519 key in PEM to sign the manifest with.
    """
    key = None if private_key is None else _read_private(private_key)
    listed = {path: {"sha256": d, "bytes": n} for path, (d, n) in sorted(folder.written.items())}
    known = _files_before(folder.root).items()
    before = {path: told for path, told in known if path not in listed and _NAMED.fullmatch(path)}
    told = {"head": dict(head), "editions": dict(editions), "files": listed, "before": before}
    content = _json(told)
    place = folder.write_hashed(content, "json")
    sealed = {**head, "manifest": place}
    if key is not None:
        value = base64.b64encode(key.sign(content)).decode()
        sealed["signature"] = {"algorithm": ALGORITHM, "value": value}
    with written_whole(folder.root / HEAD) as temporary:
        temporary.write_bytes(_json(sealed))
    _clear(folder.root, {*before, *folder.written})  # the manifest is written by now


def _json(told: Any) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def _files_before(root: Path) -> dict[str, Any]:
    """The files of the edition that is there now; none where it cannot be read."""
    try:
        found: dict[str, Any] = _read_manifest(root, _read(root, HEAD))[2]["files"]
    except DataError:
        return {}
    return found


def _clear(root: Path, kept: set[str]) -> None:
    """Remove files of editions that neither this one nor the one before has."""
    for path in [*_others(root, kept)]:
        (root / path).unlink(missing_ok=True)
    for folder in sorted([*(root / "app").glob("**"), *(root / "d").glob("**")], reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _others(root: Path, kept: set[str]) -> Iterator[str]:
    for folder in ("files", "app", "d"):
        for target in (root / folder).rglob("*"):
            path = target.relative_to(root).as_posix()
            if target.is_file() and path not in kept and _NAMED.fullmatch(path):
                yield path


def check_files(root: Path, public_key: Path | None = None) -> SiteCheck:
    """Look at every file of a site: whether it is there, as it was written, and by whom.

    Args:
      root: The folder.
      public_key: The Ed25519 key in PEM that must have signed it; a signature is not looked at
        without it.
    """
    key = None if public_key is None else _read_public(public_key)
    head = _read(root, HEAD)
    place, content, manifest = _read_manifest(root, head)
    files, before = manifest["files"], manifest.get("before", {})
    older = {path: told for path, told in before.items() if (root / path).is_file()}
    faults = [*_faults(root, {**files, **older})]
    told = {k: v for k, v in head.items() if k not in ("manifest", "signature")}
    if told != manifest["head"]:
        faults.append(f"{HEAD} does not say what the manifest says of it.")
    if key is not None and (fault := _signature_fault(head, content, key)):
        faults.append(fault)
    known = {HEAD, place, *files, *older}
    # A link is none of ours, and what a folder's link leads to would be handed out.
    links_too = (p for p in root.rglob("*") if p.is_symlink() or not p.is_dir())
    found = {p.relative_to(root).as_posix() for p in links_too}
    faults += [f"{path} is no file of this site." for path in sorted(found - known)]
    editions = {name: str(one["edition"]) for name, one in manifest["editions"].items()}
    is_signed = "signature" in head
    version = str(head.get("version", ""))
    return SiteCheck(version, editions, len(files), len(older), is_signed, tuple(faults))


def _read_manifest(root: Path, head: Mapping[str, Any]) -> tuple[str, bytes, dict[str, Any]]:
    """The manifest's path, its content and what it says."""
    place = str(head.get("manifest", ""))
    named = _MANIFEST.fullmatch(place)
    content = _bytes(root, place) if named else None
    if named is None or content is None or not _digest(content).startswith(named[1]):
        raise DataError(
            f"{root / HEAD} names the manifest {place!r}, which is missing or not as it was "
            "written. Take the folder from where it was made, or build it again."
        )
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not _is_manifest(found):
        raise DataError(
            f"{root / place} is no manifest of a site: somebody else wrote it. Take the folder "
            "from where it was made, or build it again."
        )
    return place, content, found


def _is_manifest(found: Any) -> bool:
    """Whether it has the parts of a manifest, and lists files of the folder alone."""
    if not isinstance(found, dict) or not {"head", "editions", "files"} <= found.keys():
        return False
    editions, lists = found["editions"], [found["files"], found.get("before", {})]
    if not all(isinstance(part, dict) for part in (found["head"], editions, *lists)):
        return False
    listed = [entry for files in lists for entry in files.items()]
    return all(isinstance(one, dict) and "edition" in one for one in editions.values()) and all(
        isinstance(told, dict)
        and isinstance(told.get("sha256"), str)
        and isinstance(told.get("bytes"), int)
        and not {"", ".", ".."} & {*path.split("/")}
        and "\0" not in path
        for path, told in listed
    )


def _faults(root: Path, files: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path, told in files.items():
        content = _bytes(root, path)
        if content is None:
            yield f"{path} is missing."
        elif len(content) != told["bytes"]:
            yield f"{path} has {len(content):,} bytes instead of {told['bytes']:,}."
        elif _digest(content) != told["sha256"]:
            yield f"{path} has another content than was written."


def _signature_fault(head: Mapping[str, Any], content: bytes, key: Ed25519PublicKey) -> str | None:
    from cryptography.exceptions import InvalidSignature  # an optional package

    told = head.get("signature")
    if not isinstance(told, dict) or told.get("algorithm") != ALGORITHM:
        return f"{HEAD} carries no {ALGORITHM} signature."
    try:
        key.verify(base64.b64decode(str(told.get("value"))), content)
    except (InvalidSignature, ValueError):
        return f"the signature in {HEAD} was not made with this key for this manifest."
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _bytes(root: Path, path: str) -> bytes | None:
    try:
        return (root / path).read_bytes()
    except OSError:
        return None


def _read(root: Path, path: str) -> dict[str, Any]:
    content = _bytes(root, path)
    if content is None:
        raise DataError(
            f"{root} has no {path}, so it is no site of files; `discreet build site.toml --static "
            "out/` writes one."
        )
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{root / path} is damaged: it is not a JSON object. Build the site again.")
    return found


def _read_private(path: Path) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise MissingDependencyError("a signature", "cryptography", "sign") from error
    content = _key_bytes(path)
    try:
        found = load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:
        raise _wrong_key(path, "private") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise _wrong_key(path, "private")
    return found


def _read_public(path: Path) -> Ed25519PublicKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise MissingDependencyError("a signature", "cryptography", "sign") from error
    content = _key_bytes(path)
    try:
        found = load_pem_public_key(content)
    except ValueError as error:
        raise _wrong_key(path, "public") from error
    if not isinstance(found, Ed25519PublicKey):
        raise _wrong_key(path, "public")
    return found


def _key_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"cannot read the key {path}: {error.strerror}.") from error


def _wrong_key(path: Path, kind: str) -> ParameterError:
    made = "openssl genpkey -algorithm ed25519 -out key.pem"
    shown = "openssl pkey -in key.pem -pubout -out public.pem"
    return ParameterError(
        f"{path} is no {kind} Ed25519 key in PEM without a password. `{made}` makes a private one, "
        f"`{shown}` its public one."
    )
