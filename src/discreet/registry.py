"""Methods, fitters, measures and engines by name.

One line here makes a new one available in Python, on the command line, in recipes, in comparisons
and in the table builder. Nothing is imported until it is asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from discreet.errors import ParameterError, UnknownNameError

METHODS: dict[str, str] = {}
FITTERS: dict[str, str] = {}
MEASURES: dict[str, str] = {}
ENGINES: dict[str, str] = {}
_KINDS = {"method": METHODS, "fitter": FITTERS, "measure": MEASURES, "engine": ENGINES}


def load(kind: str, name: str) -> Any:
    """The class or function registered under a name."""
    entries = _KINDS[kind]
    if name not in entries:
        raise UnknownNameError(kind, name, entries)
    module, _, attribute = entries[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def build(kind: str, name: str, parameters: Mapping[str, Any] | None = None) -> Any:
    """An instance from plain parameters, as recipes and the command line give them.

    A class whose constructor takes more than plain values offers `from_parameters`.
    """
    target = load(kind, name)
    maker = getattr(target, "from_parameters", target)
    known = list(inspect.signature(maker).parameters)
    for given in parameters or {}:
        if given not in known:
            raise UnknownNameError(f"parameter of {kind} {name!r}", given, known)
    try:
        return maker(**(parameters or {}))
    except TypeError as error:
        raise ParameterError(f"{kind} {name!r}: {error}.") from error
