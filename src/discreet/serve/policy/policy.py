"""The policy of a data set: its rules, in the order in which they are asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, get_args

from discreet.errors import ParameterError
from discreet.release.cube import Cube
from discreet.serve.answer import Question
from discreet.serve.data.price import Price
from discreet.serve.data.source import OfferedVariable
from discreet.serve.policy import rules
from discreet.serve.policy.rules import Figures, Groups, JudgedTable
from discreet.serve.refusals import Refusal
from discreet.serve.site.sections import setting
from discreet.tables.statement import Sentence, Statement, Step

EVERYTHING = "*"
# Rules on figures by the entry that puts them into force, in the order in which they are asked.
_FIGURE_RULES = {
    "min_population": rules.judge_population,
    "min_mean_cell": rules.judge_mean_cell,
    "k_anonymity": rules.judge_anonymity,
    "l_diversity": rules.judge_diversity,
    "t_closeness": rules.judge_closeness,
    "min_difference": rules.judge_difference,
    "max_sparsity": rules.judge_sparsity,
    "threshold": rules.judge_threshold,
}
_LIMITS = (
    "max_seconds", "max_megabytes", "queue_seconds", "min_population", "min_mean_cell",
    "sparse_below", "k_anonymity", "l_diversity", "min_difference", "threshold",
)  # fmt: skip
# Beyond them a limit would forbid everything, or a rule nothing.
_RANGES = {
    **dict.fromkeys(("max_variables", "max_cells"), (1, math.inf)),
    **dict.fromkeys(_LIMITS, (0, math.inf)),
    **dict.fromkeys(("max_sparsity", "t_closeness"), (0, 1)),
}


@dataclass(frozen=True)
class Policy:
    """What visitors may ask of a data set, judged on public sizes and protected figures alone."""

    max_variables: int = setting(3, "Most variables in one table, filters included.")
    max_cells: int = setting(10_000, "Most cells in one table, totals included.")
    max_seconds: float = setting(120.0, "Most processor seconds that a table may cost.")
    max_megabytes: float = setting(2_000.0, "Most memory that making a table may take.")
    queue_seconds: float = setting(2.0, "Seconds from which on a table is made in the queue.")
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
        for name, (least, most) in _RANGES.items():
            if not least <= getattr(self, name) <= most:
                within = f"be at least {least}" if most == math.inf else f"lie in {least}..{most}"
                raise ParameterError(f"{name} must {within}, got {getattr(self, name)}.")
        if self.groups not in get_args(Groups):
            raise ParameterError(f"groups must be own, fixed or none, got {self.groups!r}.")
        if self.max_sparsity < 1 and not self.area:
            raise ParameterError("max_sparsity is judged for each area: name the variable, area.")
        if (self.l_diversity or self.t_closeness < 1) and not self.sensitive:
            raise ParameterError("l_diversity and t_closeness need the sensitive variables.")
        if not all(self.forbidden):
            raise ParameterError("a set of forbidden must name variables: [] would forbid all.")

    @cached_property
    def judges(self) -> bool:
        """Whether some rule looks at protected figures."""
        return bool(self._rules_in_force)

    @cached_property
    def _rules_in_force(self) -> list[str]:
        off = {f.name: f.default for f in fields(self)}  # every default forbids nothing
        return [name for name in _FIGURE_RULES if getattr(self, name) != off[name]]

    def check(self, question: Question) -> None:
        """Refuse what public names and sizes forbid."""
        # Sizes first: later rules go through codes and groups one by one.
        rules.check_size(self, question)
        rules.check_combinations(self, question)
        rules.check_groups(self, question)

    def check_price(self, price: Price) -> None:
        """Refuse what costs too much."""
        rules.check_price(self, price)

    def judge(self, question: Question, cube: Cube, figures: Figures) -> JudgedTable:
        """The cube as far as its protected values allow it to be shown."""
        case, found = rules.Case(self, question, figures), JudgedTable(cube)
        for name in self._rules_in_force:
            found = _FIGURE_RULES[name](case, found)
        return found

    def refusal(self, code: str, message: str, allowed: str, entry: str) -> Refusal:
        """A refusal by the limit that an entry sets."""
        return Refusal(code, message, self.with_limit(allowed, entry))

    def with_limit(self, text: str, entry: str) -> str:
        """A text with the limit that an entry sets in place of `{}`, where the public sees it."""
        if not self.tells(entry):
            return text.format("a certain number of")
        limit = getattr(self, entry)
        return text.format(f"{limit:,g}" if limit % 1 else f"{int(limit):,}")

    def tells(self, name: str) -> bool:
        """Whether the public sees a parameter."""
        return EVERYTHING in self.public_parameters or name in self.public_parameters

    def public(self) -> dict[str, Any]:
        """The settings that the public sees, as plain data."""
        names = [f.name for f in fields(self) if f.name != "public_parameters"]
        return {name: getattr(self, name) for name in names if self.tells(name)}

    def check_names(self, known: Mapping[str, OfferedVariable]) -> None:
        """Refuse a policy that speaks of variables or codes which are not on offer."""
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
        for variable, groups in self.fixed_groups.items():
            if not _are_groups(groups):
                raise ParameterError(
                    f"fixed_groups of {variable!r} must be labels with lists of codes, such as "
                    f"{{'A group' = ['A', 'B']}}; got {groups!r}."
                )
            levels = [{e.code for e in known[variable].entries(d)} for d in known[variable].details]
            for label, codes in groups.items():
                if not any(level.issuperset(codes) for level in levels):
                    raise ParameterError(
                        f"fixed_groups of the policy: no level of {variable!r} on offer has all "
                        f"codes of the group {label!r}: {', '.join(map(str, codes))}. Visitors "
                        "could never choose it, and would be told its codes."
                    )


def _are_groups(given: Any) -> bool:
    """Whether plain data are labels with lists of codes."""
    lists = list(given.values()) if isinstance(given, Mapping) else [None]
    return all(
        isinstance(codes, list | tuple) and codes and all(isinstance(c, str) for c in codes)
        for codes in lists
    )


def public_statement(statement: Statement, policy: Policy) -> Statement:
    """The statement with the parameters that the policy makes public.

    Where some are kept back, sentences with figures are left out too: they would name them.
    """
    if EVERYTHING in policy.public_parameters:
        return statement
    return replace(statement, steps=tuple(_public_step(step, policy) for step in statement.steps))


def _public_step(step: Step, policy: Policy) -> Step:
    public = {name: value for name, value in step.parameters.items() if policy.tells(name)}
    if len(public) == len(step.parameters):
        return step
    sentences = tuple(s for s in map(_without_figures, step.sentences) if s is not None)
    return Step(step.name, public, sentences)


def _without_figures(sentence: Sentence) -> Sentence | None:
    text, plain = (
        "" if any(c.isdigit() for c in said) else said for said in (sentence.text, sentence.plain)
    )
    if not text and not plain:
        return None
    return replace(sentence, text=text or plain, plain=plain)
