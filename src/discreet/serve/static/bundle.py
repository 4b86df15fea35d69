"""The client's modules as one file, which a visitor asks for once and a thread can be made of.

A module becomes a function that is run once and returns what it exports; those that it needs come
before it. The modules write imports and exports in one way each, and anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from discreet.errors import DataError

_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?=(?:async )?(?:const|function|class) (\w+|\[[\w, ]+\]))", re.MULTILINE
)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle_modules(files: Mapping[str, bytes]) -> str:
    """One module that exports all of `files` as `modules`, by their names."""
    order = module_order(files)
    parts = [_closed(name, files[name].decode(), order) for name in order]
    listed = ", ".join(f'"{name}": m{k}' for k, name in enumerate(order))
    return "".join([*parts, f"export const modules = {{ {listed} }};\n"])


def _closed(name: str, text: str, order: list[str]) -> str:
    """A module as a function that is run at once, and what it returned as a constant."""
    body = _IMPORT.sub(lambda found: _constant(found, name, order), text)
    exported = ", ".join(found.strip("[]") for found in _EXPORT.findall(body))
    body = _EXPORT.sub("", body)
    if other := _OTHER.search(body):
        raise DataError(f"{name}: pages of files know no import or export such as {other[0]!r}.")
    head, tail = f"const m{order.index(name)} = (() => {{", f"return {{ {exported} }};"
    return f"// {name}\n{head}\n{body}\n{tail}\n}})();\n"


def _constant(found: re.Match[str], name: str, order: list[str]) -> str:
    """An import as a constant of what another module returned."""
    place = order.index(_resolve_path(name, found[3]))
    return f"const {found[1] or found[2].replace(' as ', ': ')} = m{place};"


def module_order(files: Mapping[str, bytes]) -> list[str]:
    """The modules, each after those that it needs."""
    found: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise DataError(f"modules need each other: {' → '.join([*above, name])}.")
        if name not in found:
            for _, _, needed in _IMPORT.findall(files[name].decode()):
                visit(_resolve_path(name, needed), (*above, name))
            found.append(name)

    for name in sorted(files):
        visit(name, ())
    return found


def _resolve_path(name: str, needed: str) -> str:
    """The path of a module that another one names."""
    parts = name.split("/")[:-1]
    for part in needed.split("/"):
        parts = parts[:-1] if part == ".." else parts if part == "." else [*parts, part]
    return "/".join(parts)
