"""Publish tables without betraying the people in them.

A table is ``z = X'y``. Every module builds ``X``, changes ``z``, recovers ``y``, or measures the
difference. Names load on first use, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet import moved

__version__ = "0.2.0"
moved.install()

_HOME = {
    "Adjust": "discreet.protect.adjust",
    "Additive": "discreet.solve.least_squares.additive",
    "Auto": "discreet.solve.auto",
    "Axis": "discreet.design.axis",
    "CellKey": "discreet.protect.cell_key",
    "ControlledRounding": "discreet.protect.controlled_rounding",
    "Chain": "discreet.solve.chain",
    "Decimals": "discreet.protect.suppress.decimals",
    "Design": "discreet.design.base",
    "DirectDisclosure": "discreet.protect.suppress.rules",
    "DiscreteGaussian": "discreet.protect.discrete_gaussian",
    "DiscreteLaplace": "discreet.protect.discrete_laplace",
    "DropAdd": "discreet.protect.drop_add",
    "GroupDisclosure": "discreet.protect.suppress.rules",
    "Hierarchy": "discreet.design.hierarchy",
    "KDisclosure": "discreet.protect.suppress.rules",
    "KeyConvention": "discreet.tables.keys",
    "Laplace": "discreet.protect.laplace",
    "Ledger": "discreet.ledger",
    "LeastAbsolute": "discreet.solve.absolute.least_absolute",
    "LeastSquares": "discreet.solve.least_squares.least_squares",
    "LogLinear": "discreet.solve.likelihood.log_linear",
    "Microdata": "discreet.facade.microdata",
    "NonNegative": "discreet.solve.non_negative.non_negative",
    "Pattern": "discreet.protect.suppress.pattern",
    "Poisson": "discreet.solve.likelihood.poisson",
    "Pram": "discreet.protect.pram",
    "Preserved": "discreet.synthesize.preserved",
    "Quality": "discreet.protect.quality",
    "Release": "discreet.facade.release",
    "Safe": "discreet.protect.safe",
    "Secret": "discreet.microdata.secret",
    "SmallCountRounding": "discreet.protect.small_count",
    "Synthetic": "discreet.synthesize.result",
    "SyntheticTrial": "discreet.synthesize.result",
    "Suppress": "discreet.protect.suppress.suppress",
    "Table": "discreet.facade.table",
    "Trial": "discreet.facade.release",
    "Threshold": "discreet.protect.suppress.rules",
    "TransitionMatrix": "discreet.noise.matrix",
    "WholeNumber": "discreet.solve.integer.whole_number",
    "audit": "discreet.assess.audit",
    "compare": "discreet.assess.compare.comparison",
    "consistent": "discreet.protect.suppress.consistent",
    "cut": "discreet.microdata.recode",
    "frontier": "discreet.assess.compare.frontier",
    "margins": "discreet.design.formula",
    "open": "discreet.facade.open",
    "perturbation_table": "discreet.noise.entropy",
    "read": "discreet.facade.storage",
    "read_release": "discreet.facade.storage",
    "read_table": "discreet.facade.storage",
    "records_from": "discreet.synthesize.from_tables",
    "select_margins": "discreet.assess.compare.select_margins",
    "Dominance": "discreet.protect.suppress.dominance",
    "Exempt": "discreet.protect.suppress.apriori",
    "FewContributors": "discreet.protect.suppress.dominance",
    "Listed": "discreet.protect.suppress.apriori",
    "PPercent": "discreet.protect.suppress.dominance",
    "PQ": "discreet.protect.suppress.dominance",
    "with_apriori": "discreet.protect.suppress.apriori",
    "write_transmission": "discreet.protect.suppress.transmission",
    "DiscreetError": "discreet.errors",
}

_MODULES = {
    "argus": "discreet.facade.argus",
    "assess": "discreet.assess",
    "demo": "discreet.demo",
    "inference": "discreet.release.inference",
    "synthesize": "discreet.synthesize",
}

if TYPE_CHECKING:
    from discreet import demo
    from discreet.assess.assess import assess
    from discreet.assess.audit.audit import audit
    from discreet.assess.compare.comparison import compare
    from discreet.assess.compare.frontier import frontier
    from discreet.assess.compare.select_margins import select_margins
    from discreet.design.axis import Axis
    from discreet.design.base import Design
    from discreet.design.formula import margins
    from discreet.design.hierarchy import Hierarchy
    from discreet.errors import DiscreetError
    from discreet.facade import argus
    from discreet.facade.microdata import Microdata
    from discreet.facade.open import open
    from discreet.facade.release import Release, Trial
    from discreet.facade.storage import read, read_release, read_table
    from discreet.facade.table import Table
    from discreet.ledger import Ledger
    from discreet.microdata.recode import cut
    from discreet.microdata.secret import Secret
    from discreet.noise.entropy import perturbation_table
    from discreet.noise.matrix import TransitionMatrix
    from discreet.protect.adjust import Adjust
    from discreet.protect.cell_key import CellKey
    from discreet.protect.controlled_rounding import ControlledRounding
    from discreet.protect.discrete_gaussian import DiscreteGaussian
    from discreet.protect.discrete_laplace import DiscreteLaplace
    from discreet.protect.drop_add import DropAdd
    from discreet.protect.laplace import Laplace
    from discreet.protect.pram import Pram
    from discreet.protect.quality import Quality
    from discreet.protect.safe import Safe
    from discreet.protect.small_count import SmallCountRounding
    from discreet.protect.suppress.apriori import Exempt, Listed, with_apriori
    from discreet.protect.suppress.consistent import consistent
    from discreet.protect.suppress.decimals import Decimals
    from discreet.protect.suppress.dominance import PQ, Dominance, FewContributors, PPercent
    from discreet.protect.suppress.pattern import Pattern
    from discreet.protect.suppress.rules import (
        DirectDisclosure,
        GroupDisclosure,
        KDisclosure,
        Threshold,
    )
    from discreet.protect.suppress.suppress import Suppress
    from discreet.protect.suppress.transmission import write_transmission
    from discreet.release import inference
    from discreet.solve.absolute.least_absolute import LeastAbsolute
    from discreet.solve.auto import Auto
    from discreet.solve.chain import Chain
    from discreet.solve.integer.whole_number import WholeNumber
    from discreet.solve.least_squares.additive import Additive
    from discreet.solve.least_squares.least_squares import LeastSquares
    from discreet.solve.likelihood.log_linear import LogLinear
    from discreet.solve.likelihood.poisson import Poisson
    from discreet.solve.non_negative.non_negative import NonNegative
    from discreet.synthesize.from_tables import records_from
    from discreet.synthesize.preserved import Preserved
    from discreet.synthesize.result import Synthetic, SyntheticTrial
    from discreet.synthesize.synthesize import synthesize
    from discreet.tables.keys import KeyConvention

__all__ = [
    "Additive",
    "Adjust",
    "Auto",
    "Axis",
    "CellKey",
    "Chain",
    "ControlledRounding",
    "Decimals",
    "Design",
    "DirectDisclosure",
    "DiscreetError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Dominance",
    "DropAdd",
    "Exempt",
    "FewContributors",
    "GroupDisclosure",
    "Hierarchy",
    "KDisclosure",
    "KeyConvention",
    "Laplace",
    "LeastAbsolute",
    "LeastSquares",
    "Ledger",
    "Listed",
    "LogLinear",
    "Microdata",
    "NonNegative",
    "PPercent",
    "PQ",
    "Pattern",
    "Poisson",
    "Pram",
    "Preserved",
    "Quality",
    "Release",
    "Safe",
    "Secret",
    "SmallCountRounding",
    "Synthetic",
    "SyntheticTrial",
    "Suppress",
    "Table",
    "Threshold",
    "TransitionMatrix",
    "Trial",
    "WholeNumber",
    "__version__",
    "argus",
    "assess",
    "audit",
    "compare",
    "consistent",
    "cut",
    "demo",
    "frontier",
    "inference",
    "margins",
    "open",
    "perturbation_table",
    "read",
    "read_release",
    "read_table",
    "records_from",
    "select_margins",
    "synthesize",
    "with_apriori",
    "write_transmission",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
