"""Records for people: their columns and what these mean, and no record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords


def text_of(data: UnitRecords) -> str:
    """The columns of some records, with types and roles."""
    lines = [f"Microdata (confidential): {data.origin}"]
    lines.append(f"  data set {data.data_set.name!r}, edition {data.data_set.edition!r}")
    width = max(map(len, data.columns), default=0)
    for name, kind in data.table.schema().items():
        type_name = str(kind.copy(nullable=True))
        lines.append(f"  {name:<{width}}  {type_name:<9} {_role(data, name)}".rstrip())
    if data.record_keys is not None:
        lines.append(f"  record keys in a side table, by {data.record_keys.id}")
    if data.has_keys:
        lines.append(f"  keys: {data.data_set.keys}, convention {data.convention.name}")
    if data.structural_zeros:
        lines.append(f"  {len(data.structural_zeros)} rules on structural zeros")
    lines += [f"  note: {note}" for note in data.notes]
    return "\n".join(lines)


def _role(data: UnitRecords, name: str) -> str:
    bounds = data.data_set.bounds
    most = "" if bounds.weight is None else f", at most {bounds.weight:g}"
    roles = {
        data.id: "id",
        data.key: "record key",
        data.weight: f"weight{most}",
        data.person: f"person, at most {bounds.max_records} records",
    }
    if name in roles:
        return roles[name]
    trees = data.hierarchies.get(name, ())
    return "; ".join(f"{len(t.leaves)} codes in {t.depth} levels" for t in trees)
