"""Program text that returns a table: Python, R and curl."""

from __future__ import annotations

import json

from discreet.serve.data.dataset import Dataset
from discreet.serve.query import Query
from discreet.serve.question import Question
from discreet.serve.web.links import Addresses


def snippets_of(base: str, dataset: Dataset, query: Query) -> list[tuple[str, str]]:
    """For each language its name and a text that returns the table of a query.

    Args:
      base: The address of the site, without a slash at its end.
      dataset: The data set.
      query: What is asked; it must be one that the data set answers.
    """
    address = Addresses(base, dataset.name).program(query, "csv")
    names = [asked.name for asked in Question.checked(dataset.source, query).shown]
    return [
        ("Python", _python(address, names)),
        ("R", _r(address, names)),
        ("curl", f"curl --fail --silent --compressed --output table.csv '{address}'\n"),
    ]


def _python(address: str, names: list[str]) -> str:
    codes = ", ".join(f"{json.dumps(name)}: str" for name in names)
    return (
        "import pandas as pd\n\n"
        "# Codes are texts, also those that look like numbers or like a missing value.\n"
        f"url = {json.dumps(address)}\n"
        f"codes = {{{codes}}}\n"
        'table = pd.read_csv(url, dtype=codes, keep_default_na=False, na_values=[""])\n'
    )


def _r(address: str, names: list[str]) -> str:
    codes = ", ".join(f'{json.dumps(name)} = "character"' for name in names)
    return (
        "# Codes are texts, also those that look like numbers or like a missing value.\n"
        f"url <- {json.dumps(address)}\n"
        f'table <- read.csv(url, colClasses = c({codes}), na.strings = "",\n'
        '                  check.names = FALSE, encoding = "UTF-8")\n'
    )
