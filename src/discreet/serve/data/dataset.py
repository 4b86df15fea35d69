"""A data set on a site: what readers are told about it, and the tables it answers with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

from discreet.release.cube import Cube
from discreet.serve.answer import Answer, arranged
from discreet.serve.data.cache import Kept
from discreet.serve.data.seats import FOR_THE_ENGINE
from discreet.serve.data.source import Source, Variable
from discreet.serve.data.switch import Switch
from discreet.serve.noted import answering
from discreet.serve.policy.offers import offers
from discreet.serve.policy.policy import Policy
from discreet.serve.policy.rule import Figures, Judged
from discreet.serve.policy.told import told
from discreet.serve.query import Query
from discreet.serve.question import Question
from discreet.serve.refusals import Refusal
from discreet.tables.statement import Statement

ROOM = 256e6
"""Bytes of cubes that a data set keeps in memory."""


@dataclass(frozen=True)
class About:
    """What readers are told about a data set; everything is public.

    Attributes:
      title: Its name for readers.
      description: What it counts, in a few sentences.
      source: Where the figures come from.
      date: The day or period they are about.
      licence: Under which they may be used.
      contact: Whom to ask.
      footnotes: Notes that go with every table.
    """

    title: str = ""
    description: str = ""
    source: str = ""
    date: str = ""
    licence: str = ""
    contact: str = ""
    footnotes: tuple[str, ...] = ()

    @property
    def day(self) -> str:
        """The date where it is a day, `2026-11-16`, and nothing where it is a period."""
        return self.date if re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.date) else ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set by its name on the site.

    Attributes:
      name: Its name in addresses.
      about: What readers are told.
      source: Where protected cubes come from.
      policy: What may be asked.
      switch: Whether the office has closed it, and for whom it is.
      room: Bytes of cubes that are kept in memory.
    """

    name: str
    about: About
    source: Source
    policy: Policy = field(default_factory=Policy)
    switch: Switch = field(default_factory=Switch)
    room: float = ROOM

    def __post_init__(self) -> None:
        self.policy.check_names({v.name: v for v in self.source.variables})

    @property
    def title(self) -> str:
        """Its name for readers."""
        return self.about.title or self.name

    @property
    def closed(self) -> bool:
        """Whether the office has closed it."""
        return self.switch.is_closed

    @property
    def edition(self) -> str:
        """The edition of the records."""
        return self.source.edition

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables on offer, in public order."""
        return self.source.variables

    @property
    def is_live(self) -> bool:
        """Whether tables are made when they are asked for."""
        return self.source.mode == "on-the-fly"

    def answer(self, query: Query) -> Answer:
        """The table that a query asks for.

        Raises:
          Refusal: The table is not on offer; the refusal says why and what would be.
        """
        with answering(self.name, self.edition, query.address) as note:
            self.switch.check(self.title)
            question = Question.checked(self.source, query)
            try:
                answer = self._answered(question)
            except Refusal as refusal:
                if not refusal.offers:
                    refusal.offers = tuple(offers(question, self._is_allowed))
                raise
            note.cells = answer.cube.values.size
            return answer

    def _answered(self, question: Question) -> Answer:
        self.policy.check(question)
        judged = self._judged(question, lambda details: self.cube(details, question.unit))
        return Answer(self, question, judged.cube, judged.notes)

    def _judged(self, question: Question, figures: Figures) -> Judged:
        """The table as far as protected figures allow it to be shown."""
        cube = arranged(figures(question.details), question)
        return self.policy.judged(question, cube, figures)

    def _is_allowed(self, query: Query, *, by_figures: bool = True) -> bool:
        """Whether a query is known to be answered, without asking the engine."""
        try:
            question = Question.checked(self.source, query)
            self.policy.check(question)
            if by_figures and self.policy.judges:
                self._judged(question, lambda details: self._at_hand(details, question.unit))
        except Refusal:
            return False
        return True

    def _at_hand(self, details: tuple[str, ...], unit: str) -> Cube:
        """A protected crossing that costs no question to the engine."""
        if self.is_live and (self.source.edition, details, unit) not in self._cubes:
            raise Refusal("not_at_hand", "The table was not made yet.", "Tables made before.")
        return self.cube(details, unit)

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """A protected crossing, kept for the next visitor."""
        key = (self.source.edition, details, unit)
        return self._cubes.get(key, lambda: self._told(self.source.cube(details, unit)))

    @property
    def statement(self) -> Statement:
        """What is done to every table, as far as the office tells."""
        return told(self.source.statement, self.policy)

    def _told(self, cube: Cube) -> Cube:
        return replace(cube, statement=told(cube.statement, self.policy))

    @cached_property
    def first(self) -> Query:
        """A small table to start from: the first variable by the one with the fewest categories.

        Where the policy does not allow that, the first that it allows of smaller ones; on the fly
        by public sizes, since figures would have to be made for it.
        """
        names = [v.smallest.name for v in self.variables]
        by_size = sorted(self.variables[1:], key=lambda v: v.smallest.cells)
        pairs = [Query(rows=(names[0],), columns=(v.smallest.name,)) for v in by_size]
        options = [*pairs, *(Query(rows=(name,)) for name in names)]
        allowed = (q for q in options if self._is_allowed(q, by_figures=not self.is_live))
        return next(allowed, options[0])

    @cached_property
    def _cubes(self) -> Kept[tuple[str, tuple[str, ...], str], Cube]:
        seats = FOR_THE_ENGINE if self.is_live else None
        return Kept(self.room, lambda cube: cube.values.nbytes + cube.status.nbytes + 2_000, seats)
