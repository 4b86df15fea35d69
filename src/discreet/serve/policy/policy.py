"""The policy of a data set: its rules, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, get_args

from discreet.errors import ParameterError
from discreet.release.cube import Cube
from discreet.serve.policy.anonymity import KAnonymity, LDiversity, TCloseness
from discreet.serve.policy.combinations import Forbidden
from discreet.serve.policy.difference import MinDifference
from discreet.serve.policy.grouping import Grouping, Groups
from discreet.serve.policy.population import MinMeanCell, MinPopulation
from discreet.serve.policy.rule import Figures, Judged, Rule
from discreet.serve.policy.size import MaxCells, MaxVariables
from discreet.serve.policy.sparsity import Sparsity
from discreet.serve.policy.threshold import Threshold
from discreet.serve.question import Question
from discreet.serve.site.sections import setting

EVERYTHING = "*"
_NOT_TOLD = ("public_parameters",)


@dataclass(frozen=True)
class Policy:
    """What visitors may ask of a data set, judged on public sizes and protected figures alone."""

    max_variables: int = setting(3, "Most variables in one table, filters included.")
    max_cells: int = setting(10_000, "Most cells in one table, totals included.")
    min_population: float = setting(0.0, "Fewest people that a table or a part of it is about.")
    min_mean_cell: float = setting(0.0, "Fewest people in a cell, on average.")
    area: str = setting("", "Variable of areas, for the sparsity of each.")
    max_sparsity: float = setting(1.0, "Largest share of an area's cells that may be sparse.")
    sparse_below: float = setting(1.0, "Figures below this are sparse.")
    k_anonymity: float = setting(0.0, "Fewest people in a cell that is not empty.")
    sensitive: tuple[str, ...] = setting((), "Sensitive variables.")
    l_diversity: float = setting(0.0, "Fewest sensitive categories in a group.")
    t_closeness: float = setting(1.0, "Largest distance of a group from everybody.")
    forbidden: tuple[tuple[str, ...], ...] = setting((), "Variables that must not meet.")
    groups: Groups = setting("own", "Groups of categories: own, fixed or none.")
    fixed_groups: Mapping[str, Any] = field(
        default_factory=dict, metadata={"help": "Fixed groups by variable: label → codes."}
    )
    min_difference: float = setting(0.0, "Fewest people between two populations.")
    threshold: float = setting(0.0, "Smallest figure that is shown, zero excepted.")
    public_parameters: tuple[str, ...] = setting(
        (EVERYTHING,), "Parameters of policy and method that the public sees; * for all."
    )

    def __post_init__(self) -> None:
        for name in ("max_variables", "max_cells"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be at least 1, got {getattr(self, name)}.")
        for name in ("max_sparsity", "t_closeness"):
            if not 0 <= getattr(self, name) <= 1:
                raise ParameterError(f"{name} must lie in 0..1, got {getattr(self, name)}.")
        if self.groups not in get_args(Groups):
            raise ParameterError(f"groups must be own, fixed or none, got {self.groups!r}.")
        if self.max_sparsity < 1 and not self.area:
            raise ParameterError("max_sparsity is judged for each area: name the variable, area.")
        if (self.l_diversity or self.t_closeness < 1) and not self.sensitive:
            raise ParameterError("l_diversity and t_closeness need the sensitive variables.")

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, those on public sizes first."""
        return tuple(self._rules())

    @cached_property
    def judges(self) -> bool:
        """Whether some rule looks at protected figures."""
        return any(type(rule).judge is not Rule.judge for rule in self.rules)

    def check(self, question: Question) -> None:
        """Refuse what public sizes forbid."""
        for rule in self.rules:
            rule.check(question)

    def judged(self, question: Question, cube: Cube, figures: Figures) -> Judged:
        """The cube as far as its protected values allow it to be shown."""
        found = Judged(cube)
        for rule in self.rules:
            found = rule.judge(question, found, figures)
        return found

    def tells(self, name: str) -> bool:
        """Whether the public sees a parameter."""
        return EVERYTHING in self.public_parameters or name in self.public_parameters

    def public(self) -> dict[str, Any]:
        """The settings that the public sees, as plain data."""
        shown = [f.name for f in fields(self) if f.name not in _NOT_TOLD and self.tells(f.name)]
        return {name: getattr(self, name) for name in shown}

    def check_names(self, known: Mapping[str, Any]) -> None:
        """Refuse a policy that speaks of variables which are not on offer."""
        used = {"area": [self.area] if self.area else [], "sensitive": self.sensitive}
        used |= {"forbidden": [n for s in self.forbidden for n in s]}
        used |= {"fixed_groups": list(self.fixed_groups)}
        for entry, names in used.items():
            for name in names:
                if name not in known:
                    listed = ", ".join(known)
                    raise ParameterError(
                        f"{entry} of the policy names {name!r}, which is not on offer: {listed}."
                    )

    def _rules(self) -> Iterator[Rule]:
        yield self._limit(MaxVariables, "max_variables")
        yield self._limit(MaxCells, "max_cells")
        if self.forbidden:
            yield Forbidden(self.forbidden)
        yield Grouping(self.groups, self.fixed_groups)
        if self.min_population:
            yield self._limit(MinPopulation, "min_population")
        if self.min_mean_cell:
            yield self._limit(MinMeanCell, "min_mean_cell")
        if self.k_anonymity:
            yield self._limit(KAnonymity, "k_anonymity")
        if self.l_diversity:
            yield self._limit(LDiversity, "l_diversity", self.sensitive)
        if self.t_closeness < 1:
            yield self._limit(TCloseness, "t_closeness", self.sensitive)
        if self.min_difference:
            yield self._limit(MinDifference, "min_difference", self.max_cells)
        if self.max_sparsity < 1:
            yield Sparsity(self.area, self.max_sparsity, self.sparse_below)
        if self.threshold:
            yield self._limit(Threshold, "threshold")

    def _limit(self, rule: Callable[..., Rule], name: str, *more: Any) -> Rule:
        return rule(getattr(self, name), self.tells(name), *more)
