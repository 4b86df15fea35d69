"""DuckDB's sums of the Parquet files of a site, for whatever a table of it shows."""

import json

import duckdb
import numpy as np
import pyarrow as pa

from discreet.serve.static.cells import bases_of
from discreet.tables import CellStatus

_ADDED = (CellStatus.published, CellStatus.structural_zero)


class ParquetSums:
    """Sums of the Parquet files of a site.

    Args:
      out: The folder of the site, which has them.
    """

    def __init__(self, out):
        head = json.loads((out / "site.json").read_text(encoding="utf-8"))
        told = json.loads((out / head["site"]).read_text(encoding="utf-8"))["datasets"]
        self.files = {name: out / one["parquet"] for name, one in told.items()}
        self.connection = duckdb.connect()

    def difference(self, dataset, answer):
        """What differs between a table and the sums; nothing where each shown cell is its sum."""
        cube, query = answer.cube, answer.query
        parts = {axis.name: _parts_of(dataset, query, axis) for axis in cube.axes}
        for name, codes in query.where.items():  # the population that is counted
            leaves = {leaf for code in codes for leaf in _leaves(dataset, name, code)}
            parts[name] = [leaves.intersection(entry) for entry in parts.get(name, [leaves])]
        found = self._sums(self.files[dataset.name], parts)
        sums = np.zeros([len(entries) for entries in parts.values()])
        for *places, figure in found:
            sums[tuple(places)] = figure
        sums = sums.reshape(cube.values.shape)
        is_sum = np.isin(cube.status, _ADDED)
        # Whole numbers are equal; sums of decimals hang on their order, in the last digits of the
        # largest, since parts below zero cancel.
        slack = 0.0 if cube.values.dtype.kind == "i" else 1e-12 * np.abs(sums).max(initial=0)
        if np.allclose(sums[is_sum], cube.values[is_sum], rtol=0.0, atol=slack):
            return None
        return f"{query.address}: {cube.values} in place of DuckDB's {sums}"

    def _sums(self, file, parts):
        joins, places = [], []
        for k, (name, entries) in enumerate(parts.items()):
            rows = [(place, leaf) for place, leaves in enumerate(entries) for leaf in leaves]
            columns = [pa.array([row[j] for row in rows]) for j in range(2)]
            self.connection.register(f"m{k}", pa.table(columns, names=["place", "leaf"]))
            joins.append(f'join m{k} on m{k}.leaf = cells."{name}"')
            places.append(f"m{k}.place")
        asked = ", ".join(places)
        return self.connection.execute(
            f"select {asked}, sum(cells.count) from '{file}' as cells {' '.join(joins)} "
            f"group by {asked}"
        ).fetchall()


def _parts_of(dataset, query, axis):
    """For each entry of a table's variable the finest categories that it adds up."""
    groups = query.groups.get(axis.name, {})
    return [
        [leaf for code in groups[entry.code] for leaf in _leaves(dataset, axis.name, code)]
        if entry.code in groups and not entry.is_total
        else _leaves(dataset, axis.name, entry.code)
        for entry in axis.entries
    ]


def _leaves(dataset, name, code):
    """The codes of the file that belong to a code: the finest that are on offer."""
    variable = next(v for v in dataset.variables if v.name == name)
    base, axis = max(bases_of(variable), key=lambda base: base.size), variable.axis
    codes = (*base.codes, "(outside)")
    places = axis.code_leaves[axis.total if code in axis.total_codes else code]
    return list(dict.fromkeys(codes[base.slots[k]] for k in places))
