"""A site as plain data for the browser: what is on offer, what may be asked, what is said.

All of it is public on the server's pages as well. Numbers that templates print as Python does are
written as texts, since JavaScript does not tell 1.0 from 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.arrays import Index
from discreet.release.language import built_in
from discreet.serve.data.dataset import Dataset
from discreet.serve.data.inner import InnerTable
from discreet.serve.data.source import Detail, DetailedVariable, OfferedVariable
from discreet.serve.policy.policy import Policy
from discreet.serve.site.site import Site
from discreet.serve.static.cells import base_name, bases_of
from discreet.serve.web.drawing import readable
from discreet.serve.web.texts import Texts
from discreet.tables.statement import Statement, plain_data

_BESIDE = ("code", "counted", "said", "numbers")  # of texts, told apart from the sections of pages


def to_json(told: Any) -> bytes:
    """Plain data as a file; the same data are the same bytes."""
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def site_rules(site: Site, version: str) -> dict[str, Any]:
    """What the pages of a site have in common; data sets and texts are added by their files."""
    config = site.config
    return {
        "title": site.title,
        "description": config.description,
        "contact": config.contact,
        "address": config.address.rstrip("/"),
        "accent": readable(config.accent),
        "picture": picture_name(config.logo),
        "languages": list(config.languages),
        "language_names": {code: site.language(code).texts.name for code in config.languages},
        "version": version,
    }


def picture_name(logo: str) -> str:
    """What the site's picture is called; its ending tells browsers what it is."""
    return f"logo{Path(logo).suffix.lower()}" if logo else "icon.svg"


def text_rules(texts: Texts) -> dict[str, Any]:
    """The texts of a language."""
    return {
        "code": texts.code,
        "content": _sections(texts, _BESIDE),
        "counted": {name: list(forms) for name, forms in texts.counted.items()},
        "said": list(texts.said.items()),
        "words": built_in(texts.code).get("words", {}),
        "numbers": asdict(texts.numbers),
    }


def _sections(texts: SimpleNamespace, but: Iterable[str] = ()) -> dict[str, Any]:
    entries = {k: v for k, v in vars(texts).items() if k not in but and not k.startswith("_")}
    is_section = {k: isinstance(v, SimpleNamespace) for k, v in entries.items()}
    return {k: _sections(v) if is_section[k] else v for k, v in entries.items()}


def dataset_rules(dataset: Dataset, table: InnerTable) -> dict[str, Any]:
    """A data set in one language."""
    return {
        "name": dataset.name,
        "title": dataset.title,
        "about": asdict(dataset.about),
        "edition": dataset.edition,
        "updated": dataset.updated,
        "periods": list(dataset.periods),
        "time": dataset.time,
        "units": list(dataset.units),
        "is_integer": bool(np.issubdtype(table.values.dtype, np.integer)),
        "tells_margins": dataset.policy.tells("margins"),
        "variables": [_variable(v) for v in dataset.variables],
        "policy": _policy(dataset.policy),
        "statement": _statement(dataset.statement),
        "first": dataset.first.address,
    }


def _variable(variable: OfferedVariable) -> dict[str, Any]:
    """A variable with the codes on offer, and none of a level that is not."""
    axis, bases = variable.axis, sorted(bases_of(variable), key=lambda base: -base.size)
    slots = np.stack([base.slots for base in bases])  # the first tells most apart
    told_apart = np.unique(slots, axis=1, return_inverse=True)[1].ravel()
    codes = {e.code for detail in variable.details for e in variable.entries(detail)}
    known = {code: code in codes or code in axis.total_codes for code in axis.code_leaves}
    members = {c: np.unique(told_apart[k]) for c, k in axis.code_leaves.items() if known[c]}
    return {
        "name": variable.name,
        "title": variable.label_inside,
        "is_time": variable.is_time,
        "leaves": list(axis.leaves) if bases[0].name == axis.name else [],
        "total_codes": list(axis.total_codes),
        "labels": [[code, label] for code, label in axis.labels.items() if code in members],
        "nodes": [[code, _runs(leaves)] for code, leaves in members.items()],
        "details": [_detail(variable, detail) for detail in variable.details],
    }


def _runs(places: Index) -> list[list[int]]:
    """Increasing places as pairs of a first one and how many follow each other."""
    starts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(places))
    return [[int(places[k]), int(n)] for k, n in zip(starts, lengths, strict=True)]


def _detail(variable: OfferedVariable, detail: Detail) -> dict[str, Any]:
    base = base_name(variable, detail)
    return {
        "name": detail.name,
        "label": detail.label,
        "has_total": detail.has_total,
        "cells": detail.cells,
        "leaves_out": DetailedVariable(variable, detail).leaves_out,
        "last_level": len(detail.levels[-1]),
        "entries": [[e.code, e.label, e.depth, e.is_sum] for e in variable.entries(detail)],
        "base": base,
        "slots": None if base == variable.name else list(detail.levels[0].codes),
    }


def _policy(policy: Policy) -> dict[str, Any]:
    limits = ("max_variables", "max_cells", "threshold", "groups")
    fixed: Mapping[str, Mapping[str, Any]] = policy.fixed_groups
    groups = [
        [name, [[label, list(codes)] for label, codes in own.items()]]
        for name, own in fixed.items()
    ]
    told = {name: getattr(policy, name) for name in limits}
    return {**told, "fixed_groups": groups}


def _statement(statement: Statement) -> dict[str, Any]:
    privacy = None if statement.privacy is None else vars(statement.privacy)
    steps = [
        {
            "name": step.name,
            "parameters": [[k, _parameter_text(v)] for k, v in plain_data(step.parameters).items()],
            "parameters_json": json.dumps(plain_data(step.parameters), ensure_ascii=False),
            "sentences": [sentence.to_json() for sentence in step.sentences],
        }
        for step in statement.steps
    ]
    told = json.dumps(plain_data(privacy), ensure_ascii=False)
    return {"steps": steps, "privacy_json": told, "version": statement.version}


def _parameter_text(value: Any) -> str | bool:
    """A parameter as templates print it."""
    return value if isinstance(value, bool) else str(value)
