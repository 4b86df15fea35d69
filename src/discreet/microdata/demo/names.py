"""Invented place names."""

from __future__ import annotations

STEMS = (
    "Alder", "Ambre", "Arn", "Åsk", "Bel", "Birken", "Bram", "Brück", "Cald", "Cor",
    "Dal", "Dorn", "Elm", "Esk", "Fal", "Fenn", "Gald", "Grön", "Hart", "Hol",
    "Ilm", "Jor", "Kal", "Kest", "Lin", "Lør", "Mar", "Mühl", "Nor", "Od",
    "Orm", "Pell", "Quer", "Ros", "Sal", "Stern", "Tarn", "Ul", "Ver", "Wen",
)  # fmt: skip
ENDINGS = (
    "bach", "berg", "borough", "by", "dale", "fjord", "ford", "haven", "holm", "lund",
    "mere", "stadt", "vik", "wick",
)  # fmt: skip
# Shares no factor with the number of pairs, so neighbours get unlike names and none repeats.
_STRIDE = 229


def place_name(number: int) -> str:
    """The name of place `number`; distinct for numbers below 560."""
    stem, ending = divmod(number * _STRIDE % (len(STEMS) * len(ENDINGS)), len(ENDINGS))
    return STEMS[stem] + ENDINGS[ending]
