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
    "Chain": "discreet.solve.auto",
    "Decimals": "discreet.suppress.decimals",
    "Design": "discreet.design.base",
    "DirectDisclosure": "discreet.rules.counts",
    "DiscreteGaussian": "discreet.protect.discrete_gaussian",
    "DiscreteLaplace": "discreet.protect.discrete_laplace",
    "DropAdd": "discreet.protect.drop_add",
    "GroupDisclosure": "discreet.rules.counts",
    "Hierarchy": "discreet.design.hierarchy",
    "KDisclosure": "discreet.rules.counts",
    "KeyConvention": "discreet.tables.keys",
    "Laplace": "discreet.protect.laplace",
    "Ledger": "discreet.ledger",
    "LeastAbsolute": "discreet.solve.absolute.least_absolute",
    "LeastSquares": "discreet.solve.least_squares.least_squares",
    "LogLinear": "discreet.solve.likelihood.log_linear",
    "Microdata": "discreet.facade.microdata",
    "NonNegative": "discreet.solve.non_negative.non_negative",
    "Pattern": "discreet.suppress.pattern",
    "Poisson": "discreet.solve.likelihood.poisson",
    "Pram": "discreet.protect.pram",
    "Preserved": "discreet.synthesize.preserved",
    "Quality": "discreet.protect.quality",
    "Release": "discreet.facade.release",
    "Safe": "discreet.protect.safe",
    "Secret": "discreet.records.secret",
    "SmallCountRounding": "discreet.protect.small_count",
    "Synthetic": "discreet.synthesize.result",
    "SyntheticTrial": "discreet.synthesize.result",
    "Suppress": "discreet.suppress.suppress",
    "Table": "discreet.facade.table",
    "Trial": "discreet.facade.release",
    "Threshold": "discreet.rules.counts",
    "TransitionMatrix": "discreet.noise.matrix",
    "WholeNumber": "discreet.solve.integer.whole_number",
    "audit": "discreet.assess.audit",
    "compare": "discreet.assess.compare.comparison",
    "consistent": "discreet.suppress.apriori",
    "cut": "discreet.records.recode",
    "frontier": "discreet.assess.compare.frontier",
    "margins": "discreet.design.formula",
    "open": "discreet.facade.microdata",
    "perturbation_table": "discreet.noise.entropy",
    "read": "discreet.facade.table",
    "read_release": "discreet.facade.table",
    "read_table": "discreet.facade.table",
    "records_from": "discreet.synthesize.from_tables",
    "select_margins": "discreet.assess.compare.select_margins",
    "Dominance": "discreet.rules.magnitudes",
    "Exempt": "discreet.suppress.apriori",
    "FewContributors": "discreet.rules.magnitudes",
    "Listed": "discreet.suppress.apriori",
    "PPercent": "discreet.rules.magnitudes",
    "PQ": "discreet.rules.magnitudes",
    "with_apriori": "discreet.suppress.apriori",
    "write_transmission": "discreet.suppress.apriori",
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
    from discreet.facade.microdata import Microdata, open
    from discreet.facade.release import Release, Trial
    from discreet.facade.table import Table, read, read_release, read_table
    from discreet.ledger import Ledger
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
    from discreet.records.recode import cut
    from discreet.records.secret import Secret
    from discreet.release import inference
    from discreet.rules.counts import DirectDisclosure, GroupDisclosure, KDisclosure, Threshold
    from discreet.rules.magnitudes import PQ, Dominance, FewContributors, PPercent
    from discreet.solve.absolute.least_absolute import LeastAbsolute
    from discreet.solve.auto import Auto, Chain
    from discreet.solve.integer.whole_number import WholeNumber
    from discreet.solve.least_squares.additive import Additive
    from discreet.solve.least_squares.least_squares import LeastSquares
    from discreet.solve.likelihood.log_linear import LogLinear
    from discreet.solve.likelihood.poisson import Poisson
    from discreet.solve.non_negative.non_negative import NonNegative
    from discreet.suppress.apriori import (
        Exempt,
        Listed,
        consistent,
        with_apriori,
        write_transmission,
    )
    from discreet.suppress.decimals import Decimals
    from discreet.suppress.pattern import Pattern
    from discreet.suppress.suppress import Suppress
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
