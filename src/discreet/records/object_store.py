"""Records in an object store: `s3://`, and by the same way `gs://` and `az://`, which are untested.

Arrow's file systems read the objects, with the credentials of the environment or of the store's own
files. Parquet and Arrow objects are streamed to the engine; texts are read into memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.errors import DataError, EngineError, ParameterError
from discreet.frames import fresh_name
from discreet.records.connection import public_address
from discreet.records.file_formats import Content, check_options, kind_by_name
from discreet.records.text_file import read_text
from discreet.records.text_form import TextForm

SCHEMES = ("s3", "gs", "az")
_STREAMED = {"Parquet": "parquet", "Arrow": "ipc"}


@dataclass(frozen=True)
class StoredText:
    """A text in an object store, read like a file."""

    system: Any
    path: str
    origin: str

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        return self.origin

    def stream(self, packed: str | None) -> Any:
        """Its content as a stream, unpacked."""
        return self.system.open_input_stream(self.path, compression=packed)


def read_stored(backend: Any, address: str, form: TextForm) -> Content:
    """The records of an object, or of all Parquet or Arrow objects below a prefix.

    Args:
      backend: The engine.
      address: `s3://bucket/path`, perhaps with Arrow's options behind a `?`: `region`,
        `endpoint_override`, `scheme`.
      form: What is said of a text.

    Raises:
      DataError: There is no such object, or it is damaged.
      EngineError: The store refused the credentials, or the connection was lost.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import fs

    origin = public_address(address)
    try:
        system, path = fs.FileSystem.from_uri(address.replace("az://", "abfs://", 1))
    except pa.ArrowInvalid:  # it quotes the address, and with it a password
        raise ParameterError(f"the address {origin} or its options cannot be read.") from None
    except (pa.ArrowNotImplementedError, ImportError):
        raise EngineError(
            f"{origin} could not be read: this pyarrow was built without such stores; the one of "
            "PyPI has them."
        ) from None
    found = system.get_file_info(path)
    if found.type == fs.FileType.NotFound:
        raise DataError(f"there is no object {origin}, or its bucket is another one.")
    kind = "Parquet" if found.type == fs.FileType.Directory else kind_by_name(path)
    check_options(form, kind or "this name")
    if kind == "text":
        table, notes = read_text(backend, [StoredText(system, path, origin)], form, None)
        return Content(table, {}, notes)
    if kind not in _STREAMED:
        raise ParameterError(
            f"{origin}: only text, Parquet and Arrow are read from a store; copy other files here."
        )
    name = fresh_name("records", backend.list_tables())
    try:
        frame = ds.dataset(path, filesystem=system, format=_STREAMED[kind])
    except pa.ArrowInvalid:
        raise DataError(
            f"{origin} is cut off or damaged: it is no {kind} file. Copy it again."
        ) from None
    return Content(backend.register(name, frame))
