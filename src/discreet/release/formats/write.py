"""Tables in files of every format: the file's name says which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from discreet import registry
from discreet.errors import ConfidentialError, ParameterError, UnknownNameError
from discreet.files import written_whole
from discreet.release.cube import Cube
from discreet.release.formats.options import PLAIN, About, Options
from discreet.tables.public import PublicTable


class Writer(Protocol):
    """What turns a cube into the content of a file.

    Attributes:
      name: The format's name.
      title: Its name for readers.
      ending: The ending of a file's name, `.csv`.
      media_type: What the format is called on the web.
    """

    name: str
    title: str
    ending: str
    media_type: str

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content; what is not asked for is as it suits the format."""


def writers() -> list[Writer]:
    """Every registered format."""
    texts = ("name", "title", "ending", "media_type")
    return [*registry.each("format", texts=texts, calls=("write",)).values()]


def writer_named(name: str) -> Writer:
    """The writer of a format."""
    found: Writer = registry.build("format", name)
    return found


def writer_of(path: str | Path) -> Writer:
    """The writer whose ending a file's name has; `.sdmx.csv` is looked for before `.csv`."""
    name = Path(path).name.lower()
    known = sorted(writers(), key=lambda writer: -len(writer.ending))
    for writer in known:
        if name.endswith(writer.ending):
            return writer
    listed = ", ".join(sorted(writer.ending for writer in known))
    raise ParameterError(f"cannot write {name!r}: the name must end in one of {listed}.")


def write(release: PublicTable, path: str | Path, **given: Any) -> Path:
    """Write the published cells of a release; see `Release.write`."""
    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    cube, options = Cube.of(release), replace(options_of(given), file=Path(path).name)
    contents = {target: writer.write(cube, options) for target, writer in files_of(path)}
    for target, content in contents.items():
        with written_whole(target) as temporary:
            temporary.write_bytes(content)
    return Path(path)


def files_of(path: str | Path) -> list[tuple[Path, Writer]]:
    """The files that belong to one of this name, with their writers: itself, and what lies beside.

    Beside a CSV file lie its metadata. A format says so by `beside`, names of other formats.
    """
    target, writer = Path(path), writer_of(path)
    stem = target.name[: -len(writer.ending)]
    others = [writer_named(name) for name in getattr(writer, "beside", ())]
    return [(target, writer), *((target.with_name(stem + w.ending), w) for w in others)]


def options_of(given: dict[str, Any]) -> Options:
    """Options by their names, those of `About` among them."""
    known = [*Options.__dataclass_fields__, *About.__dataclass_fields__]
    for name in given:
        if name not in known:
            raise UnknownNameError("option", name, known)
    said = {k: v for k, v in given.items() if k in About.__dataclass_fields__}
    rest = {k: v for k, v in given.items() if k not in said}
    return Options(**rest, about=About(**said))
