"""Publish tables without betraying the people in them.

A table is ``z = X'y``. Every module builds ``X``, changes ``z``, recovers ``y``, or measures the
difference. Names load on first use, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Axis": "discreet.design.axis",
    "CellKey": "discreet.protect.cell_key",
    "Design": "discreet.design.base",
    "DiscreteLaplace": "discreet.protect.discrete_laplace",
    "DropAdd": "discreet.protect.drop_add",
    "Hierarchy": "discreet.design.hierarchy",
    "KeyConvention": "discreet.design.keys",
    "Laplace": "discreet.protect.laplace",
    "LeastSquares": "discreet.solve.continuous.least_squares",
    "Microdata": "discreet.microdata.microdata",
    "Pram": "discreet.protect.pram",
    "Release": "discreet.design.release",
    "Secret": "discreet.microdata.secret",
    "Table": "discreet.design.table",
    "TransitionMatrix": "discreet.noise.matrix",
    "cut": "discreet.microdata.recode",
    "margins": "discreet.design.formula",
    "open": "discreet.microdata.open",
    "perturbation_table": "discreet.noise.entropy",
    "read": "discreet.design.storage",
    "read_release": "discreet.design.storage",
    "read_table": "discreet.design.storage",
    "DiscreetError": "discreet.errors",
}

_MODULES = ("assess", "demo")

if TYPE_CHECKING:
    from discreet import demo
    from discreet.assess.assess import assess
    from discreet.design.axis import Axis
    from discreet.design.base import Design
    from discreet.design.formula import margins
    from discreet.design.hierarchy import Hierarchy
    from discreet.design.keys import KeyConvention
    from discreet.design.release import Release
    from discreet.design.storage import read, read_release, read_table
    from discreet.design.table import Table
    from discreet.errors import DiscreetError
    from discreet.microdata.microdata import Microdata
    from discreet.microdata.open import open
    from discreet.microdata.recode import cut
    from discreet.microdata.secret import Secret
    from discreet.noise.entropy import perturbation_table
    from discreet.noise.matrix import TransitionMatrix
    from discreet.protect.cell_key import CellKey
    from discreet.protect.discrete_laplace import DiscreteLaplace
    from discreet.protect.drop_add import DropAdd
    from discreet.protect.laplace import Laplace
    from discreet.protect.pram import Pram
    from discreet.solve.continuous.least_squares import LeastSquares

__all__ = [
    "Axis",
    "CellKey",
    "Design",
    "DiscreetError",
    "DiscreteLaplace",
    "DropAdd",
    "Hierarchy",
    "KeyConvention",
    "Laplace",
    "LeastSquares",
    "Microdata",
    "Pram",
    "Release",
    "Secret",
    "Table",
    "TransitionMatrix",
    "__version__",
    "assess",
    "cut",
    "demo",
    "margins",
    "open",
    "perturbation_table",
    "read",
    "read_release",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"discreet.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
