"""What the public is told of a method: all of it, or the parameters that the office chooses."""

from __future__ import annotations

from dataclasses import replace

from discreet.serve.policy.policy import EVERYTHING, Policy
from discreet.tables.statement import Sentence, Statement, Step


def told(statement: Statement, policy: Policy) -> Statement:
    """The statement with the parameters that the policy makes public.

    Where some are kept back, sentences with figures are left out too: they would name them.
    """
    if EVERYTHING in policy.public_parameters:
        return statement
    return replace(statement, steps=tuple(_step(step, policy) for step in statement.steps))


def _step(step: Step, policy: Policy) -> Step:
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
