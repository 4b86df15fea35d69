"""Old names: what was imported from elsewhere in version 0.2 works on, with a warning.

Stored pickles name old homes too. Nothing in this package imports from an old home.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ENDS = "the old name ends with version 0.4."
_ROOMS = {
    "rules": "DirectDisclosure Dominance FewContributors GroupDisclosure KDisclosure PPercent PQ "
    "Threshold",
    "suppress": "Decimals Exempt Listed Pattern consistent with_apriori write_transmission",
    "solve": "Auto Chain Poisson WholeNumber",
    "assessment": "frontier select_margins",
    "synthesis": "Preserved SyntheticTrial records_from",
    "facade": "read_release read_table",
    "design": "Axis",
    "tables": "KeyConvention",
    "protect": "Quality",
    "records": "cut",
}
TOP_NAMES = {name: f"discreet.{room}" for room, names in _ROOMS.items() for name in names.split()}
"""Names that stood at the top of the package, and the rooms they stand in now."""

# Where the names of an old module are looked for, one place after the other.
NEW_HOMES: dict[str, tuple[str, ...]] = {
    "discreet.assess": ("discreet.assessment",),
    "discreet.assess.cells": ("discreet.assessment.cells",),
    "discreet.assess.measure": ("discreet.assessment.measure",),
    "discreet.assess.plots": ("discreet.assessment.plots",),
    "discreet.demo.files": ("discreet.demo.people", "discreet.demo.classifications"),
    "discreet.design.assembly": ("discreet.tables.assembly", "discreet.tables.from_frames"),
    "discreet.design.canonical": ("discreet.tables.canonical",),
    "discreet.design.contribution_frame": ("discreet.tables.from_frames",),
    "discreet.design.contribution_storage": ("discreet.tables.storage",),
    "discreet.design.data_set": ("discreet.tables.truth",),
    "discreet.design.frames": ("discreet.frames",),
    "discreet.design.keys": ("discreet.tables.keys",),
    "discreet.design.magnitude": ("discreet.tables.magnitude",),
    "discreet.design.method": ("discreet.tables.protected",),
    "discreet.design.published_frame": ("discreet.tables.from_frames",),
    "discreet.design.release": ("discreet.facade.release", "discreet.tables.protected"),
    "discreet.design.show": ("discreet.tables.show",),
    "discreet.design.statement": ("discreet.tables.statement",),
    "discreet.design.storage": ("discreet.facade.table", "discreet.tables.storage"),
    "discreet.design.table": ("discreet.facade.table",),
    "discreet.design.uniform_keys": ("discreet.tables.keys",),
    "discreet.design.values": ("discreet.tables.truth",),
    "discreet.microdata": ("discreet.records",),
    "discreet.microdata.microdata": ("discreet.facade.microdata",),
    "discreet.microdata.open": ("discreet.facade.opening", "discreet.records.sources"),
    "discreet.microdata.recode": ("discreet.records.recode",),
    "discreet.microdata.secret": ("discreet.records.secret",),
    "discreet.noise.exchange": ("discreet.noise.lookup",),
    "discreet.plugins": ("discreet.registry",),
    "discreet.recipe": ("discreet.publication",),
    "discreet.protect.effect": ("discreet.protect.safe",),
    "discreet.protect.frame": ("discreet.protect",),
    "discreet.protect.frame.keyed_noise": ("discreet.protect.keyed_noise",),
    "discreet.protect.frame.private_noise": ("discreet.protect.private_noise",),
    "discreet.protect.suppress": ("discreet.suppress",),
    "discreet.protect.suppress.apriori": ("discreet.suppress.apriori",),
    "discreet.protect.suppress.decimals": ("discreet.suppress.decimals",),
    "discreet.protect.suppress.dominance": ("discreet.rules.magnitudes",),
    "discreet.protect.suppress.pattern": ("discreet.suppress.pattern",),
    "discreet.protect.suppress.rules": ("discreet.rules.counts",),
    "discreet.protect.suppress.suppress": ("discreet.suppress.suppress",),
    "discreet.protect.suppress.transmission": ("discreet.suppress.apriori",),
    "discreet.protect.weights": ("discreet.protect.publication",),
    "discreet.release.rounding": ("discreet.release.fitting",),
    "discreet.release.zeros": ("discreet.release.fitting",),
    "discreet.testing.contributions": ("discreet.testing.engines",),
    "discreet.synthesize": ("discreet.synthesis",),
    "discreet.synthesize.clusters": ("discreet.synthesis.microaggregation",),
    "discreet.synthesize.hybrid": ("discreet.synthesis.hybrid",),
    "discreet.synthesize.ipso": ("discreet.synthesis.methods",),
    "discreet.synthesize.safety": ("discreet.synthesis.safety", "discreet.synthesis.hybrid_safety"),
    "discreet.synthesize.streamed": ("discreet.synthesis.streamed",),
}
RENAMED = {"Recipe": "Publication"}
"""Names that have changed as well as their homes."""
PACKAGES = {old.rpartition(".")[0] for old in NEW_HOMES} & NEW_HOMES.keys()
"""Old homes of modules as well as of names: they warn when a name is asked for."""


def find_top_name(name: str) -> Any:
    """A name that stood at the top of the package, with a warning that says where it is now."""
    if name not in TOP_NAMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    home = TOP_NAMES[name]
    text = f"discreet.{name} has moved to {home}.{name}; {ENDS}"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return getattr(importlib.import_module(home), name)


class _OldModule(ModuleType):
    """An old home. Those of `discreet.assess` and `.synthesize` were called, too."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function of that name gives."""
        home = importlib.import_module(NEW_HOMES[self.__name__][0])
        name = self.__name__.rpartition(".")[2]
        module = importlib.import_module(f"{home.__name__}.{name}")
        return getattr(module, name)(*args, **options)


class _OldHome(Loader):
    """Makes a module without contents that hands out what lies elsewhere now."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        homes = NEW_HOMES[module.__name__]
        text = f"{module.__name__} has moved to {' and '.join(homes)}; {ENDS}"
        is_package = module.__name__ in PACKAGES
        if not is_package:
            warnings.warn(text, DeprecationWarning, stacklevel=2)

        def look_up(name: str) -> Any:
            if is_package and not name.startswith("__"):
                warnings.warn(text, DeprecationWarning, stacklevel=2)
            now = RENAMED.get(name, name)
            for home in homes:
                found = importlib.import_module(home)
                if hasattr(found, now):
                    return getattr(found, now)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = look_up
        module.__path__ = []  # old homes below it are found by name


class _OldHomes(MetaPathFinder):
    """Finds modules by their old names, after everything else has looked."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = fullname in NEW_HOMES
        return ModuleSpec(fullname, _OldHome(), is_package=True) if known else None


def install() -> None:
    """Have imports from old homes answered."""
    if not any(isinstance(finder, _OldHomes) for finder in sys.meta_path):
        sys.meta_path.append(_OldHomes())
