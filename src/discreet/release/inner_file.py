"""Inner cells of a release beside its CSV file: those that are not zero, a row each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.design.axis import Axis
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread
from discreet.errors import DataError
from discreet.files import written_whole
from discreet.frames import value_names
from discreet.release.formats.csv import csv_bytes
from discreet.release.formats.inert import inert_text

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.public import PublicTable


def inner_file(target: Path) -> Path:
    """Where the inner cells of a CSV file are: `release.inner.csv` beside `release.csv`."""
    return target.with_suffix(".inner.csv")


def write_inner(release: PublicTable, target: Path) -> None:
    """Write the inner cells, where they are part of the release."""
    if release.y is None:
        return
    content = csv_bytes(release.inner_to_arrow())
    with written_whole(inner_file(target)) as temporary:
        temporary.write_bytes(content)


def read_inner(target: Path, design: StructuredDesign, unit: str, kind: np.dtype[Any]) -> Array:
    """The inner cells beside a CSV file, in the design's order.

    Args:
      target: The CSV file.
      design: The design of the release.
      unit: What the values are.
      kind: Their type.
    """
    path = inner_file(target)
    if not path.is_file():
        raise DataError(
            f"{target} has no inner cells beside it: {path.name} was expected. Keep the files of a "
            "release together."
        )
    values = value_names([axis.name for axis in design.axes], (unit,))[unit]
    cells = _cells(path, design, values, kind)
    leaves = [_leaves(cells, axis, path) for axis in design.axes]
    places = _places(leaves, design, path) if leaves else np.zeros(len(cells), dtype=np.int64)
    y = cells.column(inert_text(values)).to_numpy().astype(kind)
    return spread(y, places, design.n_inner)


def _cells(path: Path, design: StructuredDesign, values: str, kind: np.dtype[Any]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv

    types = {inert_text(axis.name): pa.string() for axis in design.axes}
    types[inert_text(values)] = pa.from_numpy_dtype(kind)
    try:
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types, include_columns=types),
        )
    except (pa.ArrowException, KeyError) as error:
        raise _other_cells(path) from error


def _leaves(cells: pa.Table, axis: Axis, path: Path) -> Whole:
    """For each row the position of its code on an axis."""
    place = {inert_text(code): k for k, code in enumerate(axis.leaves)}
    texts = cells.column(inert_text(axis.name)).combine_chunks().dictionary_encode()
    found = [place.get(text, -1) for text in texts.dictionary.to_pylist()]
    if -1 in found:
        raise _other_cells(path)
    leaves: Whole = np.array(found, dtype=np.int64)[texts.indices.to_numpy()]
    return leaves


def _places(leaves: list[Whole], design: StructuredDesign, path: Path) -> Whole:
    """Positions of the rows among the inner cells."""
    known = np.ravel_multi_index(tuple(design.inner_codes()), design.shape)
    asked = np.ravel_multi_index(tuple(leaves), design.shape)
    order = np.argsort(known, kind="stable")
    found = np.searchsorted(known, asked, sorter=order)
    places = order[np.minimum(found, len(known) - 1)] if len(known) else found
    if len(np.unique(asked)) < len(asked) or (known[places] != asked).any():
        raise _other_cells(path)
    return places.astype(np.int64)


def _other_cells(path: Path) -> DataError:
    return DataError(
        f"{path} does not hold the inner cells of the release beside it; one of the files was "
        "changed or belongs to another release."
    )
