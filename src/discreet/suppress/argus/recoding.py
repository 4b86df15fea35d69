"""τ-ARGUS recodings: `.grc` files and levels, as the new code of every old one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from discreet.design.formats.files import read_text
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError


def recoding(
    by: str, folder: Path, codes: Sequence[str], tree: Hierarchy | None
) -> tuple[dict[str, str], Hierarchy | None]:
    """The new code of each old one that changes, and the hierarchy of the new codes.

    Args:
      by: A `.grc` file, or a level: 1 keeps the codes right under the total.
      folder: Where the file lies.
      codes: The codes that occur.
      tree: The hierarchy of the codes; `None` for flat ones.
    """
    if by.isdigit():
        if tree is None:
            raise DataError(f"level {by} is asked for, but the variable has no hierarchy.")
        return close_nodes(tree, tree.codes_at(int(by)))
    lines = [line.strip() for line in read_text(folder / by).splitlines()]
    body = [line for line in lines if line and not line.startswith("<")]
    if "<TREERECODE>" in (line.upper() for line in lines):
        if tree is None:
            raise DataError(f"{by} closes nodes of a tree, but the variable has no hierarchy.")
        return close_nodes(tree, body)
    if tree is not None:
        raise DataError(
            f"{by} groups single codes, but the variable has a hierarchy; close its nodes with "
            "<TREERECODE>, or leave <HIERARCHICAL> out of the metadata."
        )
    return {code: new for line in body for new, code in _read_groups(line, by, codes)}, None


def close_nodes(tree: Hierarchy, nodes: Sequence[str]) -> tuple[dict[str, str], Hierarchy]:
    """The tree with these nodes as leaves, and for each code below one the node it becomes."""
    below = {code: code.strip() for code in tree.codes}
    moved: dict[str, str] = {}
    for node in nodes:
        found = next((code for code, plain in below.items() if plain == node.strip()), None)
        if found is None:
            raise DataError(f"node {node!r} is to be closed, but the hierarchy has no such code.")
        moved |= dict.fromkeys(tree.descendants(found), found)
    return moved, Hierarchy(tree.root, {c: p for c, p in tree.parents.items() if c not in moved})


def _read_groups(line: str, file: str, codes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a new code and an old one, of a line such as `1: 01-05, 07`."""
    new, colon, listed = line.partition(":")
    if not colon or not new.strip():
        raise DataError(f"{line!r} in {file} cannot be read; a line is written as '1: 01-05, 07'.")
    found = []
    for part in filter(None, map(str.strip, listed.split(","))):
        ends = re.fullmatch(r"([^-]*?)\s*-\s*([^-]*)", part)
        if ends is None:
            inside = [code for code in codes if code.strip() == part]
        else:
            least, most = ends[1] or min(codes), ends[2] or max(codes)
            inside = [code for code in codes if least <= code.strip() <= most]
        found += [(new.strip(), code) for code in inside]
    return found
