"""A data set on a site: what readers are told about it, and the tables it answers with."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from discreet.errors import ParameterError
from discreet.release.cube import Cube
from discreet.serve.answer import Answer, Question, arrange, with_impossible
from discreet.serve.data.cache import MAKING_SEATS, WRITING_SEATS, MemoryCache, Seats
from discreet.serve.data.measures import Measure
from discreet.serve.data.price import Price
from discreet.serve.data.source import DetailedVariable, OfferedVariable, Source, by_detail
from discreet.serve.moves import at_level, counting_only, placed, removed
from discreet.serve.policy.policy import Policy, public_statement
from discreet.serve.policy.rules import Figures, JudgedTable
from discreet.serve.query import Query
from discreet.serve.refusals import (
    Queued,
    Refusal,
    current_note,
    note_question,
    role_of_visitor,
)
from discreet.tables.statement import Statement

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_CUBE_BYTES = 256e6  # that a data set keeps in memory
_MOST_OFFERS, _MOST_TRIED = 3, 8  # tables near to a refused one
Offer = tuple[str, Query]


@dataclass(frozen=True)
class DatasetInfo:
    """What readers are told about a data set; everything is public.

    Attributes:
      title: Its name for readers.
      description: What it counts, in a few sentences.
      topic: What it is about in a word, by which visitors find it.
      source: Where the figures come from.
      date: The day or period they are about.
      updated: The day when they were last changed; that of the build if empty.
      licence: Under which they may be used.
      contact: Whom to ask.
      footnotes: Notes that go with every table.
    """

    title: str = ""
    description: str = ""
    topic: str = ""
    source: str = ""
    date: str = ""
    updated: str = ""
    licence: str = ""
    contact: str = ""
    footnotes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.updated and not _DAY.fullmatch(self.updated):
            raise ParameterError(f"updated must be a day, 2026-11-16, got {self.updated!r}.")

    @property
    def day(self) -> str:
        """The date where it is a day, `2026-11-16`, and nothing where it is a period."""
        return self.date if _DAY.fullmatch(self.date) else ""


@dataclass(eq=False)
class Switch:
    """The switch of one data set.

    Attributes:
      is_closed: Whether the office has closed it.
      for_analysts: Whether viewers get no tables of it.
      is_damaged: Whether its build is not as it was written.
    """

    is_closed: bool = False
    for_analysts: bool = False
    is_damaged: bool = False

    def is_open_to(self, role: str) -> bool:
        """Whether visitors with this role get tables."""
        is_open = not (self.is_closed or self.is_damaged)
        return is_open and not (self.for_analysts and role == "viewer")

    def check(self, title: str) -> None:
        """Refuse a question that the switch does not allow."""
        if self.is_closed:
            message = f"{title} is closed at the moment."
            raise Refusal("closed", message, "Other data sets, or this one later.", 403)
        if self.is_damaged:
            message = f"{title} cannot be shown at the moment."
            raise Refusal("damaged", message, "Other data sets, or this one later.", 503)
        if not self.is_open_to(role_of_visitor()):
            message = f"{title} is for analysts."
            raise Refusal("not_allowed", message, "Other data sets, or sign in as an analyst.", 403)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set by its name on the site.

    Attributes:
      name: Its name in addresses.
      about: What readers are told.
      source: Where protected cubes come from.
      policy: What may be asked.
      switch: Whether the office has closed it, and for whom it is.
      has_queue: Whether somebody makes expensive tables apart from the visitors who ask for them.
      time: The variable of periods, where one is on offer: no figure adds periods up.
      measures: Sums and means beside the counts, by their codes.
    """

    name: str
    about: DatasetInfo
    source: Source
    policy: Policy = field(default_factory=Policy)
    switch: Switch = field(default_factory=Switch)
    has_queue: bool = False
    time: str = ""
    measures: Mapping[str, Measure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.policy.check_names({v.name: v for v in self.variables})

    @property
    def title(self) -> str:
        """Its name for readers."""
        return self.about.title or self.name

    @property
    def closed(self) -> bool:
        """Whether the office has closed it."""
        return self.switch.is_closed

    @property
    def fault(self) -> str:
        """What keeps its tables from being made: `"build"`, `"records"`, or nothing."""
        if self.switch.is_damaged:
            return "build"
        return "" if self.source.is_current else "records"

    @property
    def edition(self) -> str:
        """The edition of the records."""
        return self.source.edition

    @property
    def updated(self) -> str:
        """The day when the figures were last changed, `2026-11-16`; empty if it is not known."""
        return self.about.updated or self.source.made_on or self.about.day

    @cached_property
    def variables(self) -> tuple[OfferedVariable, ...]:
        """The variables on offer, in public order."""
        found = self.source.variables
        return tuple(v.as_periods() if v.name == self.time else v for v in found)

    @property
    def units(self) -> tuple[str, ...]:
        """What is published, the first by default: counts, then measures."""
        return (*self.source.units, *self.measures)

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods of the figures: those of time, or the year, or the edition in its place."""
        for variable in self.variables:
            if variable.is_time:
                return tuple(variable.axis.leaves)
        year = re.search(r"\b\d{4}\b", self.about.date)
        return (year[0] if year else self.edition,)

    def holds(self, words: Sequence[str], topic: str = "") -> bool:
        """Whether what readers are told holds all words, and the topic is this one."""
        about, labels = self.about, [v.label for v in self.variables]
        told = (self.name, self.title, about.description, about.topic, about.source, *labels)
        text = " ".join(told).casefold()
        return (not topic or about.topic == topic) and all(w.casefold() in text for w in words)

    @property
    def is_live(self) -> bool:
        """Whether tables are made when they are asked for."""
        return self.source.mode == "on-the-fly"

    def answer(self, query: Query) -> Answer:
        """The table that a query asks for.

        Raises:
          Refusal: The table is not on offer; the refusal says why and what would be.
        """
        with note_question(self.name, self.edition, query.address) as note:
            self.switch.check(self.title)
            question = None
            try:
                question = Question.checked(self, query)
                self._check_shares(question)
                self.policy.check(question)
                self._check_price(question)
                counted = self.counted_in(question.unit)
                judged = self._judge(question, lambda details: self.cube(details, counted))
            except Refusal as refusal:
                # Asked for only now: each offer is checked like a question of its own.
                given = [offer for offer in refusal.offers if self._is_allowed(offer[1])]
                if question is not None and not refusal.offers:
                    given = nearby_tables(question, self._is_allowed)
                refusal.offers = tuple(given[:_MOST_OFFERS])
                raise
            note.cells = judged.cube.values.size
            under_way = current_note()
            if under_way is note:  # a request's first table; others are written in the same seat
                seats = WRITING_SEATS.of(question.cells)
                note.seat.enter_context(seats.take(note.visitor))
            return Answer(self, question, judged.cube, judged.notes)

    def _check_price(self, question: Question) -> None:
        """Refuse a table that costs too much, or send it to the queue.

        Raises:
          Refusal: It costs more than the policy allows.
          Queued: Its visitor should not wait for it.
        """
        self.policy.check_price(self.price(question))
        is_asked = current_note() is not None  # the office itself waits as long as it takes
        if self.has_queue and is_asked and not self.is_quick(question):
            raise self.queued(question)

    def counted_in(self, unit: str) -> str:
        """The unit of the counts that a unit is judged by: its own, where it counts."""
        return self.source.units[0] if unit in self.measures else unit

    def may_share(self, unit: str) -> bool:
        """Whether figures have shares: means are no parts of a whole."""
        return unit not in self.measures or not self.measures[unit].is_mean

    def _check_shares(self, question: Question) -> None:
        """Refuse shares of means."""
        query = question.query
        if query.view.show != "count" and not self.may_share(question.unit):
            offers = [("without percentages", query.changed(show="count"))]
            message = "Means have no percentages: they are no parts of a whole."
            raise Refusal("no_shares", message, "Means as they are.", offers=offers)

    def queued(self, question: Question) -> Queued:
        """What the queue is told of a table."""
        what = (self.name, self.edition, question.details, question.unit, question.query)
        return Queued(*what, self.price(question).seconds)

    def price(self, question: Question) -> Price:
        """What a table costs, by public figures."""
        price, measure = self.source.price(question.in_public_order), question.unit
        if measure not in self.measures:
            return price
        return price + self.measures[measure].price(question.in_public_order)

    def is_quick(self, question: Question) -> bool:
        """Whether a table is answered at once: it costs little, or was made before."""
        if not self.is_live or self.price(question).seconds <= self.policy.queue_seconds:
            return True
        return self.is_at_hand(question.details, question.unit)

    def is_at_hand(self, details: tuple[str, ...], unit: str) -> bool:
        """Whether a crossing was made before."""
        is_kept = (self.source.edition, details, unit) in self._cubes
        return is_kept or self.source.has(details, unit)

    @property
    def kept_tables(self) -> int:
        """Tables that are at hand in memory."""
        return len(self._cubes)

    def quick_tables(self, question: Question) -> list[Offer]:
        """Tables near to an expensive one that are answered at once."""

        def is_allowed(query: Query) -> bool:
            return self._is_allowed(query) and self.is_quick(Question.checked(self, query))

        return nearby_tables(question, is_allowed)

    def _judge(self, question: Question, figures: Figures) -> JudgedTable:
        """The table as far as protected figures allow it to be shown.

        Rules speak of people: a measure is judged by the counts of its cells.
        """
        figures = cache(figures)  # of this question: it waits for a seat once, whatever rules ask
        cube = figures(question.details)
        if self.source.mode == "release-once":  # on the fly others may be lacking as well
            cube = with_impossible(cube, question)
        counts = arrange(cube, question)
        judged = self.policy.judge(question, counts, figures)
        measure = self.measures.get(question.unit)
        if measure is None:
            return judged
        cube = arrange(self.cube(question.details, measure.sum), question)
        found = replace(judged, cube=measure.mean(cube, counts) if measure.is_mean else cube)
        left_out = counts.is_shown & ~judged.cube.is_shown
        return found.with_hidden(left_out & found.cube.is_shown) if left_out.any() else found

    def is_offered(self, query: Query) -> bool:
        """Whether public names and sizes allow a query; protected figures may still forbid it."""
        return self._is_allowed(query, by_figures=False)

    def _is_allowed(self, query: Query, *, by_figures: bool = True) -> bool:
        """Whether a query is known to be answered, without asking the engine."""
        try:
            question = Question.checked(self, query)
            self._check_shares(question)
            self.policy.check(question)
            self.policy.check_price(self.price(question))
            if by_figures and self.policy.judges:
                counted = self.counted_in(question.unit)
                self._judge(question, lambda details: self._cube_at_hand(details, counted))
        except Refusal:
            return False
        return True

    def _cube_at_hand(self, details: tuple[str, ...], unit: str) -> Cube:
        """A protected crossing that costs no question to the engine."""
        if self.is_live and not self.is_at_hand(details, unit):
            raise Refusal("not_at_hand", "The table was not made yet.", "Tables made before.")
        return self.cube(details, unit)

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """A protected crossing, kept for the next visitor."""

        def make() -> Cube:
            if unit in self.measures:
                named = by_detail(self.variables)
                cube = self.measures[unit].cube([named[detail] for detail in details])
            else:
                cube = self._by_period(self.source.cube(details, unit))
            return replace(cube, statement=public_statement(cube.statement, self.policy))

        return self._cubes.get((self.source.edition, details, unit), make)

    def _by_period(self, cube: Cube) -> Cube:
        """The crossing without the sum over all periods, which nothing shows or judges."""
        if not self.time:
            return cube
        if self.time not in cube.names:
            raise ParameterError(f"a table of {self.name!r} needs its period, {self.time!r}.")
        return cube.select(self.time, [e.code for e in cube.axis(self.time).entries[1:]])

    @property
    def statement(self) -> Statement:
        """What is done to every table of counts, as far as the office tells."""
        return public_statement(self.source.statement, self.policy)

    @property
    def statements_of_sums(self) -> dict[str, Statement]:
        """The same of each sum beside the counts."""
        sums = [measure for measure in self.measures.values() if not measure.is_mean]
        return {one.name: public_statement(one.tables[0].statement, self.policy) for one in sums}

    @cached_property
    def first(self) -> Query:
        """A small table to start from: the first variable by the one with the fewest categories.

        A variable of time comes first, so that its series are seen.
        Where the policy does not allow that, the first that it allows of smaller ones; on the fly
        by public sizes, since figures would have to be made for it.
        """
        ordered = sorted(self.variables, key=lambda v: v.name != self.time)
        names = [v.smallest.name for v in ordered]
        by_size = sorted(ordered[1:], key=lambda v: v.smallest.cells)
        pairs = [Query(rows=(names[0],), columns=(v.smallest.name,)) for v in by_size]
        options = [*pairs, *(Query(rows=(name,)) for name in names)]
        allowed = (q for q in options if self._is_allowed(q, by_figures=not self.is_live))
        return next(allowed, options[0])

    # Behind the cache of whole responses (0.4 ms) this one serves other layouts, languages and
    # files of a crossing. A page of 1,656 cells takes 11 ms with it and 15 ms without where the
    # table is released once, 6 and 8 ms where it is private and lies on the disk. It is for tables
    # on the fly: 6 and 28 ms on a small survey, and a question to the engine costs seconds on large
    # records; whoever asks for the same meanwhile waits for the one that is made.
    @cached_property
    def _cubes(self) -> MemoryCache[tuple[str, tuple[str, ...], str], Cube]:
        sizes = {d.name: d.cells for v in self.variables for d in v.details}

        def seats_of(key: tuple[str, tuple[str, ...], str]) -> Seats:
            return MAKING_SEATS.of(math.prod(sizes[detail] for detail in key[1]))

        seats = seats_of if self.is_live else None
        # The 2,000 bytes are for what stands around the figures.
        return MemoryCache(
            _CUBE_BYTES, lambda cube: cube.values.nbytes + cube.status.nbytes + 2_000, seats
        )


def nearby_tables(question: Question, is_allowed: Callable[[Query], bool]) -> list[Offer]:
    """The largest tables near to the one asked for that would be answered.

    Args:
      question: What was asked.
      is_allowed: Whether a query would be answered.
    """
    near = sorted(_candidates(question), key=lambda option: -option[0])
    unique = list({query: (label, query) for _, label, query in near}.values())
    found = []
    for label, query in unique[:_MOST_TRIED]:
        if is_allowed(query):
            found.append((label, query))
        if len(found) == _MOST_OFFERS:
            break
    return found


def _candidates(question: Question) -> Iterator[tuple[int, str, Query]]:
    """Other tables with their public numbers of cells."""
    query, cells = question.query, question.cells
    if query.groups:
        yield cells, "without own groups", query.changed(groups={})
    for asked in question.filters:
        label = f"without the filter on {asked.label_inside}"
        if not asked.variable.is_time:
            yield cells // asked.detail.cells, label, counting_only(query, asked.name, ())
    for one in placed(query, question.on_offer):
        rest = cells // one.detail.cells
        for detail in one.variable.details:
            if detail.cells < one.detail.cells:
                label = DetailedVariable(one.variable, detail).label
                yield rest * detail.cells, label, at_level(query, one, detail)
        if len(question.shown) > 1:
            without = counting_only(removed(query, one), one.name, ())
            yield rest, f"without {one.label_inside}", without
