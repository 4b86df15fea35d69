"""`discreet codes`: a first draft of code lists, to be reviewed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer, progress_bar
from discreet.cli.records import Records, with_options
from discreet.errors import ParameterError
from discreet.files import OWNER_ONLY, written_whole


@with_options
def codes(
    *,
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The code lists, a new .toml file.")],
    max_codes: Annotated[
        int, typer.Option(min=1, help="Columns with more codes get no code list.")
    ] = 200,
    records: Annotated[Records, ("weight", "key", "id", "encoding", "decimal")],
    json: Json = False,
) -> None:
    """Draft code lists from the records. Every code that is listed becomes public: review them.

    Example: discreet codes people.csv --id person_id --out codes.toml
    """
    from discreet.records.draft_codes import draft_code_lists  # start-up time

    if out.exists():
        raise ParameterError(f"{out} exists, and may have been reviewed; choose another name.")
    data = records.open(source)
    with progress_bar():
        draft = draft_code_lists(data, max_codes)
    with written_whole(out, OWNER_ONLY) as temporary:
        temporary.write_text(draft.text, encoding="utf-8")
    summary = {
        "file": str(out),
        "side": "confidential",
        "listed": draft.listed,
        "skipped": draft.skipped,
    }
    skipped = "".join(f"\n  no code list: {name} {why}" for name, why in draft.skipped.items())
    text = f"{out}: draft code lists of {', '.join(draft.listed)}; review every code before use"
    answer(summary, json, text + skipped)
