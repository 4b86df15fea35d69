"""k-anonymity, l-diversity and t-closeness of the crossing of a table, on protected figures.

The crossing has the variables of all filters, and is judged before groups and choices of
categories: what the whole does not satisfy, no part of it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Real
from discreet.release.cube import Cube
from discreet.serve.policy.rule import Figures, Judged, Limit, finest, has_few, whole
from discreet.serve.question import Question


@dataclass(frozen=True)
class KAnonymity(Limit):
    """No combination of the variables has fewer people than k, but for none at all."""

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse a table with a combination of too few."""
        if has_few(whole(question, figures), self.limit):
            message = "Some combinations of these variables have very few people."
            raise self.refusal("k_anonymity", message, "At least {} people, or none, in a cell.")
        return judged


@dataclass(frozen=True)
class _OfSensitive(Limit):
    """A rule about the sensitive variables of a table, one after the other."""

    sensitive: tuple[str, ...] = ()

    def judge(self, question: Question, judged: Judged, figures: Figures) -> Judged:
        """Refuse a table in which some group tells too much about a sensitive variable."""
        full = whole(question, figures)
        for name in self.sensitive:
            if name in full.names and len(full.names) > 1:
                self._judge_one(_by_group(full, name), name)
        return judged

    def _judge_one(self, groups: Real, name: str) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class LDiversity(_OfSensitive):
    """Every group that is not empty has people in so many categories of a sensitive variable."""

    def _judge_one(self, groups: Real, name: str) -> None:
        if ((groups > 0).sum(axis=1) < self.limit).any():
            message = f"In some groups nearly everybody has the same {name!r}."
            raise self.refusal("l_diversity", message, "At least {} categories in every group.")


@dataclass(frozen=True)
class TCloseness(_OfSensitive):
    """No group's shares of a sensitive variable lie further from those of everybody."""

    def _judge_one(self, groups: Real, name: str) -> None:
        if not groups.size:
            return
        everybody = groups.sum(axis=0) / groups.sum()
        shares = groups / groups.sum(axis=1, keepdims=True)
        if (0.5 * np.abs(shares - everybody).sum(axis=1) > self.limit).any():
            message = f"In some groups {name!r} differs very much from everybody's."
            allowed = "Tables in which no group lies further than {} from everybody."
            raise self.refusal("t_closeness", message, allowed)


def _by_group(cube: Cube, sensitive: str) -> Real:
    """A row for each group of people that look alike, a column for each sensitive category.

    Negative figures, which noise can make, count as none; groups without people are left out.
    """
    others = [name for name in cube.names if name != sensitive]
    values, _ = finest(cube.arranged([*others, sensitive]))
    rows = np.maximum(values, 0.0).reshape(-1, values.shape[-1])
    return np.asarray(rows[rows.sum(axis=1) > 0])
