"""Names that load on first use: importing a package loads none of the modules behind its names."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def homes_in_stub(stub: Path) -> dict[str, str]:
    """For each name that a stub imports, the module that it comes from."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    lines = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(line.module) for line in lines for alias in line.names}


def load(home: str, name: str) -> Any:
    """A name of a module, or the module of that name in a package."""
    # A package that answers by `__getattr__` would ask here again, so its modules come first.
    try:
        return importlib.import_module(f"{home}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (home, f"{home}.{name}"):
            raise
    return getattr(importlib.import_module(home), name)


def lazy_names(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: its door, whose names load on first use.

    Args:
      package: The package.
      names: By module within the package, its names: `{"site.config": "SiteConfig read_site"}`.
    """
    homes = {name: f"{package}.{home}" for home, each in names.items() for name in each.split()}

    def load_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        return home if homes[name] == f"{package}.{name}" else getattr(home, name)

    return load_name
