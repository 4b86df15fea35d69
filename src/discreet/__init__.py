"""Publish tables without betraying the people in them.

A table is ``z = X'y``. Every module builds ``X``, changes ``z``, recovers ``y``, or measures the
difference. Names load on first use, so that importing the package stays light: `__init__.pyi` says
where each of them lives, for type checkers and for this file alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet import moved
from discreet.lazy import homes_in_stub, load

__version__ = "0.2.0"
moved.install()

__all__ = [
    "Additive",
    "Adjust",
    "CellKey",
    "ControlledRounding",
    "Design",
    "DiscreetError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draws",
    "DropAdd",
    "Engine",
    "Fitter",
    "Hierarchy",
    "Knowledge",
    "Laplace",
    "LeastAbsolute",
    "LeastSquares",
    "Ledger",
    "LogLinear",
    "Measure",
    "Method",
    "Microdata",
    "NonNegative",
    "Pram",
    "Release",
    "Safe",
    "Secret",
    "SmallCountRounding",
    "Suppress",
    "Synthetic",
    "Table",
    "TransitionMatrix",
    "Trial",
    "__version__",
    "argus",
    "assess",
    "attack",
    "attack_method",
    "attack_service",
    "audit",
    "compare",
    "demo",
    "inference",
    "margins",
    "open",
    "perturbation_table",
    "read",
    "rules",
    "synthesize",
]

_HOMES = homes_in_stub(Path(__file__).with_suffix(".pyi"))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return load(_HOMES[name], name)
    return moved.find_top_name(name)


def __dir__() -> list[str]:
    return __all__
