"""From a confidential table to protected values: for publication (the one way out) or a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from discreet import __version__, registry
from discreet.digests import digest
from discreet.errors import ParameterError
from discreet.ledger import AVERAGED, Ledger
from discreet.protect import editions
from discreet.protect.draws import SecretDraws, SeededDraws, release_digest
from discreet.protect.keyed_noise import check_law_to_keep, without_parameters
from discreet.protect.options import check_listed, with_declared_grid
from discreet.protect.privacy import cost_of
from discreet.protect.sentences import data_step, follows_truth
from discreet.tables.canonical import as_requested, canonical_order, canonical_table, table_digest
from discreet.tables.protected import (
    COUNT,
    VALUE,
    WEIGHT,
    Draws,
    Experiment,
    Method,
    Protected,
    PublicTable,
)
from discreet.tables.truth import UNNAMED, TrueTable

AnyTable = TypeVar("AnyTable", bound=TrueTable)
SOURCES = ("keys", "table", "system")
_REMEDY = {
    COUNT: " with grid=, which is for weighted counts; leave it out",
    WEIGHT: " without grid=, the public weight of one step of noise",
}
ANOTHER_LAW = (
    "Values of one cell under several laws of noise, methods or units narrow its count down: four "
    "cell-key releases with other parameters tell {four:.0%} of the counts of a table exactly, one "
    "tells {one:.0%}. Give further tables the noise of the first release"
)
"""What releases by key give away together; the figures are measured by `attack.several_laws`."""
MEASURED = {"one": 0.29, "four": 0.64}
_SUBTRACTED = (
    "A cell that one of two tables hides can often be computed from the other. Protect all margins "
    "in one table, or make the method of the second by `dc.consistent(method, table, first)`"
)


def publish(
    table: TrueTable,
    method: Method | str,
    parameters: Mapping[str, Any],
    *,
    unit: str | None,
    ledger: Any,
    again: bool,
    previous: Any = None,
    publish_parameters: bool = True,
) -> PublicTable:
    """A release of the table; see `Table.protect`.

    What the custodian's ledger must know is entered before the release is returned, so that a
    program that dies in between has counted too much and never too little.
    """
    if "seed" in parameters:
        raise ParameterError(
            "publication draws from a secret, not from a seed: whoever knows a seed can undo the "
            "noise. Leave out seed= and give the records or the table a secret; for an experiment "
            "use `table.simulate(method, seed=1)`."
        )
    chosen = built(method, parameters)
    _refuse_clock(chosen)
    if not publish_parameters:
        check_law_to_keep(chosen)
    table = in_unit(table, chosen, unit)
    chosen = with_declared_grid(chosen, table.data_set.bounds)
    book = open_ledger(table.ledger, create=False) if ledger is None else open_ledger(ledger)
    if book is None:
        over = table.design.over_variables
        check_listed(chosen, 0 if over is None else len(over.axes))
    as_given, chosen = chosen, _follow(chosen, table, previous)
    check = getattr(chosen, "check_for", None)
    if check is not None:
        check(table)
    plan = editions.plan_edition(table, chosen)
    editions.check_number(plan, table, book)
    number = _register(book, chosen, table, again)
    found = editions.find_earlier(plan, table, chosen, previous, book)
    protected: Protected | None = found.whole
    if protected is None:
        protected = editions.repeat(found, run(chosen, table, SecretDraws()), table)
        if book is not None and protected.statement.privacy is not None:
            cost = cost_of(protected.statement.privacy)
            book.spend(table.data_set, cost, {"method": chosen.name})
    told: dict[str, Any] = {"number": number, "plan": editions.said(found), "place": found.place}
    told |= {"is_counted": book is not None, "follows": chosen is not as_given}
    first = data_step(table, chosen, **told)
    statement = replace(protected.statement.with_first_step(first), version=__version__)
    if not publish_parameters:
        statement = without_parameters(statement)
    made = PublicTable.wrap(replace(protected, statement=statement))
    editions.enter(found, made, table, chosen, book)
    return made


def _follow(method: Method, table: TrueTable, previous: Any) -> Method:
    """The method as it goes on from earlier editions, where what it shows depends on them."""
    follow = getattr(method, "follow", None)
    if follow is None or previous is None:
        return method
    given = [previous] if isinstance(previous, PublicTable) else list(previous)
    for release in given:
        editions.check_previous(release, table, method)
    found: Method = follow(table, given)
    return found


def _refuse_clock(method: Method) -> None:
    """A search by the clock differs from run to run, the method's own or that of a wrapped one."""
    inside = [method, getattr(method, "method", None)]
    if any(getattr(each, "seconds", None) is not None for each in inside):
        raise ParameterError(
            "seconds= makes the result depend on the machine, so that two runs could be averaged. "
            "A release has the effort that the method gives a table of its size; seconds= works in "
            "`table.simulate` only."
        )


def run(method: Method, table: TrueTable, draws: Draws) -> Protected:
    """The method's result; one that draws for the whole table works on it in canonical order."""
    if method.source not in SOURCES:
        raise ParameterError(
            f"the source of method {method.name!r} must be 'keys', 'table' or 'system', got "
            f"{method.source!r}."
        )
    if method.source != "table":  # keys and the system's noise do not depend on the order
        return method(table, draws=draws)
    ordered, chosen = in_canonical_order(method, table)
    return as_requested(chosen(ordered, draws=draws), table.design)


def in_canonical_order(method: Method, table: TrueTable) -> tuple[TrueTable, Method]:
    """The table in canonical order, and the method with its arrays in the same."""
    order = canonical_order(table.design)
    if order is None:
        return table, method
    rearrange = getattr(method, "in_order", None)
    if rearrange is not None:
        method = rearrange(order.inner, order.published)
    return canonical_table(table, order), method


def built(method: Method | str, parameters: Mapping[str, Any]) -> Method:
    """A method from its name and parameters, or the method itself."""
    if isinstance(method, str):
        found: Method = registry.build("method", method, parameters)
        return found
    if parameters:
        named = ", ".join(parameters)
        raise ParameterError(
            f"parameters go with a method's name; this one is an object already, so {named} would "
            "have no effect."
        )
    if not callable(method) or not hasattr(method, "source"):
        raise ParameterError(f"a method or its name was expected, got {method!r}.")
    return method


def in_unit(table: AnyTable, method: Method, unit: str | None) -> AnyTable:
    """The table with what is to be published of it.

    Raises:
      DesignError: It occupies some cells of a crossing that is too large to be published.
      ParameterError: The table has weights and nothing says whether they matter, or the method
        cannot publish what is asked for.
    """
    table.design.require_public_size()
    if not table.adds_up and (method.source != "keys" or method.claims.additive):
        raise ParameterError(
            f"this table was read with adds_up=False, and method {method.name!r} computes with "
            "sums. Use cell-key, drop-add or pram with margins of their own, or correct the table."
        )
    offered = getattr(method, "units", (COUNT,))
    if table.contributions is not None and unit in (None, table.contributions.value):
        value = table.contributions.value
        if VALUE not in offered:
            raise ParameterError(
                f"this table has magnitudes of {value!r}, and method {method.name!r} publishes "
                "counts. Use 'suppress' or 'magnitude-key' for the sums, or say unit='count' for "
                "numbers of records."
            )
        return replace(table, unit=value)
    has_weights = table.published.weight is not None
    if unit is None and has_weights and offered == (WEIGHT,):
        unit = WEIGHT
    if unit is None:
        if has_weights:
            raise ParameterError(
                "this table has weights, so its counts are numbers of sampled records. Say what is "
                "published: unit='count' for numbers of records, or unit='weight' for weighted "
                "counts, with a method that takes them (cell-key, drop-add, pram with grid=; "
                "laplace, discrete-laplace, discrete-gaussian with a weight bound)."
            )
        unit = COUNT
    if unit not in (COUNT, WEIGHT):
        raise ParameterError(f"unit must be 'count' or 'weight', got {unit!r}.")
    if unit not in offered:
        remedy = _REMEDY[unit] if hasattr(method, "grid") else ""
        raise ParameterError(f"method {method.name!r} cannot publish unit={unit!r}{remedy}.")
    if unit == WEIGHT and not has_weights:
        raise ParameterError("unit='weight' needs a table with weights; name the weight column.")
    return replace(table, unit=unit)


def open_ledger(given: Any, *, create: bool = True) -> Ledger | None:
    """A ledger, or the one in a file; a stored table's own must be where it was."""
    return given if given is None or isinstance(given, Ledger) else Ledger(given, create=create)


def _register(book: Ledger | None, method: Method, table: TrueTable, again: bool) -> int | None:
    """Enter the edition, its counts and a table-wise release; returns the release's number."""
    if book is None:
        return None
    if table.data_set.name == UNNAMED:
        raise ParameterError(
            "a ledger counts by the name of the data set, and these records have none. Open them "
            "with name='census-2026' (`Table.from_counts(..., name=...)`)."
        )
    if method.source != "system":  # ε says what two private editions tell of one person
        book.enter(table)
    # The order of all inner cells is as large as the crossing: a dozen columns by pairs have none.
    ordered, arranged = table, method
    if table.inner is not None or method.source == "table":
        ordered, arranged = in_canonical_order(method, table)
    if table.inner is not None:
        codes = [(axis.name, axis.leaves) for axis in ordered.design.axes]
        counts = table_digest(ordered).hex()
        book.register_counts(table.data_set, digest(codes).hex(), counts)
    if method.source == "system":  # counted by what it costs
        return None
    entry = {"method": method.name, "source": method.source}
    if method.source == "keys":
        shown = keyed_digest(method, table).hex()
        risk = ANOTHER_LAW.format(**MEASURED)
        return book.register_release(table.data_set, shown, entry, again=again, risk=risk)
    if not follows_truth(method):  # a missing secret is an error before anything else
        SecretDraws().generator(method, ordered)
    # the same table on another support can come out otherwise: a release of its own
    identity: list[Any] = [release_digest(arranged, ordered), ordered.design.n_inner]
    # Where values follow from the truth the secret decides which cells are shown: another secret,
    # or none, makes another release, and the two can be compared.
    if follows_truth(method) and ordered.secret is not None:
        identity.append(ordered.secret.mark)
    shown = digest(*identity).hex()
    claims = getattr(method, "claims", None)
    risk = _SUBTRACTED if getattr(claims, "follows_truth", ()) else AVERAGED
    return book.register_release(table.data_set, shown, entry, again=again, risk=risk)


def keyed_digest(method: Method, table: TrueTable) -> bytes:
    """What tells releases by key from each other: the law, what has noise of its own, the unit.

    All tables of an edition share it, since the same cell has the same value in each of them. A
    threshold hides values that are the same ones, so it makes no other release.
    """
    shown = replace(method, threshold=None) if hasattr(method, "threshold") else method  # type: ignore[type-var]
    return digest("keys", table.data_set.name, table.data_set.edition, table.unit, shown)


def simulate(
    table: TrueTable,
    method: Method | str,
    parameters: Mapping[str, Any],
    *,
    seed: int,
    unit: str | None = None,
    name: str = "simulate",
) -> Experiment:
    """A trial of the method on the table; see `Table.simulate`.

    Neither ledger nor register is touched, and neither the table's keys nor its secret are used.
    The name tells this experiment from others under the same seed.
    """
    chosen, draws = built(method, parameters), SeededDraws(seed, name)
    return Experiment.wrap(run(chosen, draws.table(in_unit(table, chosen, unit)), draws))
