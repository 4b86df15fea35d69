"""A hierarchy from a file, told apart by extension and content; SDMX also to a file.

SDMX structure messages (SDMX-ML 2.1, 3.0, 3.1; SDMX-JSON 2.0, 2.1) go through pysdmx. An SDMX tree
is either a *hierarchy* that refers to the codes of code lists, or a *code list* whose codes name
their parent. pysdmx reads both but keeps code lists flat, so the parents of a code list are looked
up in the message itself. Messages are not held to the XML schema: that of SDMX-ML 3.0 refuses
``_T`` as a parent.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from discreet.design.codes import canonical
from discreet.design.formats.tables import read_columns, read_parent_child, text_columns
from discreet.design.formats.tree import CodeTree, plant, read_nested
from discreet.errors import (
    CodeError,
    DataError,
    MissingDependencyError,
    ParameterError,
    UnknownNameError,
)
from discreet.frames import read_frame
from discreet.parquet import read_parquet

_DELIMITERS = ",;\t"
_ID = re.compile(r"[A-Za-z0-9_@$-]+")  # what SDMX allows in an id
_TOTAL = "_T"  # the code of totals by the guidelines of SDMX


def read_source(source: object, root: str | None) -> CodeTree:
    """The tree of a file or a frame; see `Hierarchy.read` for the formats."""
    if isinstance(source, (str, Path)):
        return _read_file(Path(source), root)
    frame = read_frame(source)
    return _read_table(frame, frame.column_names, root)


def _read_file(path: Path, root: str | None) -> CodeTree:
    readers: dict[str, Callable[[Path, str | None], CodeTree]] = {
        ".hrc": lambda path, root: read_hrc(path, root or "Total", "@"),
        ".xml": lambda path, root: read_sdmx(path, None, root),
        ".json": _read_json,
        ".csv": _read_csv,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnknownNameError("hierarchy format", path.suffix or path.name, readers)
    return reader(path, root)


def _read_json(path: Path, root: str | None) -> CodeTree:
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"file {str(path)!r} is not JSON: {error}") from error
    if isinstance(content, dict) and {"meta", "data"} <= content.keys():
        return read_sdmx(path, None, root)
    return read_nested(content, root)


def _read_csv(path: Path, root: str | None) -> CodeTree:
    # The csv module leaves every cell text: a frame library would read "01" as the number 1.
    text = read_text(path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    for row in body:
        if len(row) != len(header):
            raise DataError(f"file {str(path)!r}: row {row} has {len(row)} cells under {header}")
    columns = {name: [row[i] for row in body] for i, name in enumerate(header)}
    return _read_table(columns, header, root)


def _read_parquet(path: Path, root: str | None) -> CodeTree:
    table = read_parquet(path)
    return _read_table(table, table.column_names, root)


def _read_table(table: Any, names: list[str], root: str | None) -> CodeTree:
    if {"child", "parent"} <= set(names):
        label, level = (name if name in names else None for name in ("label", "level"))
        return read_parent_child(table, "child", "parent", label, root, level)
    if {"mapsFrom", "mapsTo"} <= set(names):
        return _read_maps(table, names, root)
    if {"levels", "codes"} == set(names):
        return _read_dim_list(table, root)
    return read_columns(table, names, root or "Total")


def _read_maps(table: Any, names: list[str], root: str | None) -> CodeTree:
    """Codes beside what they are added to, as the R package SSBtools has them."""
    if "sign" in names:
        (signs,) = text_columns(table, ["sign"])
        if odd := sorted({sign or "" for sign in signs} - {"1", "1.0", "+", "+1"}):
            raise CodeError(
                f"column 'sign' holds {', '.join(map(repr, odd))}; here codes are added to their "
                "group and never taken away, so write the group with the codes that it has"
            )
    return read_parent_child(table, "mapsFrom", "mapsTo", None, root)


def _read_dim_list(table: Any, root: str | None) -> CodeTree:
    """Rows of depth and code in reading order, as R's `dimList` has them; the total is '@'."""
    levels, codes = text_columns(table, ["levels", "codes"])
    rows = [(len(level or ""), code or "") for level, code in zip(levels, codes, strict=True)]
    if wrong := next((level for level in levels if set(level or "") != {"@"}), None):
        raise CodeError(
            f"column 'levels' holds {wrong!r}; it tells the depth of a code in signs: '@' for the "
            "total, '@@' below it"
        )
    if not rows:
        raise CodeError("there are no codes; the first row is the total, with the level '@'")
    (first, code), above = rows[0], 0
    if first == 1 and all(depth > 1 for depth, _ in rows[1:]) and root in (None, code):
        root, above, rows = code, 1, [(depth - 1, code) for depth, code in rows[1:]]
    return _nest(root or "Total", "row", enumerate(rows, start=1 + above))


def read_hrc(source: str | Path, root: str, leading: str) -> CodeTree:
    """Codes line by line, one level deeper than their leading signs; see `Hierarchy.from_hrc`."""
    if not leading:
        raise ParameterError("leading must be a sign such as '@', got an empty text")
    is_text = isinstance(source, str) and "\n" in source
    text = str(source) if is_text else read_text(Path(source))
    lines = []
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        code, depth = line, 1
        while code.startswith(leading):
            code, depth = code.removeprefix(leading), depth + 1
        if line:
            lines.append((number, (depth, code.strip())))
    return _nest(root, "line", lines)


def _nest(root: str, place: str, rows: Iterable[tuple[int, tuple[int, str]]]) -> CodeTree:
    """Numbered rows of depth and code, each under the last one above that is one less deep."""
    pairs: list[tuple[str, str]] = []
    path = [root]  # from the root to the code of the row before
    for number, (depth, code) in rows:
        if depth > len(path):
            raise CodeError(
                f"{place} {number}: {code!r} is {depth} levels deep under a code of depth "
                f"{len(path) - 1}; a code goes at most one level below the {place} before"
            )
        if not code:
            raise CodeError(f"{place} {number}: no code stands behind its depth")
        del path[depth:]
        pairs.append((code, path[-1]))
        path.append(code)
    return CodeTree(root, pairs)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 or, as older Windows programs write it, in Windows-1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be read: {error.strerror or error}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError as error:
        message = f"file {str(path)!r} is text in neither UTF-8 nor Windows-1252; save it as UTF-8"
        raise DataError(message) from error


def write_hrc(parents: Mapping[str, str], depths: Mapping[str, int], leading: str) -> str:
    """The text of an `.hrc` file.

    Raises:
        CodeError: A code cannot be written so that it is read back as it is.
    """
    for code in parents:
        if code != code.strip() or len(code.splitlines()) != 1 or code.startswith(leading):
            raise CodeError(
                f"code {code!r} cannot stand in an .hrc file: it begins with {leading!r}, begins "
                "or ends with a blank, or breaks the line; recode it or choose another leading="
            )
    return "".join(f"{leading * (depths[code] - 1)}{code}\n" for code in parents)


def read_digits(codes: Iterable[object], digits: str | Iterable[int], root: str) -> CodeTree:
    """Codes, of full length or ending with a level, as the leaves of `Hierarchy.from_digits`."""
    try:
        widths = [int(width) for width in (digits.split() if isinstance(digits, str) else digits)]
    except ValueError:
        widths = [-1]
    if not any(widths) or min(widths) < 0:
        message = f"digits must be numbers of characters such as '2 1 2', got {digits!r}"
        raise ParameterError(message)
    # τ-ARGUS pads its lists of digits with zeros, which end no level.
    ends = list(accumulate(width for width in widths if width))
    parents: dict[str, str] = {}
    for code in map(canonical, codes):
        if len(code) not in ends:
            raise CodeError(
                f"code {code!r} has {len(code)} characters; the levels end at "
                f"{', '.join(map(str, ends))}. Were leading zeros lost?"
            )
        prefixes = [root, *(code[:end] for end in ends if end <= len(code))]
        parents.update(zip(prefixes[1:], prefixes, strict=False))
    return CodeTree(root, list(parents.items()))


def read_sdmx(path: Path, name: str | None, root: str | None) -> CodeTree:
    """The tree of a hierarchy or code list; see `Hierarchy.from_sdmx`.

    The name may be left out when the message holds one hierarchy, or none and one code list.
    """
    structures = _read_structures(path)
    chosen = _choose(structures, name, path)
    codelists = filter(_is_codelist, structures)
    labels = {code.id: code.name for codelist in codelists for code in codelist if code.name}
    if _is_hierarchy(chosen):
        pairs = list(_hierarchy_pairs(chosen))
    else:
        parents = (_json_parents if _is_json(path) else _xml_parents)(path, _full_name(chosen))
        pairs = [(code.id, parents.get(code.id)) for code in chosen]
    tree = plant(pairs, root or _default_root(pairs))
    codes = {tree.root, *(code for code, _ in tree.pairs)}
    kept = {code: text for code, text in labels.items() if code in codes and text != code}
    names: tuple[str, ...] = ()
    level = getattr(chosen, "level", None)
    while level is not None:
        names, level = (*names, level.name or level.id), level.level
    if names and [code for code, parent in pairs if parent is None] != [tree.root]:
        names = (tree.root, *names)
    return tree._replace(labels=kept, level_names=names)


def _read_structures(path: Path) -> Sequence[Any]:
    if not path.is_file():
        raise DataError(f"file {str(path)!r} cannot be read: no such file")
    try:
        from pysdmx.io import read_sdmx as read_message

        structures = read_message(path, validate=False).structures or ()
    except ImportError as error:
        raise MissingDependencyError("reading SDMX code lists", "pysdmx", "sdmx") from error
    except Exception as error:  # a damaged message fails in pysdmx in many ways
        raise DataError(f"file {str(path)!r} is not an SDMX structure message: {error}") from error
    return [s for s in structures if _is_hierarchy(s) or _is_codelist(s)]


def _is_hierarchy(structure: Any) -> bool:
    return type(structure).__name__ == "Hierarchy"


def _is_codelist(structure: Any) -> bool:
    return type(structure).__name__ == "Codelist"


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _choose(structures: Sequence[Any], name: str | None, path: Path) -> Any:
    """The named structure, a hierarchy before a code list of the same id."""
    for is_of_kind in (_is_hierarchy, _is_codelist):
        fitting = [s for s in structures if is_of_kind(s) and name in (None, s.id, _full_name(s))]
        if len(fitting) > 1:
            found = ", ".join(_full_name(s) for s in fitting)
            raise ParameterError(f"file {str(path)!r} holds {found}; choose one with codelist=...")
        if fitting:
            return fitting[0]
    raise UnknownNameError("code list", name, [s.id for s in structures])


def _full_name(structure: Any) -> str:
    agency = getattr(structure.agency, "id", structure.agency)
    return f"{agency}:{structure.id}({structure.version})"


def _hierarchy_pairs(hierarchy: Any) -> Iterator[tuple[str, str | None]]:
    waiting: list[tuple[Any, str | None]] = [(code, None) for code in reversed(hierarchy.codes)]
    while waiting:
        entry, parent = waiting.pop()
        # A place in the hierarchy may have an id of its own; its URN names the code.
        code = str(entry.urn).rpartition(").")[2] if entry.urn else str(entry.id)
        yield code, parent
        waiting.extend((below, code) for below in reversed(entry.codes))


def _default_root(pairs: Sequence[tuple[str, str | None]]) -> str | None:
    tops = [code for code, parent in pairs if parent is None]
    if len(tops) == 1 and len(pairs) > 1:
        return None
    parents = {parent for _, parent in pairs}
    return _TOTAL if _TOTAL in tops and _TOTAL not in parents else "Total"


def _json_parents(path: Path, full_name: str) -> dict[str, str]:
    lists = json.loads(path.read_text("utf-8-sig"))["data"].get("codelists", ())
    return {
        code["id"]: code["parent"]
        for entry in lists
        if _key(entry) == full_name
        for code in entry.get("codes", ())
        if code.get("parent")
    }


def _xml_parents(path: Path, full_name: str) -> dict[str, str]:
    parents: dict[str, str] = {}
    for _, element in ElementTree.iterparse(path):
        if _tag(element) == "Codelist" and _key(element.attrib) == full_name:
            for code in element:
                for part in code:
                    if _tag(part) == "Parent":  # a <Ref id="…"/> in 2.1, plain text since 3.0
                        ref = part[0].attrib["id"] if len(part) else part.text or ""
                        parents[code.attrib["id"]] = ref
    return parents


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _key(attributes: Mapping[str, str]) -> str:
    agency, version = attributes.get("agencyID", ""), attributes.get("version", "1.0")
    return f"{agency}:{attributes.get('id')}({version})"


def write_sdmx(path: Path, tree: CodeTree, codelist: str, agency: str, version: str) -> None:
    """A code list and a hierarchy over it, both under one id; JSON by the suffix, else SDMX-ML 3.0.

    Raises:
        CodeError: A code, or the id of the code list, has signs SDMX does not allow.
    """
    for code in (codelist, tree.root, *(code for code, _ in tree.pairs)):
        if not _ID.fullmatch(code):
            raise CodeError(
                f"code {code!r} cannot stand in an SDMX code list: allowed are letters, digits "
                "and _ @ $ -; recode it"
            )
    try:
        from pysdmx.io import write_sdmx as write_message
        from pysdmx.io.format import Format

        kind = Format.STRUCTURE_SDMX_JSON_2_0_0 if _is_json(path) else Format.STRUCTURE_SDMX_ML_3_0
        write_message(_artefacts(tree, codelist, agency, version), kind, output_path=str(path))
    except ImportError as error:
        raise MissingDependencyError("writing SDMX code lists", "pysdmx", "sdmx") from error


def _artefacts(tree: CodeTree, codelist: str, agency: str, version: str) -> list[Any]:
    from pysdmx.model import Code, Codelist, HierarchicalCode, Hierarchy, LevelType

    prefix = f"urn:sdmx:org.sdmx.infomodel.codelist.Code={agency}:{codelist}({version})."
    codes = [tree.root, *(code for code, _ in tree.pairs)]
    below: dict[str, list[Any]] = {code: [] for code in codes}
    for code, parent in reversed(tree.pairs):
        entry = HierarchicalCode(code, urn=prefix + code, codes=tuple(reversed(below[code])))
        below[parent].append(entry)
    top = tuple(reversed(below[tree.root]))
    listed = [Code(code, name=tree.labels.get(code, code)) for code in codes]
    common: dict[str, Any] = {"name": codelist, "agency": agency, "version": version}
    entry = HierarchicalCode(tree.root, urn=prefix + tree.root, codes=top)
    level, names = None, tree.level_names  # a chain of levels, each holding the next finer one
    for depth in reversed(range(len(names))):
        level = LevelType(f"LEVEL_{depth}", name=names[depth], level=level)
    formal: dict[str, Any] = {"level": level, "has_formal_levels": level is not None}
    hierarchy = Hierarchy(codelist, codes=(entry,), **formal, **common)
    return [Codelist(codelist, items=tuple(listed), **common), hierarchy]
