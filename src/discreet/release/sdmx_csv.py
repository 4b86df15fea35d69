"""Releases as SDMX-CSV: value, observation status and confidentiality in columns of their own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from discreet.design.frames import value_names
from discreet.design.release import CellStatus, Release
from discreet.design.show import frame_of
from discreet.errors import ConfidentialError, ParameterError
from discreet.files import written_whole

NORMAL, SUPPRESSED, CANNOT_EXIST, ESTIMATED = "A", "Q", "M", "E"
"""Codes of `CL_OBS_STATUS`: normal, suppressed, data that cannot exist, estimated."""

FREE, CONFIDENTIAL = "F", "C"
"""Codes of `CL_CONF_STATUS`: free for publication, confidential."""

_DATAFLOW = re.compile(r"[A-Za-z][\w.-]*:[\w@$-]+\([\w.]+\)")
_CODES = {
    CellStatus.published: (NORMAL, FREE),
    CellStatus.suppressed: (SUPPRESSED, CONFIDENTIAL),
    CellStatus.structural_zero: (CANNOT_EXIST, FREE),
    CellStatus.below_threshold: (SUPPRESSED, CONFIDENTIAL),
    CellStatus.decimal: (ESTIMATED, FREE),
}


def write_sdmx_csv(release: Release, dataflow: str, path: str | Path | None) -> str:
    """The published cells as SDMX-CSV 1.0; see `Release.to_sdmx_csv`."""
    if not isinstance(release, Release):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    if not _DATAFLOW.fullmatch(dataflow):
        raise ParameterError(
            f"a data flow is named by agency, id and version, e.g. 'EXAMPLE:TURNOVER(1.0)', got "
            f"{dataflow!r}."
        )
    text = _text(release, dataflow)
    if path is not None:
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    return text


def _text(release: Release, dataflow: str) -> str:
    import pyarrow as pa
    import pyarrow.csv

    n = len(release.z)
    status = np.zeros(n, dtype=np.int8) if release.status is None else release.status
    observed, shared = np.array([_CODES[kind] for kind in CellStatus]).T
    empty = release.hidden | (status == CellStatus.structural_zero)
    values = {
        "OBS_VALUE": np.ma.array(release.z, mask=empty),
        "OBS_STATUS": observed[status],
        "CONF_STATUS": shared[status],
    }
    cells = frame_of(release.design, values)
    names = value_names(cells.column_names, ["DATAFLOW"])
    flow = pa.array([dataflow] * n, pa.string())
    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    pyarrow.csv.write_csv(cells.add_column(0, names["DATAFLOW"], flow), sink, options)
    content: bytes = sink.getvalue().to_pybytes()
    return content.decode("utf-8")
