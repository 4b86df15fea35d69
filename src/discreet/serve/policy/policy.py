"""The policy of a data set: its rules, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, get_args

from discreet.errors import ParameterError
from discreet.release.cube import Cube
from discreet.serve.policy.populations import (
    KAnonymityRule,
    LDiversityRule,
    MinDifferenceRule,
    MinMeanCellRule,
    MinPopulationRule,
    SparsityRule,
    TClosenessRule,
)
from discreet.serve.policy.rules import (
    Figures,
    ForbiddenRule,
    GroupingRule,
    Groups,
    JudgedTable,
    MaxCellsRule,
    MaxVariablesRule,
    PolicyRule,
    ThresholdRule,
)
from discreet.serve.question import Question
from discreet.serve.site.sections import setting
from discreet.tables.statement import Sentence, Statement, Step

EVERYTHING = "*"
_CONFIDENTIAL = ("public_parameters",)


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
    def rules(self) -> tuple[PolicyRule, ...]:
        """The rules, those on public sizes first."""
        return tuple(self._rules())

    @cached_property
    def judges(self) -> bool:
        """Whether some rule looks at protected figures."""
        return any(type(rule).judge is not PolicyRule.judge for rule in self.rules)

    def check(self, question: Question) -> None:
        """Refuse what public sizes forbid."""
        for rule in self.rules:
            rule.check(question)

    def judged(self, question: Question, cube: Cube, figures: Figures) -> JudgedTable:
        """The cube as far as its protected values allow it to be shown."""
        found = JudgedTable(cube)
        for rule in self.rules:
            found = rule.judge(question, found, figures)
        return found

    def tells(self, name: str) -> bool:
        """Whether the public sees a parameter."""
        return EVERYTHING in self.public_parameters or name in self.public_parameters

    def public(self) -> dict[str, Any]:
        """The settings that the public sees, as plain data."""
        shown = [f.name for f in fields(self) if f.name not in _CONFIDENTIAL and self.tells(f.name)]
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

    def _rules(self) -> Iterator[PolicyRule]:
        yield self._limit(MaxVariablesRule, "max_variables")
        yield self._limit(MaxCellsRule, "max_cells")
        if self.forbidden:
            yield ForbiddenRule(self.forbidden)
        yield GroupingRule(self.groups, self.fixed_groups)
        if self.min_population:
            yield self._limit(MinPopulationRule, "min_population")
        if self.min_mean_cell:
            yield self._limit(MinMeanCellRule, "min_mean_cell")
        if self.k_anonymity:
            yield self._limit(KAnonymityRule, "k_anonymity")
        if self.l_diversity:
            yield self._limit(LDiversityRule, "l_diversity", self.sensitive)
        if self.t_closeness < 1:
            yield self._limit(TClosenessRule, "t_closeness", self.sensitive)
        if self.min_difference:
            yield self._limit(MinDifferenceRule, "min_difference", self.max_cells)
        if self.max_sparsity < 1:
            yield SparsityRule(self.area, self.max_sparsity, self.sparse_below)
        if self.threshold:
            yield self._limit(ThresholdRule, "threshold")

    def _limit(self, rule: Callable[..., PolicyRule], name: str, *more: Any) -> PolicyRule:
        return rule(getattr(self, name), self.tells(name), *more)


def public_statement(statement: Statement, policy: Policy) -> Statement:
    """The statement with the parameters that the policy makes public.

    Where some are kept back, sentences with figures are left out too: they would name them.
    """
    if EVERYTHING in policy.public_parameters:
        return statement
    return replace(statement, steps=tuple(_public_step(step, policy) for step in statement.steps))


def _public_step(step: Step, policy: Policy) -> Step:
    kept = {name: value for name, value in step.parameters.items() if policy.tells(name)}
    if len(kept) == len(step.parameters):
        return step
    said = tuple(s for s in map(_without_figures, step.sentences) if s is not None)
    return Step(step.name, kept, said)


def _without_figures(sentence: Sentence) -> Sentence | None:
    text = "" if _has_figure(sentence.text) else sentence.text
    plain = "" if _has_figure(sentence.plain) else sentence.plain
    if not text and not plain:
        return None
    return replace(sentence, text=text or plain, plain=plain)


def _has_figure(text: str) -> bool:
    return any(c.isdigit() for c in text)
