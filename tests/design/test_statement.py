"""Statements: derived from steps, never older than the values they describe."""

import json

from discreet.tables import PrivacyStatement, Sentence, Statement, Step
from discreet.tables.statement import plain_data, step_of

DONE = Sentence("noise", "Noise was added.", "Figures were changed.", "process")
TRUE = Sentence("small", "Values are small.", "Figures are small.", "values", lambda e: True)
LIMIT = Sentence("other", "Other releases are not counted.", about="limits")
FIRST = Statement((Step("protect:x", {"a": 1}, (LIMIT, TRUE, DONE)),), version="1")


def test_the_text_says_what_was_done_then_what_holds_then_what_is_not_protected():
    assert [s.kind for s in FIRST.sentences] == ["noise", "small", "other"]
    assert FIRST.text == "Noise was added. Values are small. Other releases are not counted."
    assert FIRST.plain == "Figures were changed. Figures are small."


def test_a_step_that_changes_values_takes_back_what_was_said_of_them():
    fit = Step("fit:y", {}, (Sentence("adds-up", "Sums add up."),))
    after = FIRST.then(fit)
    assert [s.kind for s in after.sentences] == ["noise", "adds-up", "other"]
    assert [step.name for step in after.steps] == ["protect:x", "fit:y"]
    assert after.steps[0].parameters == {"a": 1}
    kept = FIRST.then(fit, changes_values=False)
    assert kept.says("small")
    assert not after.says("small")
    assert FIRST.says("small")


def test_what_several_steps_say_is_said_once():
    twice = FIRST.then(Step("tabulate", {}, (LIMIT, DONE)), changes_values=False)
    assert twice.text == FIRST.text
    assert twice.plain == FIRST.plain


def test_a_step_can_come_first():
    before = FIRST.with_first_step(Step("data", {"name": "census"}))
    assert [step.name for step in before.steps] == ["data", "protect:x"]
    assert before.version == "1"


def test_statements_survive_json_without_their_predicates():
    privacy = PrivacyStatement(1.0, 0.0, 2.0, 0.0, 6, "record", 0.5)
    statement = Statement(FIRST.steps, privacy, "1")
    again = Statement.from_json(json.loads(json.dumps(statement.to_json())))
    assert again == statement
    assert again.text == statement.text
    assert again.privacy == privacy
    assert all(s.holds is None for s in again.sentences)


def test_parameters_that_were_left_out_are_not_named_and_odd_ones_become_text():
    step = step_of("x", {"a": None, "b": 2}, [])
    assert step.parameters == {"b": 2}
    assert plain_data({1: (2, [None, 3.5]), "x": object}) == {
        "1": [2, [None, 3.5]],
        "x": str(object),
    }
