"""What other packages register, by entry points of the group of a kind.

A method of another package is one line in its `pyproject.toml`:

    [project.entry-points."discreet.methods"]
    my-method = "my_package.my_method:MyMethod"

The groups are `discreet.methods`, `.fitters`, `.measures`, `.record_measures`, `.engines`,
`.connections`, `.formats`, `.matrices`, `.rules`, `.synthesizers` and `.commands`. They are read
when a name is asked for that is not built in, or when names are listed. A built-in name stays what
it is.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from discreet.errors import PluginError
from discreet.progress import notice

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUPS = {"matrix": "matrices", "measure of records": "record_measures"}


def group_of(kind: str) -> str:
    """The group of entry points of a kind, without the package's name in front."""
    return _GROUPS.get(kind, f"{kind}s")


@functools.cache
def entries(kind: str, built_in: frozenset[str]) -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of a kind by name; a notice names those that ask for a built-in name."""
    from importlib.metadata import entry_points

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=f"discreet.{group_of(kind)}"):
        if entry.name in built_in:
            notice(
                f"{owner(entry)} registers {kind} {entry.name!r}, but that name is built in and "
                "stays what it is. Rename the plug-in's entry point."
            )
        else:
            found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


def load(kind: str, claims: tuple[EntryPoint, ...]) -> Any:
    """The class or function behind a name, or an error that names the plug-in at fault."""
    first = claims[0]
    if len(claims) > 1:
        owners = " and ".join(map(owner, claims))
        raise PluginError(
            f"{owners} both register {kind} {first.name!r}, so the name has no meaning. Uninstall "
            "one of them."
        )
    try:
        found = first.load()
    except (Exception, SystemExit) as error:  # whatever another package's code raises
        raise fault(kind, claims, f"{type(error).__name__}: {error}") from error
    if not callable(found):
        raise fault(kind, claims, f"a class or function was expected, not {found!r}")
    return found


def fault(kind: str, claims: tuple[EntryPoint, ...], why: object) -> PluginError:
    """An error that names the plug-in behind a name."""
    first = claims[0]
    return PluginError(
        f"{owner(first)} does not give its {kind} {first.name!r} ({first.value}): "
        f"{str(why).rstrip('.')}. Repair or uninstall the plug-in."
    )


def owner(entry: EntryPoint) -> str:
    """The plug-in that registers a name."""
    return f"plug-in {entry.dist.name!r}" if entry.dist is not None else "a plug-in"
