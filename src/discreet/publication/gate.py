"""The gate: a publication is attacked before it leaves the house.

The *method* is judged before anything is drawn, on experiments that are not the release: whoever
drew again until a release passed would choose it by the truth. On the release itself only tests of
the public side run. A private method is judged without the truth, by the distinguishing game. What
is found is confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import registry
from discreet.arrays import Mask
from discreet.attacks.custodian import names_of_cells
from discreet.attacks.frame import Knowledge
from discreet.attacks.games import trait
from discreet.attacks.privacy_game import play
from discreet.attacks.reconstruction import IntegerReconstruction, possible_sums
from discreet.attacks.run import public_view, refusal_of, true_view, views_of
from discreet.attacks.scoring import WORST
from discreet.errors import DiscreetError, GateError, ParameterError
from discreet.files import OWNER_ONLY, write_text
from discreet.progress import OutOfTimeError, report, time_limit
from discreet.publication.likely import DRAWS, SEED, LikelyClaims
from discreet.publication.plan import Publication
from discreet.publication.rules import Gate
from discreet.randomness import stream
from discreet.tables.protected import COUNT

if TYPE_CHECKING:
    from discreet.facade.microdata import Microdata
    from discreet.facade.table import Table
    from discreet.ledger import Ledger
    from discreet.tables.protected import Protected
    from discreet.tables.truth import DataSet


@dataclass
class Judgement:
    """**Confidential.** What attacks found of a method or of a release."""

    what: str  # what was judged
    # Rules that are broken, each with cells and the setting that would help.
    broken: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)  # what was not finished
    lines: list[str] = field(default_factory=list)  # the report
    # What attacks reached that claim what is likely, by table.
    likely: list[LikelyClaims] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The report, the verdict first."""
        verdict = [f"- **stopped**: {why}" for why in self.broken]
        verdict += [f"- not judged: {what}" for what in self.unjudged]
        return "\n".join([f"## The {self.what}", "", *(verdict or ["- passed"]), "", *self.lines])

    def within(self, rules: Gate, steps: Iterator[str]) -> Judgement:
        """Take steps until the time is over; what is going on then is not judged, nor the rest."""
        going_on = "everything"
        try:
            with time_limit(rules.seconds):
                for step in steps:
                    going_on = f"{step} and what follows"
                    report(f"attacks on the {self.what}", 0.0)
        except OutOfTimeError:
            self.unjudged.append(f"{going_on}, after {rules.seconds:g} seconds")
        for one in self.likely:
            lines, broken = one.verdict()
            self.lines += lines
            self.broken += broken
        return self


def judge_method(publication: Publication, data: Microdata, table: Table) -> Judgement:
    """Attack experiments of the method, or play against a private one without the truth.

    The publication has its paths made whole; its tables say how views of the records are taken.
    """
    found, rules = Judgement("method"), publication.rules
    method = registry.build("method", publication.method.name, publication.method.parameters)
    if method.source == "system":
        return found.within(rules, _play(method, found))
    return found.within(rules, _attack_draws(publication, method, data, table, found))


def judge_release(publication: Publication, release: Protected) -> Judgement:
    """Look for people who are certain, from the public side.

    Those whom the release shows as they are take no time to be found, so no limit excuses them.
    """
    found, rules = Judgement("release"), publication.rules
    _note_shown(release, rules, found)
    return found if found.broken else found.within(rules, _prove(release, rules, found))


@dataclass(frozen=True)
class Gatekeeper:
    """Writes what was found where the office keeps it, and lets pass or stops."""

    report: Path  # the confidential report
    accept: str  # why something may pass that was not judged; empty where nobody said so
    ledger: Ledger | None  # where stops are entered
    data_set: DataSet  # which edition is to be published

    def check(self, found: Judgement, number: int = 0) -> None:
        """Write the report, then let pass; the ledger gave the release that was drawn a number.

        Raises:
          GateError: A rule is broken, or something was not judged and nobody accepted that.
        """
        self._write(found)
        if found.broken:
            said = "; ".join(found.broken)
            if self.ledger is not None:
                self.ledger.stop(self.data_set, found.what, said, number)
            raise GateError(
                f"attacks stopped this publication: {said}. Nothing was published. The report is "
                f"{self.report}; the rules are [gate] of the publication."
            )
        if not found.unjudged:
            return
        said = "; ".join(found.unjudged)
        if not self.accept.strip():
            if self.ledger is not None:
                self.ledger.stop(self.data_set, f"{found.what}, not judged", said)
            raise GateError(
                f"attacks on the {found.what} did not finish: {said}. Nothing was published. Give "
                "them more time ([gate] seconds), publish fewer or coarser tables, or accept it "
                f"with a reason: --accept '…'. The report is {self.report}."
            )
        if self.ledger is not None:
            self.ledger.pass_unjudged(self.data_set, f"{found.what}: {said}", self.accept)

    def _write(self, found: Judgement) -> None:
        before = _HEAD
        if found.what == "release" and self.report.is_file():
            before = self.report.read_text(encoding="utf-8").split("## The release")[0]
        self.report.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(self.report, f"{before}{found.text}\n\n", OWNER_ONLY)


_HEAD = "CONFIDENTIAL. What attacks found before publication. For the office alone.\n\n"


def _play(method: Any, found: Judgement) -> Iterator[str]:
    """The distinguishing game: no record of the publication is looked at."""
    yield "the distinguishing game"
    try:
        game = play(method, seed=SEED, games=4_000)
    except DiscreetError as error:
        found.unjudged.append(f"the distinguishing game cannot be played: {error}")
        return
    said = f"ε is at least {game.at_least:.3g} by the game, and {game.epsilon:.3g} by its statement"
    found.lines.append(f"- {method.name}: {said}.")
    if game.is_refuted:
        found.broken.append(f"{said}: the statement is false")


def _attack_draws(
    publication: Publication, method: Any, data: Microdata, table: Table, found: Judgement
) -> Iterator[str]:
    """Certain people in all views first, then claims that are likely."""
    rules, unit = publication.rules, publication.unit
    views = {}
    for name, terms in views_of(table.design.require_variables("tables")).items():
        yield f"counting {name}"
        views[name] = true_view(publication.of(terms).tabulate(data))

    def make(other: Table, seed: int) -> Protected:
        return publication.fit(other.simulate(method, seed=seed, unit=unit))

    draws: dict[str, Protected] = {}
    for name, view in views.items():
        for seed in range(SEED, SEED + DRAWS):
            yield f"proofs in {name}"
            draws[name] = make(view, seed)
            _note_certain(name, draws[name], rules, found, view)
    for name, view in views.items():
        if name not in table.tables and len(views) > 1:
            continue  # groups and counts of a pair are those of its tables
        if view.inner is None or view.contributions is not None:
            found.lines.append(f"- {name}: sums, whose attacks are in the report of the method.")
            continue
        one = LikelyClaims(name, view, make, rules)
        found.likely.append(one)
        yield from one.attack_first(draws[name])
    # Time that is over here leaves nothing unjudged: every attack had its draw.
    with suppress(OutOfTimeError):
        for one in found.likely:
            one.attack_again()


def _prove(release: Protected, rules: Gate, found: Judgement) -> Iterator[str]:
    design = release.design.require_variables("tables")
    for name, terms in views_of(design).items():
        yield f"proofs in {name}"
        _note_certain(name, public_view(release, terms), rules, found)


def _note_shown(release: Protected, rules: Gate, found: Judgement) -> None:
    """Stop where more people than allowed are in small cells that are shown as they are."""
    if IntegerReconstruction.name not in rules.attacks or release.unit != COUNT:
        return
    try:
        blocks = list(_small_as_they_are(release, rules))
    except ParameterError:  # the law is not told: the proofs say that they have nothing to attack
        return
    cells = max(blocks, key=lambda block: sum(block.values()), default={})
    if sum(cells.values()) > rules.provably_fixed:
        found.broken.append(
            f"{sum(cells.values())} people are in cells of fewer than {rules.small} that are shown "
            f"as they are, where {rules.provably_fixed} are allowed "
            f"({', '.join(_names(release, cells, inner=False))}); {IntegerReconstruction.remedy}"
        )


def _note_certain(
    view: str, release: Protected, rules: Gate, found: Judgement, truth: Table | None = None
) -> None:
    """Count the people who are certain, and what was not decided."""
    for name, prove in _PROOFS.items():
        if name not in rules.attacks:
            continue
        attack = registry.build("attack", name)
        if why := refusal_of(attack, release, Knowledge(), False):
            said = f"{view}: {name} has nothing to attack, {why}"
            if "more than" in why:
                found.unjudged.append(said)
            found.lines.append(f"- {said}.")
            continue
        people, cells, undecided = prove(release, rules, truth)
        line = f"{view}: {name} proves {people} people in small or protected cells"
        found.lines.append(
            f"- {line}" + (f", {undecided:,} cells undecided." if undecided else ".")
        )
        if people > rules.provably_fixed:
            found.broken.append(
                f"{line}, where {rules.provably_fixed} are allowed ({', '.join(cells)}); "
                f"{trait(attack, 'remedy')}"
            )
        if undecided and truth is not None:
            found.unjudged.append(f"{view}: {undecided:,} cells that {name} did not decide")


Proof = tuple[int, Sequence[str], int]


def _prove_people(release: Protected, rules: Gate, truth: Table | None) -> Proof:
    """People of inner cells that are the same in every table.

    Of an experiment the true table is one of them, so a cell is free where one person more or less
    agrees with the release as well.
    """
    made = IntegerReconstruction().vary(release, stream(SEED, "gate"))
    small = made.table < rules.small
    told = made.is_fixed & (made.table > 0) & (small | ~_shows_inner(release))
    left = ~made.is_fixed & ~made.is_free
    if truth is not None and left.any():
        left &= ~_moves_alone(release, truth)
    cells = {int(k): int(made.table[k]) for k in np.flatnonzero(told)}
    certain, names = sum(cells.values()), _names(release, cells, inner=True)
    for block in _small_as_they_are(release, rules):
        if sum(block.values()) > certain:
            certain, names = sum(block.values()), _names(release, block, inner=False)
    return certain, names, int(left.sum())


def _prove_counts(release: Protected, rules: Gate, truth: Table | None) -> Proof:
    """Counts that only one value is possible of, where the published value does not say so."""
    claims = registry.build("attack", "bounds")(release, Knowledge(), rng=stream(SEED, "gate"))
    proven = np.zeros(len(claims), bool) if claims.proven is None else claims.proven
    said = zip(claims.targets, claims.values, proven, strict=True)
    cells = {int(k): int(v) for k, v, is_sure in said if is_sure and 0 < v < rules.small}
    return sum(cells.values()), _names(release, cells, inner=False), 0


_PROOFS: dict[str, Callable[[Protected, Gate, Table | None], Proof]] = {
    "integer-reconstruction": _prove_people,
    "bounds": _prove_counts,
}


def _names(release: Protected, cells: dict[int, int], *, inner: bool) -> list[str]:
    smallest = dict(sorted(cells.items(), key=lambda pair: pair[1])[:WORST])
    return names_of_cells(release, smallest, inner=inner)


def _small_as_they_are(release: Protected, rules: Gate) -> Iterator[dict[int, int]]:
    """By margin the published cells of few people that are shown as they are."""
    low, high, _, _ = possible_sums(release)
    told = (low == high) & (low > 0) & (low < rules.small)
    design = release.design.require_variables("margins")
    for k in range(len(design.blocks)):
        cells = np.arange(design.n_published)[design.slice_of(k)]
        yield {int(c): int(low[c]) for c in cells[told[cells]]}


def _shows_inner(release: Protected) -> Mask:
    """Which inner cells are published as they are: the office shows them of its own will."""
    low, high, _, _ = possible_sums(release)
    design = release.design
    is_exact = np.append((low == high) & (design.column_sizes == 1), False)
    return np.asarray(is_exact[design.members(np.arange(design.n_inner))].any(axis=1))


def _moves_alone(release: Protected, truth: Table) -> Mask:
    """Inner cells that can have one person more, or less, than the truth has."""
    low, high, floor, ceiling = possible_sums(release)
    members = release.design.members(np.arange(release.design.n_inner))
    more = np.append(high - truth.z, np.inf)[members].min(axis=1) >= 1
    less = np.append(truth.z - low, np.inf)[members].min(axis=1) >= 1
    return np.asarray((more & (truth.y + 1 <= ceiling)) | (less & (truth.y - 1 >= floor)))
