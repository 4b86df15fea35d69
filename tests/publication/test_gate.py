"""The gate: a weak publication is stopped before anybody gets it, a sound one stays what it is."""

import hashlib
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.attacks.groups import NestedCrossings
from discreet.attacks.scoring import Finding, Tally
from discreet.errors import GateError, ParameterError
from discreet.ledger import Ledger
from discreet.progress import OutOfTimeError
from discreet.publication import Choice, Publication, editions, gate, likely
from discreet.publication.likely import LikelyClaims, TriedAttack
from discreet.publication.rules import Gate
from tests.attack.weak_and_sound import plain
from tests.attacks.victims import country
from tests.publication.office import PRIVATE, records, run, write

WEAK = Choice("cell-key", {"D": 1, "V": 0.2})
SHOWN = Choice("suppress", {"rules": "threshold(1)"})
SOUND = Choice("cell-key", {"D": 5, "V": 3, "js": 2})
EXACT = Gate(attack=("integer-reconstruction", "bounds"))


@pytest.fixture
def plan(office):
    """A few people in the office's tables, without a fit, so that proofs have noise to read."""
    records(1, 15).to_csv("people.csv", index=False)
    secret = Path("keys.secret")  # what suppression hides beside follows from it
    secret.write_text(hashlib.sha256(b"a gate").hexdigest())
    secret.chmod(0o600)
    read = Publication.read("publication.toml")
    return replace(read, fitter=None, rounding=None, seed=None, gate=EXACT)


def decisions(office):
    return [row for row in Ledger(office / "discreet.db").rows() if row["entry"] == "decision"]


def published(office):
    return (office / "published" / "1").exists()


@pytest.mark.parametrize(
    ("method", "attack", "remedy"),
    [(WEAK, "bounds", "larger reach"), (SHOWN, "integer-reconstruction", "coarser margins")],
)
def test_a_weak_method_is_stopped_before_it_draws(office, plan, method, attack, remedy):
    weak = replace(plan, method=method)
    with pytest.raises(GateError, match="proves [0-9]+ people") as stop:
        editions.publish(weak, office, edition="1")
    assert "region=" in str(stop.value)
    assert attack in str(stop.value)
    assert remedy in str(stop.value)
    assert "region=" not in stop.value.public()
    assert not published(office)
    assert not list((office / "published").glob(".1*")), "nothing was drawn"
    assert [row["decision"] for row in decisions(office)] == ["stopped"]
    report = office / "confidential" / "people-1.gate.md"
    assert report.stat().st_mode & 0o077 == 0
    assert "**stopped**" in report.read_text()
    with pytest.raises(GateError):
        editions.publish(weak, office, edition="1", accept="We are in a hurry.")
    editions.publish(replace(weak, gate=replace(EXACT, provably_fixed=60)), office, edition="1")


def test_a_sound_one_has_the_same_figures_with_and_without_the_gate(office, plan):
    sound = replace(plan, method=SOUND)
    figures = []
    for rules in (Gate(), Gate("off")):
        done = editions.publish(replace(sound, gate=rules), office, edition="1")
        figures.append({p.name: p.read_bytes() for p in done.folder.rglob("*") if p.is_file()})
        shutil.rmtree(done.folder)
    assert figures[0] == figures[1]
    assert b"provably_fixed" not in b" ".join(figures[0].values())
    assert b"gate" not in figures[0]["manifest.json"]


def test_what_is_not_finished_needs_a_reason(office, plan):
    hurried = replace(plan, method=SOUND, gate=Gate(seconds=0))
    with pytest.raises(GateError, match="did not finish"):
        editions.publish(hurried, office, edition="1")
    with pytest.raises(GateError, match="did not finish"):
        editions.publish(hurried, office, edition="1", accept=" \n")
    assert not published(office)
    editions.publish(hurried, office, edition="1", accept="Checked by hand.")
    assert published(office)
    unjudged = [row for row in decisions(office) if row["decision"] == "published unjudged"]
    assert [row["about"].split(":")[0] for row in unjudged] == ["method", "release"]
    assert {row["reason"] for row in unjudged} == {"Checked by hand."}


def test_a_release_that_is_stopped_is_drawn_anew_by_decision_only(office, plan, monkeypatch):
    """Certain people in the release itself; the method's own draws had none."""
    sound, found = replace(plan, method=SOUND), []

    def broken(publication, release):
        found.append(release.z)
        return gate.Judgement("release", broken=["somebody is certain"])

    with monkeypatch.context() as patch:
        patch.setattr(gate, "judge_release", broken)
        with pytest.raises(GateError, match="somebody is certain"):
            editions.publish(sound, office, edition="1")
        with pytest.raises(GateError, match="--again"):
            editions.publish(sound, office, edition="1", accept="Please.")
    assert len(found) == 1, "the second run drew nothing"
    assert not published(office)
    done = editions.publish(sound, office, edition="1", again=True)
    assert np.array_equal(done.release.z, found[0]), "noise by key is the same noise"


def test_a_private_method_is_judged_without_the_records(office, monkeypatch):
    write(office, "discrete-laplace", PRIVATE)
    private = replace(Publication.read("publication.toml"), gate=Gate(seconds=0))
    monkeypatch.setattr(gate, "_attack_draws", None)
    with pytest.raises(GateError, match="distinguishing game"):
        editions.publish(private, office, edition="1")
    assert not [row for row in Ledger("discreet.db").rows() if row["entry"] == "private release"]
    done = editions.publish(replace(private, gate=Gate()), office, edition="1")
    assert "ε is at least" in (office / "confidential" / "people-1.gate.md").read_text()
    assert done.release.statement.privacy.epsilon == 1


def test_a_killed_run_goes_on_and_judges_what_it_drew(office, plan, monkeypatch):
    sound = replace(plan, method=SOUND)
    with monkeypatch.context() as patch:
        patch.setattr(
            gate.Gatekeeper, "check", lambda _, found, *__: found.what == "method" or 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            editions.publish(sound, office, edition="1")
    assert not published(office)
    monkeypatch.setattr(gate, "judge_method", None)  # it was judged before the draw
    editions.publish(sound, office, edition="1")
    assert published(office)


SPARSE = country(mean=0.4, terms="region*age*sex", region=20, age=8, sex=2)


def lifts(table, make, *attacks):
    """Lines and stops of attacks on all draws that they take."""
    claims = LikelyClaims("t", table, make, Gate(attack=attacks))
    assert list(claims.attack_first(make(table, 1)))
    claims.attack_again()
    return claims.verdict()


def test_lifts_of_people_stop_and_those_of_counts_do_not():
    people, counts = (lifts(SPARSE, plain, a) for a in ("group-attributes", "averages"))
    assert "group-attributes has a lift" in people[1][0]
    assert "lift 1.00" in counts[0][0]
    assert not counts[1]


def test_a_lift_in_doubt_is_tried_on_further_draws():
    """Nested crossings of cell keys: one draw makes forty claims, which may be chance."""

    def make(other, seed):
        return other.simulate(dc.CellKey(dc.perturbation_table(5, 3, 2)), seed=seed)

    name = "nested-crossings"
    once = dc.attack(SPARSE, make(SPARSE, 1), [name])[name]
    assert once.gain(likely._LEVEL) < 0.1 < once.lift
    assert "nested-crossings has a lift" in lifts(SPARSE, make, name)[1][0]

    def private(other, seed):
        return other.simulate(dc.DiscreteLaplace(0.3), seed=seed)

    assert not lifts(SPARSE, private, name)[1]


def test_all_looks_at_an_attack_share_its_false_stops():
    """An interval of which success and baseline have half the error each, after every draw.

    By simulation with a level at which looks do stop: each is wrong as rarely as its share says.
    """
    looks = 2 * likely._MOST_DRAWS  # at all claims, and at the surest
    assert looks * (1 - likely._LEVEL) / 2 == pytest.approx(likely._FALSE_STOPS)
    level, rng, stops, tries = 0.2, np.random.default_rng(1), 0, 2_000
    for told, usual in zip(*(rng.binomial(200, p, tries) for p in (0.55, 0.5)), strict=True):
        tallies = (Tally(np.arange(200) < right, 200) for right in (told, usual))
        stops += Finding("x", *tallies).gain(level) > 0.1
    assert 0 < stops < tries * (1 - level) / 2


def test_a_lift_that_was_found_in_time_stops_whatever_else_was_not_finished():
    """Else no time and a reason would excuse it."""
    told = Finding("x", Tally(np.ones(99, bool), 99), Tally(np.zeros(99, bool), 99))

    def steps():
        attack = NestedCrossings("sex")
        tried = [TriedAttack(attack, told, True)]
        found.likely.append(LikelyClaims("t", SPARSE, plain, Gate(), tried))
        yield "the next attack"
        raise OutOfTimeError

    found = gate.Judgement("method")
    found.within(Gate(), steps())
    assert "t, sex: nested-crossings has a lift of 1.00" in found.broken[0]
    assert found.unjudged


# By an adversary, or somebody careless


def everything_in(folder):
    """All files below a folder, hidden ones too, with what they hold."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def stopped_once(office, plan, method, monkeypatch):
    """A release that is drawn and stopped, and the judgement of releases as it was."""

    def broken(publication, release):
        return gate.Judgement("release", broken=["somebody is certain"])

    with monkeypatch.context() as patch:
        patch.setattr(gate, "judge_release", broken)
        with pytest.raises(GateError, match="somebody is certain"):
            editions.publish(replace(plan, method=method), office, edition="1")


def test_no_public_byte_says_that_something_was_stopped(office, plan, monkeypatch):
    """Nor that the ledger knows of a release that nobody has seen."""
    second = replace(plan, method=SOUND)
    editions.publish(second, office, edition="1")
    never = everything_in(office / "published")
    for name in ("published", "confidential"):
        shutil.rmtree(office / name)
    (office / "discreet.db").unlink()
    stopped_once(office, plan, Choice("cell-key", {"D": 5, "V": 2, "js": 2}), monkeypatch)
    assert everything_in(office / "published") == {}
    assert not list((office / "published").iterdir()), "nothing of the stopped release is left"
    with pytest.raises(GateError, match="--again"):
        editions.publish(second, office, edition="1")
    editions.publish(second, office, edition="1", again=True)
    assert everything_in(office / "published") == never


def test_a_release_that_somebody_has_seen_is_still_counted(office, plan, monkeypatch):
    """The planted fault: all of the ledger's releases taken back, not the stopped one alone."""
    sound = replace(plan, method=SOUND)
    editions.publish(sound, office, edition="1")
    shutil.rmtree(office / "published")
    stopped_once(office, plan, SOUND, monkeypatch)  # the same figures as before
    other = replace(plan, method=Choice("drop-add", {"share": 0.05}), gate=Gate("off"))
    done = editions.publish(other, office, edition="1", again=True)
    assert "This is release 2 of this edition" in done.release.statement.text


def test_the_ledger_remembers_a_stop_where_its_files_are_gone(office, plan, monkeypatch):
    stopped_once(office, plan, SOUND, monkeypatch)
    shutil.rmtree(office / "confidential")
    with pytest.raises(dc.errors.LedgerError, match="attacks stopped a release"):
        editions.publish(replace(plan, method=SOUND), office, edition="1")
    assert not published(office)


def test_a_redraw_that_fails_forgets_no_stop(office, plan, monkeypatch):
    stopped_once(office, plan, SOUND, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(Publication, "run", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(replace(plan, method=SOUND), office, edition="1", again=True)
    with pytest.raises(GateError, match="--again"):
        editions.publish(replace(plan, method=SOUND), office, edition="1")


def test_no_time_and_a_reason_do_not_excuse_people_who_are_shown(office, plan):
    hurried = replace(plan, method=SHOWN, gate=Gate(seconds=0))
    with pytest.raises(GateError, match="shown as they are"):
        editions.publish(hurried, office, edition="1", accept="We are in a hurry.")
    assert not published(office)
    assert [row["decision"] for row in decisions(office)] == ["published unjudged", "stopped"]


def test_a_draw_of_an_unguarded_run_is_judged_by_the_rules_of_the_next(office, plan, monkeypatch):
    """A run without attacks is killed after its draw; the next one has rules again."""
    weak = replace(plan, method=WEAK)
    with monkeypatch.context() as patch:
        patch.setattr(editions, "_stage", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            editions.publish(replace(weak, gate=Gate("off")), office, edition="1")
    judged = []
    monkeypatch.setattr(
        gate, "judge_release", lambda *_: judged.append(1) or gate.Judgement("release")
    )
    with pytest.raises(GateError, match="attacks stopped"):
        editions.publish(weak, office, edition="1")
    assert not judged
    assert not published(office)


def test_that_attacks_are_off_is_entered(office, plan):
    editions.publish(replace(plan, method=WEAK, gate=Gate("off")), office, edition="1")
    assert [(row["decision"], row["about"], row["reason"]) for row in decisions(office)] == [
        ("published unjudged", "everything", "[gate] attack = 'off'")
    ]


def test_a_correction_is_attacked_as_well(office, plan):
    data = {name: value for name, value in plan.data.items() if name != "ledger"}
    alone = replace(plan, data=data)  # a ledger holds a correction of so few people anyway
    editions.publish(replace(alone, method=SOUND), office, edition="1")
    weak, told = replace(alone, method=WEAK), {"corrects": "1", "reason": "Typos."}
    with pytest.raises(GateError, match="proves [0-9]+ people"):
        editions.publish(weak, office, edition="1-r1", **told)
    assert not (office / "published" / "1-r1").exists()
    assert '"valid": true' in (office / "published" / "1" / "manifest.json").read_text()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attack": "bounds"}, r"\['bounds'\]"),
        ({"attack": ["bound"]}, "bounds"),
        ({"lift": 2}, "between 0 and 1"),
        ({"seconds": "long"}, "is a number"),
        ({"provably_fixed": -1}, "whole number"),
        ({"fixed": 1}, "provably_fixed"),
    ],
)
def test_rules_that_make_no_sense(given, said):
    with pytest.raises(dc.DiscreetError, match=said):
        Gate.from_dict(given)


def test_rules_are_read_and_written(office):
    text = (office / "publication.toml").read_text()
    (office / "publication.toml").write_text(f"{text}lift = 0.2\n")
    read = Publication.read("publication.toml")
    assert read.rules == Gate(("bounds",), lift=0.2)
    assert Publication.from_dict(read.to_dict()) == read
    assert run("publish", "publication.toml", "--edition", "1") == 0
    with pytest.raises(ParameterError):
        Publication.from_dict({**read.to_dict(), "gate": "off"})
    assert re.search("bounds", (office / "confidential" / "people-1.gate.md").read_text())


SITE = """
[datasets.people]
title = "People"
[datasets.people.records]
source = "people.csv"
id = "id"
name = "people"
codes = "codes.toml"
secret = "keys.secret"
ledger = "discreet.db"
[datasets.people.recipe.tabulate]
margins = "region*age*sex"
[datasets.people.recipe.protect]
method = "METHOD"
parameters = {PARAMETERS}
[datasets.people.recipe.gate]
attack = ["integer-reconstruction", "bounds"]
small = 6
"""


def site(method, parameters):
    text = SITE.replace("METHOD", method).replace("PARAMETERS", parameters)
    (Path.cwd() / "site.toml").write_text(text)


def test_a_builder_is_built_behind_its_gate(office, monkeypatch, capsys):
    """The method is stopped before the draw, the release before anybody is served."""
    records(1, 60).to_csv("people.csv", index=False)
    site("safe", "max_move = 10")
    for what in ("method", "release"):
        broken = gate.Judgement(what, broken=["somebody is certain"])
        with monkeypatch.context() as patch:
            patch.setattr(gate, f"judge_{what}", lambda *_, found=broken: found)
            assert run("build", "site.toml") == 2
            assert "attacks stopped this publication" in capsys.readouterr().err
    assert not list(office.rglob("*.inner*")), "nothing was built"
    assert [row["decision"] for row in decisions(office)] == ["stopped", "stopped"]
    assert "release" not in {row["entry"] for row in Ledger(office / "discreet.db").rows()}
    assert run("build", "site.toml") == 2
    assert "again" in capsys.readouterr().err
    assert run("build", "site.toml", "--again") == 0
