"""Tables and releases on disk: Parquet with JSON metadata, marked confidential or public."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.columns import Column
from discreet.design.axis import Axis, Level
from discreet.design.codes import canonical_array
from discreet.design.formula import NamedTerms, Term
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.design.structured import StructuredDesign
from discreet.design.support import spread
from discreet.errors import ConfidentialError, DataError
from discreet.files import EVERYONE, OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.frames import Frame, concat, value_names
from discreet.parquet import parquet_metadata, read_parquet, write_parquet
from discreet.tables.keys import KeyConvention
from discreet.tables.magnitude import (
    ABSOLUTE,
    CONTRIBUTORS,
    LARGEST_OF,
    NOBODY,
    OWNER_OF,
    CellContributions,
    Contributions,
    sum_column,
)
from discreet.tables.protected import PublicTable
from discreet.tables.show import NO_QUALITY, frame_of, inner_frame_of, mask_missing_quality
from discreet.tables.sketches import Passage, RecordSketches
from discreet.tables.statement import Statement
from discreet.tables.truth import VALUE_COLUMNS, Bounds, CellValues, DataSet, TrueTable

if TYPE_CHECKING:
    from discreet.design.base import Design


FORMAT = 2
_HEADER, _SUPPORT = "discreet", "discreet.support"
_COLUMNS = ("cell", *VALUE_COLUMNS, "value", "status", "quality", "precision")


def save_table(table: TrueTable, path: str | Path) -> Path:
    """Write a confidential table, readable by its owner only."""
    check_table_name(path)
    parts = [_mark_part(table.to_frame(), "published", table.design)]
    if table.inner is not None:
        parts.append(_mark_part(table.inner_to_frame(), "inner", table.design))
    rule, given = table.convention, table.contributions
    header = {
        "side": "confidential",
        "convention": [rule.name, rule.modulus, rule.edge],
        "data_set": asdict(table.data_set),
        "inner": table.inner is not None,
        "adds_up": table.adds_up,
        "contributions": given
        and {
            "value": given.value,
            "largest": given.largest.shape[1],
            "is_weighted": given.is_weighted,
            "may_be_negative": given.may_be_negative,
        },
        "ledger": table.ledger_path,
        "passage": table.passage.to_json(),
        "sketches": table.sketches and table.sketches.to_json(),
    }
    return _write(concat(parts), header, table.design, path, OWNER_ONLY)


def check_table_name(path: str | Path) -> None:
    """Refuse a name that promises another format than a table is stored in."""
    ending_of(path, PARQUET, "a table with true counts is stored as Parquet for its owner alone; ")


def save_release(release: PublicTable, path: str | Path) -> Path:
    """Write a public release; anything else is refused."""
    if not isinstance(release, PublicTable):
        raise ConfidentialError("only a release may be written as public; protect the table first.")
    columns = {
        "value": release.z,
        "status": release.status,
        "quality": mask_missing_quality(release.quality),
        "precision": release.precision,
    }
    given = {name: values for name, values in columns.items() if values is not None}
    design, parts = release.design, [frame_of(release.design, given)]
    if release.y is not None:
        parts.append(inner_frame_of(design, {"value": release.y}, np.flatnonzero(release.y)))
    marked = [_mark_part(c, p, design) for c, p in zip(parts, ("published", "inner"), strict=False)]
    return _write(concat(marked), release_header(release), design, path, EVERYONE)


def release_header(release: PublicTable) -> dict[str, Any]:
    """What a file says of a release beside its values and its design."""
    return {
        "side": "public",
        "unit": release.unit,
        "statement": release.statement.to_json(),
        "inner": release.y is not None,
        "types": [str(v.dtype) for v in (release.z, release.y) if v is not None],
        **({"table": release.table_name} if release.table_name else {}),
    }


def load(path: str | Path) -> TrueTable | PublicTable:
    """A table or a release, as the Parquet file is marked."""
    content, header = _read(path)
    return _release(content, header) if header["side"] == "public" else _table(content, header)


def load_table(path: str | Path) -> TrueTable:
    """A confidential table."""
    content, header = _read(path)
    if header["side"] != "confidential":
        raise DataError(
            f"{path} is a release, not a table with true counts. Name the file that `discreet "
            "tabulate` or `table.save` wrote."
        )
    return _table(content, header)


def load_release(path: str | Path) -> PublicTable:
    """A public release; a confidential file is refused."""
    content, header = _read(path)
    if header["side"] != "public":
        raise ConfidentialError(
            f"{path} holds true counts and is marked confidential; protect it before publishing."
        )
    return _release(content, header)


def is_of_table(notes: Mapping[str, bytes]) -> bool:
    """Whether the notes of a Parquet file are those of a table or a release, and not of records."""
    return "design" in json.loads(notes.get(_HEADER, b"{}"))


def _names(design: Design) -> dict[str, str]:
    """The columns of a file by what they hold; see `value_names`."""
    return value_names([axis.name for axis in design.axes], _COLUMNS)


def _mark_part(content: Frame, part: str, design: Design) -> Frame:
    marks = Column.of_codes(np.zeros(len(content), dtype=np.int32), [part])
    return content.with_column(_names(design)["cell"], marks, 0)


def _write(
    content: Frame, header: dict[str, Any], design: Design, path: str | Path, mode: int
) -> Path:
    shape = {"design": design_to_json(design), "columns": _names(design)}
    metadata = {_HEADER: json.dumps({"format": FORMAT, **header, **shape}).encode()}
    support = packed_support(design)
    if support is not None:
        metadata[_SUPPORT] = support
    with written_whole(path, mode) as temporary:
        write_parquet(temporary, content, metadata)
    return Path(path)


def _read(path: str | Path) -> tuple[Frame, dict[str, Any]]:
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder; the file of a table or release was expected.")
    try:
        metadata = parquet_metadata(path)
    except DataError as error:
        if not Path(path).is_file():
            raise
        raise DataError(
            f"{path} is no Parquet file, or a damaged one. Name a table that `discreet tabulate` "
            "wrote or a release of `discreet protect`; records are tabulated first."
        ) from error
    if _HEADER not in metadata:
        raise DataError(
            f"{path} is a Parquet file, but not a table or release written by discreet. "
            "Tabulate it first: `discreet tabulate`."
        )
    header = {"columns": {name: name for name in _COLUMNS}, **json.loads(metadata[_HEADER])}
    check_format(header, path)
    header["support"] = metadata.get(_SUPPORT)
    return read_parquet(path), header


def check_format(header: dict[str, Any], path: str | Path) -> None:
    """Refuse a file that was written by another version in a way this one does not read."""
    if header["format"] > FORMAT:
        raise DataError(f"{path} was written by a newer version of discreet; update it to read it.")
    if header["format"] < FORMAT and header["side"] == "public":
        raise DataError(
            f"{path} was written by version 0.1, whose statements and units said too much or too "
            "little. Make the release again."
        )


def _table(content: Frame, header: dict[str, Any]) -> TrueTable:
    name, modulus, edge = header["convention"]
    rule = KeyConvention(name, modulus, edge)
    published, inner = _parts(content, header["columns"])
    design, where = _design(inner, header)
    values = CellValues(**_arrays(published, header["columns"]))
    spec = header.get("data_set")  # that of a table written by version 0.1 has no name
    data_set = DataSet() if spec is None else DataSet(**spec | {"bounds": Bounds(**spec["bounds"])})
    sketches = header.get("sketches")
    parts: dict[str, Any] = {
        "data_set": data_set,
        "ledger": header.get("ledger"),
        "passage": Passage(**header.get("passage", {})),
        "sketches": sketches and RecordSketches.from_json(sketches),
        "adds_up": header.get("adds_up", True),
    }
    if header.get("contributions"):
        inside = (inner, where) if header["inner"] else None
        parts["contributions"] = _contributions(header["contributions"], design, published, inside)
    if not header["inner"]:
        return TrueTable(design, values, None, rule, **parts)
    arrays = _arrays(inner, header["columns"]).items()
    found = {k: spread(v, where, design.n_inner) for k, v in arrays}
    return TrueTable(design, values, CellValues(**found), rule, **parts)


def _release(content: Frame, header: dict[str, Any]) -> PublicTable:
    names = header["columns"]
    published, inner = _parts(content, names)
    design, where = _design(inner, header)
    optional: dict[str, Any] = {
        name: _array(published, names[name])
        for name in ("status", "precision")
        if names[name] in published.column_names
    }
    if names["quality"] in published.column_names:
        quality = published.column(names["quality"]).fill_null(NO_QUALITY)
        optional["quality"] = quality.to_numpy()
    optional["table_name"] = header.get("table", "")
    z = _array(published, names["value"]).astype(header["types"][0])
    statement, unit = Statement.from_json(header["statement"]), header["unit"]
    if not header["inner"]:
        return PublicTable(design, z, statement, unit, **optional)
    y = _array(inner, names["value"]).astype(header["types"][1])
    return PublicTable(design, z, statement, unit, spread(y, where, design.n_inner), **optional)


def _parts(content: Frame, names: Mapping[str, str]) -> tuple[Frame, Frame]:
    is_inner = content.column(names["cell"]).equal("inner")
    return content.filter(~is_inner), content.filter(is_inner)


def _arrays(content: Frame, names: Mapping[str, str]) -> dict[str, Array]:
    return {
        field: _array(content, names[name])
        for name, field in VALUE_COLUMNS.items()
        if names[name] in content.column_names
    }


def _array(content: Frame, name: str) -> Array:
    return content.column(name).to_numpy()


def _design(inner: Frame, header: dict[str, Any]) -> tuple[StructuredDesign, Whole]:
    """The design, and the positions of the stored inner cells in it."""
    axes, terms = _axes_and_terms(header["design"])
    leaves = []
    for axis in axes:
        codes, index = canonical_array(inner.column(axis.name))
        leaves.append(np.array([axis.leaf_position[c] for c in codes], dtype=np.int64)[index])
    if header["design"]["support"] == "occurring":
        sparse = SparseDesign(axes, terms, leaves, occurring=True)
        return sparse, np.arange(sparse.n_inner)
    design = design_from_json(header["design"], header["support"])
    if not axes:
        return design, np.zeros(len(inner), dtype=np.int64)
    return design, design.inner_at(np.ravel_multi_index(leaves, design.shape))


def _axes_and_terms(spec: Mapping[str, Any]) -> tuple[list[Axis], list[Term]]:
    terms = [tuple(t) for t in spec["terms"]]
    if "tables" in spec:  # files before 0.3 have no names
        terms = NamedTerms({n: [tuple(t) for t in named] for n, named in spec["tables"].items()})
    return [axis_from_json(a) for a in spec["axes"]], terms


def design_from_json(spec: Mapping[str, Any], support: bytes | None) -> StructuredDesign:
    """The inverse of `design_to_json` and `packed_support`, for a support that is public."""
    axes, terms = _axes_and_terms(spec)
    if support is None:
        return ProductDesign(axes, terms)
    shape = tuple(len(axis) for axis in axes)
    bits = np.frombuffer(zlib.decompress(support), dtype=np.uint8)
    possible = np.unpackbits(bits, count=math.prod(shape))
    return SparseDesign(axes, terms, np.unravel_index(np.flatnonzero(possible), shape))


def packed_support(design: Design) -> bytes | None:
    """The inner cells of a design with structural zeros, packed; `None` for other designs."""
    if design.support != "declared":
        return None
    structured = design.require_variables("labels, so it cannot be stored")
    possible = np.zeros(structured.shape, dtype=bool)
    possible[tuple(design.inner_codes())] = True
    return zlib.compress(np.packbits(possible).tobytes())


def design_to_json(design: Design) -> dict[str, Any]:
    """Axes, margins and kind of support of a structured design."""
    design = design.require_variables("labels, so it cannot be stored")
    names = {"tables": design.tables} if isinstance(design.terms, NamedTerms) else {}
    return {
        "support": design.support,
        "terms": [list(t) for t in design.terms],
        **names,
        "axes": [axis_to_json(axis) for axis in design.axes],
    }


def axis_to_json(axis: Axis) -> dict[str, Any]:
    """An axis as plain data."""
    levels = [{"name": v.name, "codes": v.codes, "group": v.group.tolist()} for v in axis.levels]
    return {
        "name": axis.name,
        "leaves": axis.leaves,
        "total": axis.total,
        "aliases": axis.total_aliases,
        "labels": dict(axis.labels),
        "levels": levels,
        "declared": axis.declared,
    }


def axis_from_json(spec: dict[str, Any]) -> Axis:
    """The inverse of `axis_to_json`."""
    levels = tuple(
        Level(v["name"], tuple(v["codes"]), np.array(v["group"], dtype=np.int32))
        for v in spec["levels"]
    )
    return Axis(
        spec["name"],
        tuple(spec["leaves"]),
        levels,
        spec["total"],
        tuple(spec["aliases"]),
        spec["labels"],
        spec.get("declared", False),
    )


Stored = tuple[Frame, Array]
"""Rows of a file, and the place of each."""


def _contributions(
    header: dict[str, Any], design: Design, published: Frame, inner: Stored | None
) -> Contributions:
    """Contributions from the rows of published cells, and of inner cells that are not empty."""
    stored: list[Stored] = [(published, np.arange(design.n_published))]
    stored += [] if inner is None else [inner]
    sizes = (design.n_published, design.n_inner)
    names = _contribution_names(header, [axis.name for axis in design.axes])
    named = (rows.column(name).unique() for rows, _ in stored for name in names["owner"])
    owners = tuple(sorted({who for column in named for who in column.drop_null().to_pylist()}))
    cells = [
        _cells(rows, where, n, names, owners)
        for (rows, where), n in zip(stored, sizes, strict=False)
    ]
    said = {name: header[name] for name in ("is_weighted", "may_be_negative")}
    of_inner = None if inner is None else cells[1]
    return Contributions(header["value"], cells[0], of_inner, owners, **said)


def _contribution_names(header: dict[str, Any], variables: list[str]) -> dict[str, Any]:
    """The columns of the file by what they hold."""
    largest = range(1, header["largest"] + 1)
    wished = [sum_column(header["value"]), CONTRIBUTORS, ABSOLUTE]
    wished += [f"{kind}{place}" for kind in (LARGEST_OF, OWNER_OF) for place in largest]
    found = value_names(variables, wished)
    return {
        "sum": found[sum_column(header["value"])],
        "count": found[CONTRIBUTORS],
        "absolute": found[ABSOLUTE] if header["may_be_negative"] else None,
        "largest": [found[f"{LARGEST_OF}{place}"] for place in largest],
        "owner": [found[f"{OWNER_OF}{place}"] for place in largest],
    }


def _cells(
    rows: Frame, where: Array, n: int, names: dict[str, Any], owners: tuple[str, ...]
) -> CellContributions:
    """Contributions in their places; cells without a row have none."""
    place = {owner: i for i, owner in enumerate(owners)} | {None: NOBODY}
    cells = CellContributions.none(n, len(names["largest"]))
    cells.sum[where] = rows.column(names["sum"]).to_numpy()
    cells.absolute[where] = rows.column(names["absolute"] or names["sum"]).to_numpy()
    cells.count[where] = rows.column(names["count"]).to_numpy()
    for k, (size, owner) in enumerate(zip(names["largest"], names["owner"], strict=True)):
        cells.largest[where, k] = rows.column(size).to_numpy()
        cells.owner[where, k] = [place[who] for who in rows.column(owner).to_pylist()]
    return cells
