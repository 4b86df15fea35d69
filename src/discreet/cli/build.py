"""`discreet build`: the protected inner tables that a site serves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer, progress_bar, say
from discreet.cli.records import Again
from discreet.progress import notice

_NO_LEDGER = (
    "data set {!r} names no ledger, so an edition that differs from an earlier one by a single "
    "person is not noticed, and whoever compares both learns about this person. Name one beside "
    "its records: ledger = 'ledger.db'."
)


def build(
    site: Annotated[Path, typer.Argument(help="The site's file, a site.toml.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A data set; may be repeated.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Leave out data sets that are built already.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what the build takes, and stop.")
    ] = False,
    again: Again = False,
    as_json: Json = False,
) -> None:
    """Protect the data sets that are released once, so that `discreet serve` can answer.

    Example: discreet build site.toml

    Example: discreet build site.toml --only census --plan
    """
    from discreet.serve.build import build as build_one  # start-up time
    from discreet.serve.build import datasets_to_build, open_records_of, plan_build  # start-up time
    from discreet.serve.site.config import read_site  # start-up time

    config = read_site(site)
    done = []
    for dataset in datasets_to_build(config, only or (), stale=stale):
        data = open_records_of(config, dataset)
        needs = plan_build(dataset, data)
        if not as_json:
            say(needs.text)
        if plan:
            done.append({"name": needs.name, "inner": needs.inner, "memory": needs.memory})
            continue
        if data.ledger is None:
            notice(_NO_LEDGER.format(dataset.name))
        with progress_bar():
            built = build_one(config, dataset, data, again=again)
        done.append({"name": built.name, "edition": built.edition, "cells": built.cells})
    lines = [f"{d['name']}: {d['cells']:,} protected cells" for d in done if "cells" in d]
    text = "\n".join(lines) or ("" if plan else "Every data set is built.")
    if as_json or text:
        answer({"datasets": done}, as_json, text)
