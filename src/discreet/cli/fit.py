"""`discreet fit`: inner cells from a release, so that everything adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, Out, Parameters, answer, plain_values, progress_bar
from discreet.cli.common import write_release as write


def fit(
    release: Annotated[Path, typer.Argument(help="A release made by `discreet protect`.")],
    fitter: Annotated[str, typer.Option(help="The fitter's name.")] = "auto",
    out: Out = None,
    set: Parameters = None,
    json: Json = False,
) -> None:
    """Fit inner cells to a release; the result is additive and public.

    Example: discreet fit release.parquet --fitter non-negative --out fitted.parquet
    """
    from discreet import registry
    from discreet.design.storage import read_release

    public = read_release(release)
    chosen = registry.build("fitter", fitter, plain_values(set))
    with progress_bar():
        fitted = public.fit(chosen)
    fitted.fit_result.require()
    if out is not None:
        write(fitted, out)
    result = fitted.fit_result
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        "fitter": fitter,
        "status": result.status.name,
        "certificate": result.certificate.worst,
        "seconds": result.seconds,
    }
    text = f"{result.status.value} Certificate {result.certificate.worst:.1e}."
    answer(summary, json, f"{fitted}\n{text}" if out is None else f"{out}: {text}")
