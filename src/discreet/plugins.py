"""What other packages register, by entry points of the group of a kind.

A method of another package is one line in its `pyproject.toml`:

    [project.entry-points."discreet.methods"]
    my-method = "my_package.my_method:MyMethod"

The groups are `discreet.methods`, `.fitters`, `.measures`, `.record_measures`, `.engines`,
`.connections`, `.formats`, `.matrices`, `.rules` and `.synthesizers`. They are read when a name is
asked for that is not built in, or when names are listed. A built-in name stays what it is.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from discreet.errors import PluginError
from discreet.progress import notice

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUPS = {"matrix": "matrices", "measure of records": "record_measures"}


@functools.cache
def entries(kind: str, built_in: frozenset[str]) -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of a kind by name; a notice names those that ask for a built-in name."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=f"discreet.{_GROUPS.get(kind, f'{kind}s')}"):
        if entry.name in built_in:
            notice(
                f"{_owner(entry)} registers {kind} {entry.name!r}, but that name is built in and "
                "stays what it is. Rename the plug-in's entry point."
            )
        else:
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def load(kind: str, claims: tuple[EntryPoint, ...]) -> Any:
    """The class or function behind a name, or an error that names the plug-in at fault."""
    first = claims[0]
    if len(claims) > 1:
        owners = " and ".join(map(_owner, claims))
        raise PluginError(
            f"{owners} both register {kind} {first.name!r}, so the name has no meaning. Uninstall "
            "one of them."
        )
    try:
        return first.load()
    except Exception as error:  # whatever another package's code raises
        raise PluginError(
            f"{_owner(first)} does not give its {kind} {first.name!r} ({first.value}): "
            f"{type(error).__name__}: {error}. Repair or uninstall the plug-in."
        ) from error


def _owner(entry: EntryPoint) -> str:
    return f"plug-in {entry.dist.name!r}" if entry.dist is not None else "a plug-in"
