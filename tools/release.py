"""Everything that goes out with a version: `make release` writes it to `dist/`.

The committed files are built twice, in folders of different names, at the time of their commit. The
two builds must have the same bytes. Beside them lie a bill of materials (CycloneDX), the licences
of all that is needed, the changelog of the version, and the digests of everything.

With `--final` changes that no version names yet are refused; without it they are counted.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

import bill_of_materials

from discreet.testing.install import digest_of_files

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)


class ReleaseError(Exception):
    """A version cannot be released as it is."""


def version_of(root: Path) -> str:
    """The version, from its one place, once everything that repeats it says the same."""
    home = root / "src/discreet/__init__.py"
    found = _VERSION.search(home.read_text(encoding="utf-8"))
    if found is None:
        raise ReleaseError(f'{home} has no line __version__ = "…".')
    version = found[1]
    studies = tomllib.loads((root / "studies/pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    pins = [
        need.partition("==")[2] for need in studies["dependencies"] if need.startswith("discreet")
    ]
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    said = {
        "studies/pyproject.toml, version": studies["version"],
        "studies/pyproject.toml, dependencies": pins[0] if pins else "nothing",
        "CITATION.cff": cited[1].strip() if cited else "nothing",
        "CHANGELOG.md, the newest version": next(
            (v for v in changes_of(root) if v != UNRELEASED), ""
        ),
    }
    wrong = [f"{place} says {other}" for place, other in said.items() if other != version]
    if wrong:
        raise ReleaseError(f"src/discreet/__init__.py says {version}, but {'; '.join(wrong)}.")
    return version


UNRELEASED = "Unreleased"


def changes_of(root: Path) -> dict[str, str]:
    """The changelog by version, the newest first."""
    parts = _SECTION.split((root / "CHANGELOG.md").read_text(encoding="utf-8"))[1:]
    return {
        head.split()[0]: text.strip() for head, text in zip(parts[::2], parts[1::2], strict=True)
    }


def count_unreleased(root: Path) -> int:
    """How many changes no version names yet."""
    return len(re.findall(r"^- ", changes_of(root).get(UNRELEASED, ""), re.MULTILINE))


def commit_time(root: Path) -> str:
    """Seconds since 1970 of the last commit: the time that all files of a build have."""
    return _git(root, "log", "-1", "--format=%ct").decode().strip()


def build(root: Path, folder: Path) -> list[Path]:
    """Sdist and wheel of what is committed, built in a folder that it may fill."""
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "HEAD"))) as files:
        files.extractall(folder, filter="data")
    out = folder / "dist"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out), "-t", "sdist", "-t", "wheel"],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": commit_time(root), "PYTHONPATH": ""},
    )
    if done.returncode:
        raise ReleaseError(f"the build failed: {done.stderr.decode().strip()}")
    return sorted(out.iterdir())


def build_twice(root: Path, out: Path) -> list[Path]:
    """The built files, in `out`, once two builds had the same bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        one, two = (build(root, Path(scratch) / name) for name in ("one", "another-one"))
        if [digest(p) for p in one] != [digest(p) for p in two]:
            changed = [a.name for a, b in zip(one, two, strict=True) if digest(a) != digest(b)]
            raise ReleaseError(f"two builds of the same files differ: {', '.join(changed)}.")
        out.mkdir(exist_ok=True)
        return [Path(shutil.copy2(path, out)) for path in one]


def installed_digest(wheel: Path) -> str:
    """The digest that an installation of the wheel says of its own files."""
    with zipfile.ZipFile(wheel) as files:
        names = [name for name in files.namelist() if name.startswith("discreet/")]
        return digest_of_files((name.partition("/")[2], files.read(name)) for name in names)


def digest(path: Path) -> str:
    """What identifies a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def release(root: Path, out: Path, *, is_final: bool) -> list[Path]:
    """Build, describe, and list with digests."""
    version, waiting = version_of(root), count_unreleased(root)
    if is_final and waiting:
        raise ReleaseError(
            f"{waiting} changes stand under {UNRELEASED} in CHANGELOG.md: give them a version, and "
            "write it into src/discreet/__init__.py, studies/pyproject.toml and CITATION.cff."
        )
    made = build_twice(root, out)
    made += bill_of_materials.write(version, commit_time(root), out)
    text = changes_of(root)[UNRELEASED if waiting else version]
    changes = out / "CHANGES.md"
    changes.write_text(f"# discreet {version}\n\n{text}\n", encoding="utf-8", newline="\n")
    made.append(changes)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in made)
    sums += f"# installed files, as in `discreet check install`: {installed_digest(made[0])}\n"
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8", newline="\n")
    say = sys.stdout.write
    say(f"discreet {version}, built twice with the same bytes, in {out}:\n{sums}")
    if waiting:
        say(f"{waiting} changes have no version yet: not for publication (see --final).\n")
    return made


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True)
    if done.returncode:
        raise ReleaseError(f"git {' '.join(arguments)} failed: {done.stderr.decode().strip()}")
    return done.stdout


if __name__ == "__main__":
    try:
        release(ROOT, DIST, is_final="--final" in sys.argv)
    except ReleaseError as error:
        raise SystemExit(f"no release: {error}") from None
