"""Files of a table, each read back by its own reader as the figures that it shows."""

import csv
import io
import json
import re

import lxml.html
import openpyxl
import pyarrow.parquet

_BETWEEN = str.maketrans("", "", " \u00a0\u202f%")


def number(text, decimal="."):
    """A figure as pages and files write it; nothing where it is none."""
    plain = text.translate(_BETWEEN).replace("−", "-")
    plain = plain.replace(",", "") if decimal == "." else plain.replace(",", ".")
    try:
        return round(float(plain), 6)
    except ValueError:
        return None


def csv_values(text, column=None):
    """Values of a CSV; nothing where no value is published, zero for what cannot occur."""
    rows = csv.DictReader(io.StringIO(text))
    unit = column or _value_column(rows.fieldnames)
    return [None if row[unit] == "" else round(float(row[unit]), 6) for row in rows]


def _value_column(names):
    return [name for name in names if name != "status"][-1]


def _json(response):
    found = json.loads(response.content)
    place = found["columns"].index(_value_column(found["columns"]))
    return [None if row[place] is None else round(float(row[place]), 6) for row in found["cells"]]


def _json_stat(response):
    values, size = response.json()["value"], response.json()["size"]
    listed = (
        values if isinstance(values, list) else [values.get(str(k)) for k in range(_product(size))]
    )
    return [None if v is None else round(float(v), 6) for v in listed]


def _product(sizes):
    found = 1
    for size in sizes:
        found *= size
    return found


def _parquet(response):
    table = pyarrow.parquet.read_table(io.BytesIO(response.content))
    column = table.column(_value_column(table.column_names))
    return [None if v is None else round(float(v), 6) for v in column.to_pylist()]


def _px(response):
    text = response.content.decode("utf-8")
    data = text[text.rindex("DATA=") + len("DATA=") : text.rindex(";")]
    return [number(sign) for sign in re.findall(r'"[^"]*"|[^\s"]+', data)]


def _html(response):
    cells = lxml.html.fromstring(response.text).xpath("//table//td")
    return [number(cell.text_content()) for cell in cells]


def _workbook(response):
    sheet = openpyxl.load_workbook(io.BytesIO(response.content), read_only=True).worksheets[0]
    cells = [cell for row in sheet.iter_rows(values_only=True) for cell in row]
    return [round(float(cell), 6) for cell in cells if isinstance(cell, int | float)]


WHOLE = {
    "csv": lambda response: csv_values(response.text),
    "jsonstat.json": _json_stat,
    "json": _json,
    "parquet": _parquet,
    "sdmx.csv": lambda response: csv_values(response.text, "OBS_VALUE"),
}
"""Formats that have a place for every value, and for none."""
SHOWN = {"px": _px, "html": _html, "xlsx": _workbook}
"""Formats with a sign of their own in place of what is not shown, and of what cannot occur."""
