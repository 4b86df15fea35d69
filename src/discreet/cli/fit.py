"""`discreet fit`: inner cells from a release, so that everything adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Json,
    Out,
    Parameters,
    answer,
    check_out,
    choice,
    plain_values,
    progress_bar,
    put,
)
from discreet.errors import ParameterError


def fit(
    release: Annotated[Path, typer.Argument(help="A release made by `discreet protect`.")],
    fitter: Annotated[str, typer.Option(help="The fitter's name.")] = "auto",
    out: Out = None,
    set: Parameters = None,
    zeros: Annotated[
        str,
        typer.Option(
            help="Which inner cells may be filled: all, or margins (none in a published zero)."
        ),
    ] = "all",
    round: Annotated[
        str | None,
        typer.Option(help="Make whole numbers: margins, unbiased, total or cube. Needs --seed."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the rounding.")] = None,
    json: Json = False,
) -> None:
    """Fit inner cells to a release; the result is additive and public.

    Examples: discreet fit release.parquet --fitter non-negative --out fitted.parquet
    and in whole numbers, discreet fit release.parquet --fitter whole-number -s seed=1
    """
    from discreet import registry  # start-up time
    from discreet.facade.table import read_release  # start-up time

    check_out(out)
    whole = _rounding(round, seed)
    public = read_release(release)
    chosen = registry.build("fitter", fitter, plain_values(set))
    with progress_bar():
        fitted = public.fit(chosen, zeros=zeros)
    result = fitted.fit_result.require()
    if whole is not None:
        fitted = fitted.round(whole[0], seed=whole[1])
    if out is not None:
        put(fitted, out)
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        "fitter": fitter,
        "status": result.status.name,
        "certificate": result.certificate.worst,
        "seconds": result.seconds,
    }
    text = f"{result.status.value} Certificate {result.certificate.worst:.1e}."
    if "bound" in result.notes:
        summary |= {name: result.notes[name] for name in ("loss", "bound")}
        text += " Loss {loss:.6g}; no table has less than {bound:.6g}.".format(**summary)
    answer(summary, json, f"{fitted}\n{text}" if out is None else f"{out}: {text}")


def _rounding(method: str | None, seed: int | None) -> tuple[str, int] | None:
    """How to round and with which seed; what is missing is said before the fit begins."""
    from discreet.release.fitting import Rounding  # start-up time

    if method is None:
        return None
    if seed is None:
        raise ParameterError("rounding draws at random: give it a --seed.")
    return choice(Rounding, method, "--round"), seed
