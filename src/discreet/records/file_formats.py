"""Files of records that are not text: what a file is, by its first bytes, and how it is read.

Parquet, Arrow, JSON lines and DuckDB files stay where they are, and the engine reads them. Excel,
SPSS, SAS and Stata files are read into memory; their value labels are code lists.

Object stores are `s3://`, and by the same way `gs://` and `az://`, which are untested. Arrow's file
systems read the objects, with the credentials of the environment or of the store's own files.
Parquet and Arrow objects are streamed to the engine; texts are read into memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.columns import Column
from discreet.design.codes import canonical
from discreet.design.hierarchy import Hierarchy
from discreet.errors import (
    DataError,
    EngineError,
    MissingDependencyError,
    ParameterError,
    UnknownNameError,
)
from discreet.files import PARQUET
from discreet.frames import Frame, fresh_name, needs_arrow
from discreet.records.connection import public_address
from discreet.records.query import memtable
from discreet.records.rda import read_metadata, read_rows
from discreet.records.text_file import read_text
from discreet.records.text_form import PACKED, TextForm
from discreet.tables.assembly import Hierarchies, free_total

if TYPE_CHECKING:
    pass

ENDINGS: dict[str, tuple[str, ...]] = {
    "text": (".csv", ".tsv", ".txt"),
    "Parquet": PARQUET,
    "Arrow": (".arrow", ".feather", ".ipc"),
    "DuckDB": (".duckdb", ".ddb", ".db"),
    "JSON lines": (".jsonl", ".ndjson"),
    "Excel": (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
    "SPSS": (".sav", ".zsav", ".por"),
    "Stata": (".dta",),
    "SAS": (".sas7bdat", ".xpt"),
    "fixed width": (".asc", ".dat", ".fwf"),
}
"""Names of files by what they are; text and JSON lines may be compressed."""
_PACKED_ENDINGS = (".gz", ".zst", ".bz2")
_MARKS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PAR1", "Parquet"),
    (0, b"ARROW1", "Arrow"),
    (8, b"DUCK", "DuckDB"),
    (0, b"\xd0\xcf\x11\xe0", "Excel"),
    (0, b"$FL2", "SPSS"),
    (0, b"$FL3", "SPSS"),
    (0, b"<stata_dta>", "Stata"),
    (12, b"\xc2\xea\x81\x60", "SAS"),
    (0, b"HEADER RECORD", "SAS"),
)
_OPTIONS = {
    "text": ("encoding", "delimiter", "decimal", "thousands", "header"),
    "fixed width": ("decimal", "metadata"),
    "Excel": ("header",),
}
_UNREADABLE = {
    b"PK\x03\x04": "a ZIP archive",
    b"\xfd7zXZ": "an XZ archive",
    b"7z\xbc\xaf": "a 7z archive",
}
STORES = ("s3", "gs", "az")
_STREAMED = {"Parquet": "parquet", "Arrow": "ipc"}


@dataclass(frozen=True)
class Content:
    """The records of a file, the code lists that came with them, and what was done."""

    records: Any
    lists: Hierarchies = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def ending_of_records(name: str) -> str:
    """How the name of a file of records ends, if it is known."""
    low = name.lower()
    packed = next((end for end in _PACKED_ENDINGS if low.endswith(end)), "")
    known = (end for ends in ENDINGS.values() for end in ends)
    found = next((end for end in known if low.removesuffix(packed).endswith(end)), "")
    return found + packed if found else ""


def kind_by_name(path: str) -> str | None:
    """What a file is by its name alone, a key of `ENDINGS`, if that tells."""
    ending = ending_of_records(path)
    for packed in _PACKED_ENDINGS:
        ending = ending.removesuffix(packed)
    return next((kind for kind, ends in ENDINGS.items() if ending in ends), None)


_NO_RECORDS = {
    ".hrc": "a hierarchy. Name it beside the records: --hierarchy VARIABLE=FILE, or "
    "hierarchies={'variable': 'file.hrc'}",
    ".arb": "a batch of τ-ARGUS. Run it: `discreet argus file.arb`",
    ".rda": "a description of records. Name the file that it describes, with metadata='file.rda'",
    ".hst": "a list of cells with their status for τ-ARGUS. A batch names it in <APRIORI>",
    ".grc": "a recoding of τ-ARGUS. A batch names it in <RECODE>",
    ".tab": "a table of τ-ARGUS, which a batch names in <OPENTABLEDATA>. Text with tabs and a line "
    "of names is read where its name ends in .tsv",
}


def kind_of(path: str, form: TextForm) -> tuple[str, tuple[str, ...]]:
    """What a file is, a key of `ENDINGS`, and a note where its name says otherwise.

    Raises:
      ParameterError: The file is none of these, or an option does not go with it.
    """
    named = kind_by_name(path)
    if form.metadata is not None or (named == "text" and _metadata_beside(path)):
        named = "fixed width"
    elif named == "fixed width" and not _metadata_beside(path):
        named = "text"
    marked = _read_mark(Path(path)) if Path(path).is_file() else None
    if Path(path).is_dir():
        named = "Arrow" if any(_files_in(path, ENDINGS["Arrow"])) else "Parquet"
    kind = marked or named or ("text" if Path(path).is_file() and _is_packed(path) else None)
    if kind is None:
        shown = public_address(path) if "://" in path else path
        if hint := _NO_RECORDS.get(Path(path).suffix.lower()):
            raise ParameterError(f"{shown!r} holds no records: it is {hint}.")
        raise ParameterError(
            f"cannot tell what {shown!r} is. Give a file that ends in "
            f"{', '.join(ends[0] for ends in ENDINGS.values())}, a folder of Parquet or Arrow "
            "files, an address (s3://…, postgresql://…, spark://…), a frame, or an Ibis table."
        )
    check_options(form, kind)
    is_misnamed = marked is not None and marked != named
    return kind, (f"it is a file of {kind}, unlike its name",) if is_misnamed else ()


def check_options(form: TextForm, kind: str) -> None:
    """Refuse options that do not go with what a file is."""
    for option in form.said:
        if option not in _OPTIONS.get(kind, ()):
            takers = [k for k, options in _OPTIONS.items() if option in options]
            raise ParameterError(
                f"{option}= goes with files of {' and '.join(takers)}, not of {kind}."
            )


def _read_mark(path: Path) -> str | None:
    """What the first bytes of a file say, if they do."""
    with path.open("rb") as opened:
        first = opened.read(64)
    for place, mark, kind in _MARKS:
        if first[place:].startswith(mark):
            return kind
    for mark, what in _UNREADABLE.items():
        if first.startswith(mark):
            if mark.startswith(b"PK") and _is_spreadsheet(path):
                return "Excel"
            raise DataError(f"{path} is {what}; unpack it and open the file inside.")
    return None


def _is_spreadsheet(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise DataError(f"{path} is cut off or damaged. Copy it again.") from None
    return "content.xml" in names or any(name.startswith("xl/") for name in names)


def _is_packed(path: str) -> bool:
    with Path(path).open("rb") as opened:
        return opened.read(4).startswith(tuple(PACKED))


def _files_in(folder: str, endings: Sequence[str]) -> list[str]:
    return sorted(str(file) for end in endings for file in Path(folder).rglob(f"*{end}"))


def _metadata_beside(path: str) -> Path | None:
    """The `.rda` file of the same name, if there is one."""
    file = Path(path).with_suffix(".rda")
    return file if Path(path).is_file() and file.is_file() else None


def read_arrow(backend: Any, path: str, form: TextForm, table: str | None) -> Content:
    """An Arrow file, or all those in a folder; the engine streams them."""
    ds = needs_arrow("an Arrow file", "dataset")
    files = _files_in(path, ENDINGS["Arrow"]) if Path(path).is_dir() else [path]
    name = fresh_name("records", backend.list_tables())
    return Content(backend.register(name, ds.dataset(files, format="ipc")))


def read_json_lines(backend: Any, path: str, form: TextForm, table: str | None) -> Content:
    """A file with an object on each line; texts stay texts, dates become dates."""
    return Content(backend.read_json(path, format="newline_delimited"))


def read_fixed_width(backend: Any, path: str, form: TextForm, table: str | None) -> Content:
    """A file of τ-ARGUS with the `.rda` that describes it; hierarchies come along."""
    described = form.metadata or _metadata_beside(path)
    if described is None:
        raise ParameterError(f"name the .rda file that describes {path}, metadata='file.rda'.")
    metadata = read_metadata(Path(described))
    rows = read_rows(path, metadata, decimal=form.decimal or ".")
    lists: Hierarchies = {}
    for variable in metadata.dimensions:
        found = [code for code in rows.column(variable.name).unique().to_pylist() if code]
        tree = variable.hierarchy(Path(described).parent, found)
        if tree is not None:
            lists[variable.name] = (tree,)
    return Content(memtable(rows), lists, (f"its columns are described by {described}",))


def read_excel(backend: Any, path: str, form: TextForm, table: str | None) -> Content:
    """A sheet of a spreadsheet, whose names of columns stand in row `header`."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook  # optional package
    except ImportError:
        raise MissingDependencyError("an Excel file", "python-calamine", "files") from None
    try:
        book = CalamineWorkbook.from_path(path)
        name = _sheet(book.sheet_names, table, path)
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    except (CalamineError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is damaged or no spreadsheet ({type(error).__name__}).") from None
    rows = [row for row in rows[(form.header or 1) - 1 :] if any(cell != "" for cell in row)]
    if not rows:
        raise DataError(f"sheet {name!r} of {path} is empty; names of columns were expected.")
    places = [k for k in range(len(rows[0])) if any(row[k] != "" for row in rows)]
    names = [str(rows[0][k]).strip() or f"column{k}" for k in places]
    columns = {}
    for column, k in zip(names, places, strict=True):
        if column in columns:
            raise DataError(f"sheet {name!r} of {path} has two columns {column!r}; rename one.")
        columns[column] = [None if row[k] == "" else row[k] for row in rows[1:]]
    return _in_memory(columns, {}, ())


def _sheet(names: Sequence[str], wanted: str | None, path: str) -> str:
    if wanted is not None and wanted not in names:
        raise UnknownNameError(f"sheet of {path}", wanted, names)
    if wanted is None and len(names) > 1:
        listed = ", ".join(map(repr, names))
        raise ParameterError(f"{path} holds these sheets: {listed}. Name one with table=.")
    return wanted or names[0]


def read_statistical(backend: Any, path: str, form: TextForm, table: str | None) -> Content:
    """A file of SPSS, SAS or Stata; labels of values are code lists where every value has one."""
    try:
        import pyreadstat  # optional package
    except ImportError:
        raise MissingDependencyError(
            "a file of SPSS, SAS or Stata", "pyreadstat", "files"
        ) from None
    readers = {
        "SPSS": pyreadstat.read_por if path.lower().endswith(".por") else pyreadstat.read_sav,
        "Stata": pyreadstat.read_dta,
        "SAS": pyreadstat.read_xport if path.lower().endswith(".xpt") else pyreadstat.read_sas7bdat,
    }
    try:
        columns, about = readers[kind_of(path, form)[0]](path, output_format="dict")
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError) as error:
        raise DataError(f"{path} is damaged or cut off: {error}.") from None
    if about.number_rows is not None and columns:
        have = len(next(iter(columns.values())))
        if have < about.number_rows:
            raise DataError(f"{path} is cut off: {have:,} of {about.number_rows:,} records.")
    blank = {n: [None if v == "" else v for v in values] for n, values in columns.items()}
    return _in_memory(blank, about.variable_value_labels, ())


def _in_memory(
    columns: dict[str, list[Any]], labels: dict[str, dict[Any, str]], notes: tuple[str, ...]
) -> Content:
    """Records of plain values, with a code list for each column whose values all have labels."""
    arrays, partly = {}, []
    lists: Hierarchies = {}
    for name, values in columns.items():
        arrays[name], note = _array(name, values)
        notes += note
        if name in labels:
            texts = {canonical(value): str(text) for value, text in labels[name].items()}
            found = {canonical(value) for value in arrays[name].unique().drop_null().to_pylist()}
            if found <= texts.keys():
                root = free_total(texts)
                lists[name] = (Hierarchy(root, dict.fromkeys(texts, root), texts),)
            else:
                partly.append(repr(name))
    if partly:
        notes += (
            f"not every value of {', '.join(partly)} has a label, so these make no code list",
        )
    return Content(memtable(Frame(arrays)), lists, notes)


def _array(name: str, values: list[Any]) -> tuple[Column, tuple[str, ...]]:
    """A column of one type; numbers beside texts become texts."""
    kinds = {_kind(value) for value in values if value is not None}
    if kinds <= {"numbers"}:
        is_whole = all(value is None or float(value).is_integer() for value in values)
        if is_whole and all(value is None or abs(value) < 2**53 for value in values):
            return Column([None if v is None else int(v) for v in values], "int64"), ()
        return Column(values, "float64"), ()
    if len(kinds) == 1:
        return Column(values), ()
    texts = Column([None if value is None else canonical(value) for value in values], "string")
    return texts, (f"column {name!r} holds {' and '.join(sorted(kinds))}; all become texts",)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, (int, float)):
        return "numbers"
    if isinstance(value, (date, datetime)):
        return "dates"
    return "texts" if isinstance(value, str) else type(value).__name__


READERS: dict[str, Callable[[Any, str, TextForm, str | None], Content]] = {
    "Arrow": read_arrow,
    "JSON lines": read_json_lines,
    "fixed width": read_fixed_width,
    "Excel": read_excel,
    **dict.fromkeys(("SPSS", "Stata", "SAS"), read_statistical),
}
"""Readers by what a file is; text, Parquet and DuckDB files are the engine's own."""


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
    pa, ds, fs = (needs_arrow("an object store", part) for part in ("", "dataset", "fs"))
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
