"""Releases in files: Parquet, or CSV with the statement beside it, as the file's name says."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, Real, Whole, Whole32
from discreet.columns import Column, join_columns
from discreet.delimited import read_delimited
from discreet.design.axis import Axis
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread
from discreet.errors import ConfidentialError, DataError
from discreet.files import PARQUET, ending_of, write_text, written_whole
from discreet.frames import Frame, value_names
from discreet.release.cube import drop_float_noise
from discreet.release.formats.columns import inert, inert_text
from discreet.release.formats.csv import csv_bytes
from discreet.tables.protected import STATUS_NAMES, PublicTable
from discreet.tables.show import NO_QUALITY
from discreet.tables.statement import Statement
from discreet.tables.storage import (
    FORMAT,
    check_format,
    design_from_json,
    design_to_json,
    packed_support,
    release_header,
    save_release,
)

CSV = ".csv"
_CELLS = "the cells that the statement beside it describes"
_INNER = "the inner cells of the release beside it"


def release_ending(path: str | Path) -> str:
    """The ending of a release's file; one that cannot be written is refused."""
    return ending_of(path, (*PARQUET, CSV))


def save(release: PublicTable, path: str | Path) -> Path:
    """Write a release in the format that the file's name asks for; see `Release.save`."""
    return write_csv(release, path) if release_ending(path) == CSV else save_release(release, path)


def write_csv(release: PublicTable, path: str | Path) -> Path:
    """Write the published cells as CSV, and the statement beside them for people and programs.

    Beside `release.csv` lie `release.statement.txt` and `release.statement.json`, and
    `release.inner.csv` where inner cells are part of the release. With them `read_csv` gives the
    release back.
    """
    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    target = Path(path)
    release = replace(release, z=drop_float_noise(release.z))
    if release.y is not None:
        with written_whole(_inner_file(target)) as temporary:
            temporary.write_bytes(csv_bytes(release.inner_to_frame()))
    write_with_statement(target, release.to_frame(), release.statement, _header(release))
    return target


def write_with_statement(
    target: Path, table: Frame, statement: Statement, header: dict[str, Any]
) -> None:
    """Write a table as CSV, and beside it a statement for people and a header for programs."""
    content = csv_bytes(table)
    beside = {"txt": str(statement), "json": json.dumps(header, ensure_ascii=False)}
    for ending, text in beside.items():
        write_text(target.with_suffix(f".statement.{ending}"), text + "\n")
    with written_whole(target) as temporary:
        temporary.write_bytes(content)


def read_csv(path: str | Path) -> PublicTable:
    """A release from its CSV file, and statement and inner cells beside it.

    Rows may stand in any order. Files of older versions have no inner cells.
    """
    target = Path(path)
    header = _read_header(target)
    support = header["support"] and base64.b64decode(header["support"])
    design = design_from_json(header["design"], support)
    unit, status, quality = _value_columns(design, header["unit"])
    cells = _in_order(_read_cells(target, design, header), _labels(design), target)
    parts: dict[str, Any] = {"precision": _from_run_lengths(header["precision"])}
    parts["table_name"] = header.get("table", "")
    if status in cells.column_names:
        code = {name: k for k, name in enumerate(STATUS_NAMES)}
        texts = cells.column(status).to_pylist()
        parts["status"] = np.array([code[text] for text in texts], dtype=np.int8)
    if quality in cells.column_names:
        given = cells.column(quality).fill_null(NO_QUALITY).to_numpy()
        parts["quality"] = given.astype(header["quality"])
    if header.get("inner_file"):
        kind = np.dtype(header["types"][1])
        parts["y"] = _read_inner(target, design, header["unit"], kind)
    z = cells.column(unit).fill_null(0).to_numpy().astype(header["types"][0])
    return PublicTable(design, z, Statement.from_json(header["statement"]), header["unit"], **parts)


def _header(release: PublicTable) -> dict[str, Any]:
    """All of a release but the values in its CSV file."""
    support = packed_support(release.design)
    return {
        "format": FORMAT,
        **release_header(release),
        "inner_file": release.y is not None,
        "design": design_to_json(release.design),
        "support": support and base64.b64encode(support).decode(),
        "quality": None if release.quality is None else str(release.quality.dtype),
        "precision": _run_lengths(release.precision),
    }


def _read_header(target: Path) -> dict[str, Any]:
    beside = target.with_suffix(".statement.json")
    if not target.is_file():
        raise DataError(f"there is no file {target}.")
    if not beside.is_file():
        raise DataError(
            f"{target} has no statement beside it: {beside.name} was expected. Keep the files of a "
            "release together; a CSV file alone tells neither its margins nor what was done."
        )
    try:
        header: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError:
        header = {}
    if "format" not in header:
        raise DataError(f"{beside} is not a statement written by discreet.")
    check_format(header, beside)
    return header


def _value_columns(design: StructuredDesign, unit: str) -> list[str]:
    """The names of values, status and quality in a CSV file."""
    names = value_names([axis.name for axis in design.axes], (unit, "status", "quality"))
    return list(names.values())


def _labels(design: StructuredDesign) -> Frame:
    """The codes of the published cells as they stand in a CSV file."""
    return inert(Frame(design.label_columns()))


def _read_cells(target: Path, design: StructuredDesign, header: dict[str, Any]) -> Frame:
    unit, status, quality = _value_columns(design, header["unit"])
    kinds = dict.fromkeys([*_labels(design).column_names, status], "string")
    kinds |= {unit: str(np.dtype(header["types"][0])), quality: "int64"}
    try:
        cells = _read_columns(target).cast(kinds)
    except DataError as error:
        raise DataError(f"{target} could not be read as the CSV of a release: {error}") from error
    missing = [name for name in kinds if name not in cells.column_names]
    if set(missing) - {status, quality}:
        raise _mismatch(target, _CELLS)
    return cells


def _in_order(cells: Frame, labels: Frame, target: Path) -> Frame:
    """The cells in the design's order."""
    names = labels.column_names
    if cells.select(names) == labels:  # as they were written: nothing to sort
        return cells
    if len(cells) != (len(labels) if names else 1):
        raise _mismatch(target, _CELLS)
    both = [_shared_numbers(cells.column(name), labels.column(name)) for name in names]
    here, there = (np.lexsort([ids[k] for ids in both]) for k in (0, 1)) if names else ([0], [0])
    if any((found[here] != asked[there]).any() for found, asked in both):
        raise _mismatch(target, _CELLS)
    places = np.empty(len(cells), dtype=np.int64)
    places[there] = here
    return cells.take(places)


def _shared_numbers(found: Column, asked: Column) -> tuple[Whole32, Whole32]:
    """The texts of two columns as numbers, equal for equal texts."""
    ids, _ = join_columns([found, asked]).encoded()
    return ids[: len(found)], ids[len(found) :]


def _run_lengths(precision: Real | None) -> list[tuple[float | None, int]] | None:
    """Runs of equal precision, each with its length; infinite precision is null."""
    if precision is None:
        return None
    starts = np.flatnonzero(np.append(True, precision[1:] != precision[:-1]))
    lengths = np.diff(np.append(starts, len(precision)))
    values = (None if math.isinf(v) else v for v in precision[starts].tolist())
    return list(zip(values, lengths.tolist(), strict=True))


def _from_run_lengths(runs: Sequence[tuple[float | None, int]] | None) -> Real | None:
    if runs is None:
        return None
    values = np.array([math.inf if value is None else value for value, _ in runs])
    return np.repeat(values, [length for _, length in runs])


def _inner_file(target: Path) -> Path:
    """Where the inner cells of a CSV file are: `release.inner.csv` beside `release.csv`."""
    return target.with_suffix(".inner.csv")


def _read_inner(target: Path, design: StructuredDesign, unit: str, kind: np.dtype[Any]) -> Array:
    """The inner cells beside a CSV file, in the design's order."""
    path = _inner_file(target)
    if not path.is_file():
        raise DataError(
            f"{target} has no inner cells beside it: {path.name} was expected. Keep the files of a "
            "release together."
        )
    values = inert_text(value_names([axis.name for axis in design.axes], (unit,))[unit])
    kinds = {inert_text(axis.name): "string" for axis in design.axes} | {values: str(kind)}
    try:
        cells = _read_columns(path).select(kinds).cast(kinds)
    except (DataError, KeyError) as error:
        raise _mismatch(path, _INNER) from error
    places = np.zeros(len(cells), dtype=np.int64)
    if design.axes:
        leaves = [_leaves(cells, axis, path) for axis in design.axes]
        places = design.inner_at(np.ravel_multi_index(leaves, design.shape))
        if len(np.unique(places)) < len(places) or (places == design.n_inner).any():
            raise _mismatch(path, _INNER)
    return spread(cells.column(values).to_numpy().astype(kind), places, design.n_inner)


def _read_columns(path: Path) -> Frame:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return read_delimited(lines)


def _leaves(cells: Frame, axis: Axis, path: Path) -> Whole:
    """For each row the position of its code on an axis."""
    place = {inert_text(code): k for k, code in enumerate(axis.leaves)}
    codes, texts = cells.column(inert_text(axis.name)).encoded()
    found = [place.get(text, -1) for text in texts]
    if -1 in found or (codes < 0).any():
        raise _mismatch(path, _INNER)
    leaves: Whole = np.array(found, dtype=np.int64)[codes]
    return leaves


def _mismatch(path: Path, what: str) -> DataError:
    return DataError(
        f"{path} does not hold {what}; one of the files was changed or belongs to another release."
    )
