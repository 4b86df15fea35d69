"""Functions with many options: each option is a field of a class, and an argument by its name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

Given = ParamSpec("Given")
Options = TypeVar("Options")
Result = TypeVar("Result")
Source = TypeVar("Source")


def takes_options(
    options: Callable[Given, Options],
) -> Callable[[Callable[[Source, Options], Result]], Callable[Concatenate[Source, Given], Result]]:
    """A function `f(source, options)` as `f(source, …)`, with the arguments of the options' class.

    Type checkers, `inspect.signature` and `help` show each argument. The docstring is that of the
    function, which ends in `Args:`, and then what the class says of its arguments.
    """

    def decorate(
        run: Callable[[Source, Options], Result],
    ) -> Callable[Concatenate[Source, Given], Result]:
        own, told = inspect.signature(run), inspect.signature(options)
        source, _ = own.parameters.values()
        arguments = [source, *told.parameters.values()]
        shown = own.replace(parameters=arguments)

        @functools.wraps(run)
        def call(*positional: Any, **named: Any) -> Result:
            try:
                given = shown.bind(*positional, **named)
            except TypeError as error:
                raise TypeError(f"{run.__name__}() {error}") from None
            first = given.arguments.pop(source.name)
            return run(first, options(**given.kwargs))  # type: ignore[call-arg]

        call.__signature__ = shown  # type: ignore[attr-defined]
        described = (inspect.getdoc(options) or "").partition("Args:\n")[2]
        call.__doc__ = f"{inspect.getdoc(run)}\n{described}"
        del call.__wrapped__  # its signature is not the one that is shown
        return call

    return decorate
