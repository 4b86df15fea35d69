"""Attack a release, or a method over many draws, and say what was recovered beside guessing.

People of a whole publication are combinations of everything that any table shows, often millions.
Its tables are therefore attacked as views: alone, in pairs that share a variable, or all together,
over no more combinations than these tell apart.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from discreet import registry
from discreet.arrays import Array
from discreet.assessment.compare.contestants import as_list
from discreet.attacks.custodian import Custodian, Maker, names_of_cells
from discreet.attacks.frame import Attack, Claims, Knowledge
from discreet.attacks.games import OF_RECORDS, play_with, trait
from discreet.attacks.public_side import ask, public_side
from discreet.attacks.scoring import WORST, Finding, Tally
from discreet.design.formula import Term, resolve
from discreet.design.parts import sum_to_levels
from discreet.design.structured import StructuredDesign
from discreet.display import Display, Displayed, Grid
from discreet.display.bars import shows_progress
from discreet.errors import ParameterError, whole
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.progress import report
from discreet.randomness import stream
from discreet.release.tabulate import take_part
from discreet.synthesis.result import Synthesized
from discreet.tables.protected import Method, Protected
from discreet.tables.show import Frames

AttackLike = Attack | str
PROVING = ("integer-reconstruction", "bounds")
"""Attacks whose surest claims are proofs, which need no truth to be believed."""
_MARKING = "CONFIDENTIAL. What attacks recovered, judged against the truth. Do not publish it."
_PROVEN = "What follows from the release with certainty, without the truth."


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Displayed, Frames, Mapping[str, Finding]):
    """**Confidential.** What each attack reached, by its name.

    Attributes:
      by_name: The findings.
      passed_over: Attacks that had nothing to attack, and why.
    """

    by_name: dict[str, Finding]
    passed_over: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Finding:
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    @property
    def provably_fixed(self) -> int:
        """The largest number of people whom an attack found with certainty.

        Nobody found is nobody certain only where `undecided` is zero as well.
        """
        return max((found.fixed for found in self.values()), default=0)

    @property
    def undecided(self) -> int:
        """The largest number of cells that an attack left undecided."""
        return max((found.undecided for found in self.values()), default=0)

    @property
    def told(self) -> list[Finding]:
        """Findings above their baseline beyond chance, the largest lift first."""
        above = [found for found in self.values() if found.is_above() or found.proven]
        return sorted(above, key=lambda found: -found.lift)

    def pooled(self, other: Findings) -> Findings:
        """The findings of two draws as one."""
        both = {
            name: found.pooled(other[name]) if name in other else found
            for name, found in self.items()
        }
        return Findings({**other.by_name, **both}, {**other.passed_over, **self.passed_over})

    def to_frame(self) -> Frame:
        """A row for each attack."""
        rows = []
        for name, found in self.items():
            low, high = found.lift_interval()
            rows.append(
                {
                    "attack": name,
                    "claims": found.judged.claims,
                    "success": found.success,
                    "baseline": found.guess,
                    "blind": found.blind,
                    "lift": found.lift,
                    "lift_low": low,
                    "lift_high": high,
                    "proven": found.proven,
                    "fixed": found.fixed,
                    "undecided": found.undecided,
                    "beside": found.beside,
                    "remedy": found.remedy,
                    "seconds": found.seconds,
                }
            )
        return Frame.from_rows(rows)

    @property
    def text(self) -> str:
        """The findings as lines of text."""
        is_judged = any(found.judged.targets for found in self.values())
        lines = [_MARKING if is_judged else _PROVEN]
        for found in self.values():
            lines.append(str(found))
            lines += [f"  {line}" for line in found.worst_lines]
        lines += [f"{name}: nothing to attack, {why}" for name, why in self.passed_over.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text

    def _display(self) -> Display:
        is_judged = any(found.judged.targets for found in self.values())
        header = ("attack", "right", "claims", "guessing", "lift", "at least", "at most", "certain")
        rows: list[tuple[str, ...]] = [header]
        for name, found in self.items():
            ends = (f"{end:.2f}" for end in (found.lift, *found.lift_interval()))
            claims = f"{found.judged.claims:,}"
            shares = f"{found.success:.1%}", claims, f"{found.guess:.1%}"
            figures = (*shares, *ends) if found.judged.targets else ("–",) * 6
            rows.append((name, *figures, f"{found.proven:,}"))
        passed = [f"{name}: nothing to attack, {why}" for name, why in self.passed_over.items()]
        told = [(name, found.worst_lines) for name, found in self.items() if found.worst_lines]
        return Display(
            "Attacks",
            "confidential" if is_judged else "",
            grids=[Grid.of(rows, right=range(1, len(header)))] if len(rows) > 1 else [],
            lines=[*told, *([("Passed over", passed)] if passed else [])],
            note=_MARKING if is_judged else _PROVEN,
        )


@shows_progress("attacking")
def attack(
    table: Any,
    release: Any,
    attacks: Sequence[AttackLike] | AttackLike | None = None,
    *,
    knowledge: Knowledge | None = None,
    method: Method | Maker | str | None = None,
    before: Sequence[Table] = (),
    seed: int = 1,
    progress: bool = True,
) -> Findings:
    """What an intruder recovers from a release, beside what guessing gives.

    Attacks see the release and the knowledge, never the table. The baseline of an attack is the
    same attack on releases that are drawn without the records of the people it is judged on, as
    experiments; the release itself is not drawn again.

    Args:
      table: The true table; the original records where the release is synthetic ones. Without it
        (`None`) only those attacks run that prove what they claim, from the public side.
      release: What is attacked: a release, a trial, or synthetic records.
      attacks: Attacks or their names; all that are registered and find something to attack when
        absent.
      knowledge: What the intruder knows beside the release.
      method: How the release was made, where its statement does not say all: a method, or a
        function of a table and a seed that makes a trial (fits included). Without it the baseline
        is a guess without any release, and findings say so.
      before: True tables of the earlier releases in `knowledge`, oldest first.
      seed: Root of everything that is drawn; the same seed gives the same findings.
      progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
    """
    known = Knowledge() if knowledge is None else knowledge
    of_records = isinstance(release, Synthesized)
    chosen, is_asked = _chosen(PROVING if table is None and attacks is None else attacks)
    if table is None:
        return _prove(chosen, release, known, whole("seed", seed, 0))
    if of_records:
        custodian = Custodian(table, release, known, seed=whole("seed", seed, 0))
    else:
        custodian = Custodian.of(
            table, release, known, before=before, method=method, seed=whole("seed", seed, 0)
        )
    found, passed = {}, {}
    for k, each in enumerate(chosen):
        report("attacks", k / len(chosen))
        why = refusal_of(each, release, known, of_records)
        if why:
            passed[each.name] = why
        else:
            found[each.name] = play_with(each, custodian)
    if is_asked and not found:
        why = "; ".join(f"{name}: {said}" for name, said in passed.items())
        raise ParameterError(f"none of the attacks has anything to attack here ({why}).")
    return Findings(found, passed)


@shows_progress("attacking")
def attack_method(
    table: Table,
    method: Method | Maker | str,
    attacks: Sequence[AttackLike] | AttackLike | None = None,
    *,
    replicates: int = 20,
    reruns: int = 0,
    knowledge: Knowledge | None = None,
    seed: int = 1,
    progress: bool = True,
) -> Findings:
    """The same over many draws of a method, pooled: a judgement of the method, not of one release.

    Args:
      table: The true table.
      method: A method, its name, or a function of a table and a seed that makes a trial.
      attacks: As for `attack`.
      replicates: How many releases are drawn and attacked.
      reruns: How many further draws of the same table the intruder has, as if it had been released
        anew so many times.
      knowledge: What the intruder knows beside each release.
      seed: Root of everything that is drawn.
      progress: Whether a bar shows how far the work is; nowhere but in terminals and notebooks.
    """
    whole("replicates", replicates, 1)
    known = Knowledge() if knowledge is None else knowledge
    chosen: Any = registry.build("method", method) if isinstance(method, str) else method

    def draw(number: int) -> Protected:
        made: Protected
        if hasattr(chosen, "source"):
            made = table.simulate(chosen, seed=number)
        else:
            made = chosen(table, number)
        return made

    pooled = Findings({})
    for k in range(replicates):
        report("draws", k / replicates)
        first = seed + 104729 * k  # apart from the seeds of the draws without records
        more = tuple(draw(first + 1 + j) for j in range(reruns))
        told = replace(known, earlier=(*known.earlier, *more))
        found = attack(table, draw(first), attacks, knowledge=told, method=chosen, seed=first)
        pooled = pooled.pooled(found)
    return pooled


def _prove(chosen: list[Any], release: Any, knowledge: Knowledge, seed: int) -> Findings:
    """What follows from the release with certainty; nothing is judged."""
    if others := [each.name for each in chosen if each.name not in PROVING]:
        raise ParameterError(
            f"attack {others[0]!r} claims what is likely, so it is judged by the true table; give "
            f"it, or run {' and '.join(PROVING)} alone."
        )
    found, passed = {}, {}
    for each in chosen:
        why = refusal_of(each, release, knowledge, isinstance(release, Synthesized))
        if why:
            passed[each.name] = why
            continue
        began = time.process_time()
        claims = ask(each, release, knowledge, rng=stream(seed, f"attack: {each.name}"))
        sure = {} if claims.proven is None else _proven_cells(claims)
        inner = trait(each, "about") == "inner"
        people = {cell: value for cell, value in sure.items() if value > 0}
        smallest = dict(sorted(people.items(), key=lambda pair: pair[1])[:WORST])
        found[each.name] = Finding(
            each.name,
            Tally(np.zeros(0, dtype=bool), 0),
            0.0,
            time.process_time() - began,
            proven=len(sure),
            undecided=claims.undecided,
            fixed=int(sum(people.values())) if inner else 0,
            worst=tuple(names_of_cells(release, smallest, inner=inner)),
            remedy=trait(each, "remedy"),
        )
    return Findings(found, passed)


def _proven_cells(claims: Claims) -> dict[Any, Any]:
    told = zip(claims.targets, claims.values, claims.proven, strict=True)  # type: ignore[arg-type]
    return {cell: value for cell, value, is_sure in told if is_sure}


def _chosen(attacks: Sequence[AttackLike] | AttackLike | None) -> tuple[list[Any], bool]:
    """The attacks themselves, and whether they were asked for."""
    if attacks is None:
        return list(registry.each("attack", texts=("name",), calls=("__call__",)).values()), False
    made = [registry.build("attack", a) if isinstance(a, str) else a for a in as_list(attacks)]
    if not made:
        raise ParameterError("no attack was named; leave attacks= out to run all of them.")
    return made, True


def refusal_of(attack: Any, release: Any, knowledge: Knowledge, of_records: bool) -> str:
    """Why an attack has nothing to attack."""
    if (trait(attack, "about") in OF_RECORDS) != of_records:
        return "it is about " + ("tables" if of_records else "synthetic records")
    refusal = getattr(attack, "refusal", None)
    return "" if refusal is None else str(refusal(*public_side(release, knowledge)))


TOGETHER = 4_000
"""Combinations up to which tables are attacked together: reconstruction decides so many."""


def views_of(design: StructuredDesign) -> dict[str, list[Term]]:
    """Margins that are attacked together, by a name for people."""
    tables = {name: list(terms) for name, terms in design.tables.items()}
    every = list(dict.fromkeys(term for terms in tables.values() for term in terms))
    if len(tables) <= 1 or combinations(design, every) <= TOGETHER:
        return {"all tables" if len(tables) > 1 else next(iter(tables), "the table"): every}
    views = dict(tables)
    for one, other in itertools.combinations(tables, 2):
        both = list(dict.fromkeys([*tables[one], *tables[other]]))
        shared = _variables(design, tables[one]) & _variables(design, tables[other])
        if shared and combinations(design, both) <= TOGETHER:
            views[f"{one} + {other}"] = both
    return views


def combinations(design: StructuredDesign, terms: Sequence[Term]) -> int:
    """How many combinations some margins can tell apart at most."""
    blocks = resolve(design.axes, terms)
    sizes = []
    for a, axis in enumerate(design.axes):
        levels = list({id(b.levels[a]): b.levels[a] for b in blocks}.values())
        groups = [level.group for level in levels if level is not None]
        if any(level.is_identity for level in levels if level is not None):
            sizes.append(len(axis))
        elif groups:
            sizes.append(len(np.unique(np.array(groups), axis=1).T))
    return math.prod(sizes)


def _variables(design: StructuredDesign, terms: Sequence[Term]) -> set[int]:
    blocks = resolve(design.axes, terms)
    return {a for b in blocks for a, level in enumerate(b.levels) if level is not None}


def public_view(release: Protected, terms: Sequence[Term]) -> Protected:
    """Some margins of a release over the combinations that they tell apart."""
    part: Any = take_part(release, list(terms))  # type: ignore[type-var]
    coarse = part.design.at_published_levels()
    if coarse is None:
        return part  # type: ignore[no-any-return]
    y = sum_to_levels(part.design, coarse, part.y) if isinstance(part.y, np.ndarray) else None
    found: Protected = replace(part, design=coarse, y=y)
    return found


def true_view(table: Table) -> Table:
    """A table over the combinations that its margins tell apart; one without counts as it is."""
    if table.inner is None or table.contributions is not None:
        return table
    design = table.design.require_variables("variables to be attacked by")
    coarse = design.at_published_levels()
    if coarse is None:
        return table

    def sum_values(values: Array) -> Array:
        return sum_to_levels(design, coarse, values)

    inner = table.inner.apply_linear(sum_values, table.convention)
    found: Table = replace(table, design=coarse, inner=inner)
    return found
