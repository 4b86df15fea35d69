"""Hierarchies as tables: a column of codes beside one of parents, or one column per level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from discreet.design.codes import MISSING, canonical, factorise
from discreet.design.formats.tree import CodeTree, depths_of, plant, reading_order
from discreet.errors import CodeError, ParameterError, UnknownNameError
from discreet.frames import open_frame


def read_parent_child(
    table: object,
    child: str,
    parent: str,
    label: str | None,
    root: str | None,
    level: str | None = None,
) -> CodeTree:
    """A frame with a row per code, or pairs (code, parent); no parent means the top."""
    import narwhals as nw

    if isinstance(table, (list, tuple, Iterator)):
        return plant([_pair(entry) for entry in table], root)
    names = [name for name in (child, parent, label, level) if name is not None]
    data = chosen_columns(table, names)
    rows = data.collect(backend="pyarrow") if isinstance(data, nw.LazyFrame) else data
    columns = dict(zip(names, _text_columns(rows), strict=True))
    codes, nothing = columns[child], [None] * len(columns[child])
    tree = plant([(c or "", above) for c, above in zip(codes, columns[parent], strict=True)], root)
    labels, levels = (
        {
            c: text
            for c, text in zip(codes, columns.get(name or "", nothing), strict=True)
            if c and text
        }
        for name in (label, level)
    )
    return tree._replace(labels=labels, level_names=_level_names(tree, levels) if levels else ())


def _level_names(tree: CodeTree, levels: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the depths, from the names beside the codes; each depth has one.

    The level of a root that has no row is called by its code.
    """
    depths = depths_of(tree.root, reading_order(tree.root, tree.pairs))
    found: dict[int, str] = {}
    for code, depth in sorted(depths.items(), key=lambda item: item[1]):
        name = levels.get(code, tree.root if code == tree.root else None)
        if name is not None and found.setdefault(depth, name) != name:
            raise CodeError(
                f"codes {depth} steps below the total belong to levels {found[depth]!r} and "
                f"{name!r}, but each depth has one name; rename a column 'level' that means "
                "something else"
            )
    is_complete = set(found) == set(depths.values())
    return tuple(found[depth] for depth in sorted(found)) if is_complete else ()


def _pair(entry: Sequence[object]) -> tuple[str, str | None]:
    try:
        code, parent = entry
    except (TypeError, ValueError):
        raise ParameterError(f"expected pairs (code, parent), got {entry!r:.60}") from None
    above = canonical(parent)
    is_top = not above.strip() or (above == MISSING and parent != MISSING)
    return canonical(code), None if is_top else above


def write_parent_child(tree: CodeTree) -> Any:
    """An Arrow table of child and parent, with labels and levels if there are any; root first."""
    import pyarrow as pa

    root, parents, labels, names = tree.root, dict(tree.pairs), tree.labels, tree.level_names
    columns: dict[str, list[str | None]] = {
        "child": [root, *parents],
        "parent": [None, *parents.values()],
    }
    if labels:
        columns["label"] = [labels.get(code or "") for code in columns["child"]]
    if names:
        depths = depths_of(root, parents)
        columns["level"] = [names[depths[code or ""]] for code in columns["child"]]
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in columns.items()})


def read_columns(frame: object, columns: Sequence[str], root: str) -> CodeTree:
    """Nested columns, coarsest first; a row ends at an empty cell or a repeated code."""
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        message = f"columns must be a list of different names, coarsest first; got {columns!r}"
        raise ParameterError(message)
    rows = zip(*_text_columns(distinct_rows(frame, columns)), strict=True)
    return tree_of_rows(rows, columns, root)


def tree_of_rows(
    rows: Iterable[Sequence[str | None]], columns: Sequence[str], root: str
) -> CodeTree:
    """The tree of rows that list a path from the coarsest code to the finest."""
    found: dict[str, tuple[str, int]] = {}
    for row in rows:
        parent = root
        for level, code in enumerate(_path(row, columns, root)):
            if found.setdefault(code, (parent, level)) != (parent, level):
                raise CodeError(_conflict_message(code, parent, level, found[code], columns))
            parent = code
    pairs = [(code, parent) for code, (parent, _) in found.items()]
    return CodeTree(root, pairs, level_names=(root, *columns))


def _path(row: Sequence[str | None], columns: Sequence[str], root: str) -> Sequence[str]:
    """The codes of a row down to its last one; deeper cells may be empty or repeat it."""
    path, last = [], root
    for code in row:
        if code is None or code == last:
            break
        path.append(code)
        last = code
    for position in range(len(path), len(row)):
        if row[position] not in (None, last):
            raise CodeError(
                f"code {row[position]!r} of column {columns[position]!r} stands below {last!r}, "
                f"but column {columns[len(path)]!r} between them is empty or repeats {last!r}; "
                "fill the gap with a code of its own"
            )
    return path


def _conflict_message(
    code: str, parent: str, level: int, earlier: tuple[str, int], columns: Sequence[str]
) -> str:
    other_parent, other_level = earlier
    if other_level == level:
        return (
            f"code {code!r} of column {columns[level]!r} stands under {other_parent!r} and under "
            f"{parent!r}; nested columns need one parent per code"
        )
    return (
        f"code {code!r} occurs in column {columns[other_level]!r} and in column "
        f"{columns[level]!r}; make them distinct, e.g. put the column's name before the code"
    )


def write_columns(paths: Sequence[Sequence[str | None]], names: Sequence[str]) -> Any:
    """An Arrow table with a row per leaf and a column per level."""
    import pyarrow as pa

    return pa.table([pa.array(texts, pa.string()) for texts in paths], names=list(names))


def distinct_rows(frame: object, columns: Sequence[str]) -> Any:
    """Distinct rows of some columns, collected: by first appearance, or sorted if it is lazy."""
    import narwhals as nw

    data = chosen_columns(frame, columns)
    if isinstance(data, nw.LazyFrame):
        return data.unique().sort(*columns).collect(backend="pyarrow")
    row = nw.generate_temporary_column_name(8, data.columns)
    first = data.with_row_index(row).unique(subset=list(columns), keep="first")
    return first.sort(row).drop(row)


def chosen_columns(frame: object, columns: Sequence[str]) -> Any:
    """A narwhals frame of these columns alone.

    Raises:
        UnknownNameError: The frame has no such column.
    """
    data = open_frame(frame)
    known = data.collect_schema().names()
    for name in columns:
        if name not in known:
            raise UnknownNameError("column", name, known)
    return data.select(*columns)


def _text_columns(rows: Any) -> list[list[str | None]]:
    """The columns of a collected frame as codes; None where missing or blank."""
    columns: list[list[str | None]] = []
    for name in rows.columns:
        codes, positions = factorise(rows[name].to_native())
        texts = [*(code if code.strip() else None for code in codes), None]  # -1 finds the last
        columns.append([texts[i] for i in positions.tolist()])
    return columns


def frame_categories(frame: object) -> dict[str, list[str]]:
    """The codes of pandas categoricals and polars enums, by column and in their order.

    They are a code list, but no declaration: `astype("category")` collects them from the records.
    Arrow dictionaries and polars categoricals list what was found while they were filled, so they
    have none; neither have categories that include a blank one, which cannot be a code.
    """
    import narwhals as nw

    data = open_frame(frame)
    found = {
        str(name): list(dict.fromkeys(map(canonical, _categories(data, name, dtype))))
        for name, dtype in data.collect_schema().items()
        if isinstance(dtype, (nw.Enum, nw.Categorical))
    }
    return {name: codes for name, codes in found.items() if codes and all(map(str.strip, codes))}


def _categories(data: Any, name: str, dtype: Any) -> list[Any]:
    """The categories of a column; none where its type lists what was found."""
    import narwhals as nw

    if data.implementation.is_pandas_like():
        return list(data.get_column(name).to_native().cat.categories)
    return list(dtype.categories) if isinstance(dtype, nw.Enum) else []
