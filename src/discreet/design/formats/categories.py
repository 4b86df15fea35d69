"""Categories that a frame declares beside its values, whether or not they occur."""

from __future__ import annotations

from typing import Any

from discreet.design.codes import canonical
from discreet.frames import open_frame


def declared_categories(frame: object) -> dict[str, list[str]]:
    """The codes of pandas categoricals and polars enums, by column and in their order.

    Arrow dictionaries and polars categoricals list what was found while they were filled, so they
    declare nothing; neither do categories that include a blank one, which cannot be a code.
    """
    import narwhals as nw

    data = open_frame(frame)
    found = {
        str(name): list(dict.fromkeys(map(canonical, _categories(data, name, dtype))))
        for name, dtype in data.collect_schema().items()
        if isinstance(dtype, (nw.Enum, nw.Categorical))
    }
    return {name: codes for name, codes in found.items() if codes and all(map(str.strip, codes))}


def _categories(data: Any, name: str, dtype: Any) -> list[Any]:
    """The declared categories of a column; none when they were found."""
    import narwhals as nw

    if data.implementation.is_pandas_like():
        return list(data.get_column(name).to_native().cat.categories)
    return list(dtype.categories) if isinstance(dtype, nw.Enum) else []
