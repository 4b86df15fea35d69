"""Formats with a row for each cell: Parquet with typed columns, and SDMX-CSV 1.0."""

from __future__ import annotations

import json
import re

import numpy as np

from discreet.arrays import Index
from discreet.columns import Column
from discreet.errors import ParameterError
from discreet.frames import Frame, value_names
from discreet.parquet import parquet_bytes
from discreet.release.cube import Cube
from discreet.release.formats.columns import categories, long_table, present, symbols
from discreet.release.formats.csv import csv_bytes
from discreet.release.formats.json import describe
from discreet.release.formats.write import PLAIN, Options
from discreet.tables.protected import CellStatus

METADATA = "discreet_table"
"""The key of the metadata, whose value is JSON."""


class ParquetWriter:
    """Parquet with what is known of the table as JSON in its metadata."""

    name, title = "parquet", "Parquet"
    ending, media_type = ".parquet", "application/vnd.apache.parquet"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.with_defaults("long", "codes")
        said = json.dumps(describe(cube, chosen), ensure_ascii=False).encode()
        return parquet_bytes(long_table(cube, chosen), {METADATA: said})


NORMAL, SUPPRESSED, CANNOT_EXIST, ESTIMATED = "A", "Q", "M", "E"
"""Codes of `CL_OBS_STATUS`: normal, suppressed, data that cannot exist, estimated."""
FREE, CONFIDENTIAL = "F", "C"
"""Codes of `CL_CONF_STATUS`: free for publication, confidential."""
_TIME = "TIME_PERIOD"
_DATAFLOW = re.compile(r"[A-Za-z][\w.-]*:[\w@$-]+\([\w.]+\)")
_CODES = {
    CellStatus.published: (NORMAL, FREE),
    CellStatus.suppressed: (SUPPRESSED, CONFIDENTIAL),
    CellStatus.structural_zero: (CANNOT_EXIST, FREE),
    CellStatus.below_threshold: (SUPPRESSED, CONFIDENTIAL),
    CellStatus.decimal: (ESTIMATED, FREE),
}


class SdmxCsvWriter:
    """SDMX-CSV; a cell that is sensitive and one that protects it have the same codes.

    `COMMENT_DSET` holds title, notes and statement. They belong to the data set, so they are
    reported once, with the first observation. Nothing in the file runs as a formula.
    """

    name, title = "sdmx-csv", "SDMX-CSV"
    ending, media_type = ".sdmx.csv", "application/vnd.sdmx.data+csv; version=1.0.0"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content: codes, with labels behind a colon where both are asked for."""
        flow, places = dataflow_of(options), present(cube)
        status = cube.status.reshape(-1)[places]
        empty = symbols(cube).reshape(-1)[places] != ""
        observed, shared = np.array([_CODES[kind] for kind in CellStatus]).T
        codes = _dimensions(cube, places, options)
        said = " ".join(f"{heading}: {text}" for heading, text in options.about.said(cube))
        values = {
            "OBS_VALUE": Column(cube.values.reshape(-1)[places], mask=empty),
            "OBS_STATUS": Column(observed[status], "string"),
            "CONF_STATUS": Column(shared[status], "string"),
            "COMMENT_DSET": Column([said or None] + [None] * (len(places) - 1), "string"),
        }
        names = value_names(codes, ["DATAFLOW", *values])
        columns = {names["DATAFLOW"]: Column([flow] * len(places), "string"), **codes}
        cells = Frame({**columns, **{names[k]: column for k, column in values.items()}})
        return csv_bytes(cells)


def _dimensions(cube: Cube, places: Index, options: Options) -> dict[str, Column]:
    """Columns of codes, or of codes and labels, `N: North`, as SDMX-CSV writes them."""
    codes = categories(cube, places, "codes")
    # by this name programs find the periods of a series
    names = {name: _TIME if name == options.time else name for name in codes}
    if options.labels != "both":
        return {names[name]: column for name, column in codes.items()}
    found = {}
    for axis, (name, column) in zip(cube.axes, codes.items(), strict=True):
        label = {entry.code: entry.label for entry in axis.entries}
        texts = [f"{code}: {label[code]}" for code in column.to_pylist()]
        found[f"{names[name]}: {axis.label}"] = Column(texts, "string")
    return found


def dataflow_of(options: Options) -> str:
    """The data flow that was asked for, or one made of the table's name."""
    if not options.dataflow:
        name = re.sub(r"[^A-Za-z0-9_]+", "_", options.about.name).strip("_").upper()
        return f"LOCAL:{name or 'TABLE'}(1.0)"
    if not _DATAFLOW.fullmatch(options.dataflow):
        raise ParameterError(
            f"a data flow is named by agency, id and version, e.g. 'EXAMPLE:TURNOVER(1.0)', got "
            f"{options.dataflow!r}."
        )
    return options.dataflow
