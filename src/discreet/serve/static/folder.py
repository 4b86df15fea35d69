"""The folder of a site of files: what is named by its content stays, whatever is published next."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from discreet.errors import DataError
from discreet.files import written_whole

HEAD = "site.json"
_OWN = ("app", "files", "d", "about", "index.html", "start.js")  # of a build that was stopped
DIGITS = 32
"""Hexadecimal digits of a SHA-256 in the name of a file: 128 bits."""


class SiteFolder:
    """Writes a site of files.

    Attributes:
      root: The folder.
      written: For each file, by its path in the folder, its SHA-256 and its size.
    """

    def __init__(self, root: Path) -> None:
        others = [] if (root / HEAD).exists() or not root.is_dir() else sorted(root.iterdir())
        if named := [path.name for path in others if path.name not in _OWN]:
            listed = ", ".join(named[:3]) + (", …" if len(named) > 3 else "")
            raise DataError(
                f"{root} holds other files ({listed}) and no site of files. Everybody who comes to "
                "the site could ask for them. Name an empty folder, or that of the edition before."
            )
        self.root = root
        self.written: dict[str, tuple[str, int]] = {}

    def write_hashed(self, content: bytes, ending: str) -> str:
        """Write a file under the name of its content; returns its path in the folder."""
        path = f"files/{digest_of(content)}.{ending}"
        self.put_plain(path, content)
        return path

    def put_app(self, files: Mapping[str, bytes]) -> str:
        """Write the client into a folder that is named by all of it; returns the folder's path."""
        together = "".join(f"{name} {digest_of(files[name])}\n" for name in sorted(files))
        folder = f"app/{digest_of(together.encode())}"
        for name, content in files.items():
            self.put_plain(f"{folder}/{name}", content)
        return folder

    def put_plain(self, path: str, content: bytes) -> None:
        """Write a file under a name of its own, where it is not there as it should be."""
        self.written[path] = (hashlib.sha256(content).hexdigest(), len(content))
        target = self.root / path
        try:
            if target.is_file() and target.read_bytes() == content:
                return
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write to {target}: {error.strerror}.") from error
        with written_whole(target) as temporary:
            temporary.write_bytes(content)


def digest_of(content: bytes) -> str:
    """What a file's name says of its content."""
    return hashlib.sha256(content).hexdigest()[:DIGITS]
