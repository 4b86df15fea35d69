"""Tables on the fly: a recipe goes in, a protected cube comes out. It touches records."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import registry
from discreet.design.axis import Axis
from discreet.design.formula import parse
from discreet.design.structured import StructuredDesign
from discreet.errors import DesignError, ParameterError
from discreet.release.cube import Cube
from discreet.serve.data.source import Mode, crossing, offered

if TYPE_CHECKING:
    from discreet.design.release import Release
    from discreet.design.statement import Statement
    from discreet.microdata.microdata import Microdata
    from discreet.recipe import Recipe
    from discreet.serve.site.config import Records

_FILES = ("codes", "random_keys", "ledger")
_APART = ("source", "secret", "recode", "structural_zeros", "keys")


class LiveSource:
    """Tables of one recipe for whatever crossings are asked.

    Variables, levels and labels are read from releases too, so a source that starts is one that
    can answer.

    Args:
      recipe: How tables are protected. Its margins name what is on offer: `region` offers every
        level, `region[province]` that one alone. The method must give a cell the same value in
        every table: other noise can be averaged away by asking for the cell in many of them.
      data: The records.
      titles: Names of variables for readers.
    """

    mode: Mode = "on-the-fly"

    def __init__(
        self, recipe: Recipe, data: Microdata, titles: Mapping[str, str] | None = None
    ) -> None:
        require_consistent(recipe)
        self._recipe, self._data = recipe, data
        self._lock = threading.Lock()
        names = list(dict.fromkeys(name for term in parse(recipe.margins) for name in term))
        self.variables = offered({name: self._axis(name) for name in names}, names, titles)

    @property
    def edition(self) -> str:
        """The edition of the records."""
        data_set = getattr(self._data, "data_set", None)
        return "1" if data_set is None else data_set.edition

    @cached_property
    def statement(self) -> Statement:
        """What is done to every table."""
        return self._release((self.variables[0].smallest.name,)).statement

    @cached_property
    def units(self) -> tuple[str, ...]:
        """What is published."""
        return (self._release((self.variables[0].smallest.name,)).unit,)

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, protected cell by cell."""
        if unit not in self.units:
            raise ParameterError(f"unit {unit!r} is not published; the recipe says {self.units}.")
        return Cube.of(self._release(details))

    def _release(self, details: Sequence[str]) -> Release:
        with self._lock:  # an engine's connection answers one question at a time
            return self._recipe.of(crossing(details)).run(self._data)

    def _axis(self, name: str) -> Axis:
        design = self._release((name,)).design
        if not isinstance(design, StructuredDesign):
            raise DesignError("the table builder needs a design made of variables.")
        (axis,) = design.axes
        return axis


def require_consistent(recipe: Recipe) -> None:
    """Refuse a method that draws new noise for every table."""
    method = registry.build("method", recipe.method.name, recipe.method.parameters)
    if method.source != "keys" or not method.claims.consistent or recipe.fitter is not None:
        raise ParameterError(
            f"method {recipe.method.name!r} with these parameters gives a cell new noise in every "
            "table, so a visitor could average it away. On the fly the table builder needs a "
            "method that takes its noise from cell keys, with margins='own' and no fit: "
            "'cell-key' does. Methods that draw for a whole table go with mode = 'release-once'."
        )


def opened(records: Records, folder: Path) -> Microdata:
    """The records that a site's file names; paths are relative to its folder."""
    from discreet.microdata.open import open as open_records
    from discreet.microdata.secret import Secret

    names = [f.name for f in fields(records) if f.name not in _APART]
    given = {name: getattr(records, name) for name in names}
    given |= {name: folder / given[name] for name in _FILES if given[name] is not None}
    if records.secret is not None:
        given["secret"] = Secret.from_file(folder / records.secret)
    if records.keys is not None:
        given["keys"] = _placed(records.keys, folder)
    source = _placed(records.source, folder)
    data = open_records(source, **{k: v for k, v in given.items() if v is not None})
    data = data.with_structural_zeros(records.structural_zeros)
    return data.recode(records.recode) if records.recode else data


def _placed(source: str, folder: Path) -> str:
    """A file beside the site's file; addresses of servers and tables beside records stay."""
    is_elsewhere = "://" in source or source.startswith("::")
    return source if is_elsewhere else str(folder / source)
