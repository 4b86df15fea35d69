"""One method over a grid of settings: which of them no other one beats."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet import registry
from discreet.assessment.assess import Framed, align_columns
from discreet.assessment.compare.comparison import RANGE, Comparison, compare, mean_and_range
from discreet.assessment.compare.job import Sampler
from discreet.assessment.compare.summary import RISKS, Line, pair_rows
from discreet.assessment.measure import Measure
from discreet.assessment.plots.risk_utility import frontier_map
from discreet.display import Display, Displayed, Grid
from discreet.errors import DiscreetError, ParameterError
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.tables.protected import Method

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Displayed, Framed):
    """**Confidential.** Settings of one method by risk and utility.

    Attributes:
      comparison: All settings, compared.
      risk: The measure of risk.
      utility: The measure of utility.
      failed: Settings that the method refuses, with the reason.
    """

    comparison: Comparison
    risk: str
    utility: str
    failed: Mapping[str, str]

    @property
    def pairs(self) -> list[tuple[Line, Line]]:
        """Rows of risk and utility of every setting."""
        return pair_rows(self.comparison[self.risk], self.comparison[self.utility])

    @property
    def efficient(self) -> list[str]:
        """Settings that no other one beats in mean risk and mean utility together."""
        return [line["label"] for line in self.comparison.efficient(self.risk, self.utility)]

    @property
    def frame(self) -> Frame:
        """A row per setting: its parameters, risk and utility with intervals, and `efficient`."""
        best = set(self.efficient)
        rows = [
            {
                **json.loads(a["parameters"]),
                "setting": a["label"],
                "fitter": a["fitter"] or b["fitter"],
                **_numbers("risk", a),
                **_numbers("utility", b),
                "efficient": a["label"] in best,
            }
            for a, b in self.pairs
        ]
        names = dict.fromkeys(name for row in rows for name in row)
        return Frame({name: [row.get(name) for row in rows] for name in names})

    def plot(self) -> altair.LayerChart:
        """The settings on the risk–utility map, those that none beats joined by a line."""
        return frontier_map(self)

    def __repr__(self) -> str:
        refused = [f"  {label}: {reason}" for label, reason in self.failed.items()]
        title, rows = self._view()
        return "\n".join([f"Frontier (confidential): {title}", *align_columns(rows), *refused])

    def _display(self) -> Display:
        title, rows = self._view()
        grid = Grid.of(rows, right=range(1, len(rows[0]) - 1))
        refused = [f"{label}: {reason}" for label, reason in self.failed.items()]
        lines = [("Refused", refused)] if refused else []
        return Display(f"Frontier: {title}", "confidential", grids=[grid], lines=lines)

    def _view(self) -> tuple[str, list[tuple[str, ...]]]:
        """The two measures, and rows under their header."""
        best = set(self.efficient)
        header = ("setting", "risk", RANGE, "utility", RANGE, "")
        rows = [
            (
                a["label"],
                *mean_and_range(a),
                *mean_and_range(b),
                "efficient" if a["label"] in best else "",
            )
            for a, b in self.pairs
        ]
        names = [self.comparison[name].title for name in (self.risk, self.utility)]
        return " against ".join(names), [header, *rows]


def frontier(
    method: str | type[Method],
    grid: Mapping[str, Sequence[Any]],
    table: Table,
    *,
    risk: str | None = None,
    utility: str = "hellinger-utility",
    measures: Sequence[str | Measure] = (),
    unit: str | None = None,
    **settings: Any,
) -> Frontier:
    """Every setting of a method on a grid, by risk and utility.

    A setting is efficient when no other one has at most its risk and at least its utility, and is
    better in one of them; means over the draws decide, and all settings see the same random
    numbers. Settings that the method refuses are listed with the reason, such as a cap that leaves
    no guarantee on this table.

    Cost: a comparison of as many methods as the grid has points.

    Args:
      method: A method's name or class.
      grid: Values by parameter, such as ``{"D": [5], "V": [2, 3], "js": [1, 2]}``.
      table: The true table.
      risk: The measure of risk; that of an insider's exact disclosures where a sensitive variable
        is named, of unchanged small cells otherwise.
      utility: The measure of utility. ``name@published`` or ``name@fitted`` names the stage.
      measures: Further measures to take.
      unit: What is published and compared, as for `compare`.
      **settings: As for `compare`: `fitters`, `replicates`, `seed`, `resume`, `workers`, and
        options of the measures such as `sensitive="party"`.
    """
    chosen = risk or (RISKS[0] if "sensitive" in settings else "unchanged-small-cells")
    table = replace(table, unit=unit or table.unit)
    made, failed = _settings(method, grid, table)
    names = dict.fromkeys(m.partition("@")[0] for m in (chosen, utility))
    found = compare(table, made, measures=[*names, *measures], **settings)
    return Frontier(found, chosen, utility, failed)


def _settings(
    method: str | type[Method], grid: Mapping[str, Sequence[Any]], table: Table
) -> tuple[dict[str, Method], dict[str, str]]:
    """Methods by setting, and the settings that cannot be made with the reason."""
    if not grid or any(not values for values in grid.values()):
        raise ParameterError("the grid needs at least one value for at least one parameter.")
    made: dict[str, Method] = {}
    failed: dict[str, str] = {}
    for values in itertools.product(*grid.values()):
        setting = dict(zip(grid, values, strict=True))
        label = " ".join(f"{name}={value}" for name, value in setting.items())
        try:
            if isinstance(method, str):
                built: Method = registry.build("method", method, setting)
            else:
                built = registry.make(method, setting, method.__name__)
            if built.source == "system":  # private ones refuse noise that guarantees nothing
                Sampler(table, built, 0)(0)
            made[label] = built
        except DiscreetError as error:
            failed[label] = str(error)
    if not made:
        raise ParameterError(f"no setting of the grid can be used: {next(iter(failed.values()))}")
    return made, failed


def _numbers(name: str, line: Line) -> dict[str, Any]:
    ends = {f"{name}_{end}": line[end] for end in ("standard_error", "lower", "upper")}
    return {name: line["mean"], **ends}
