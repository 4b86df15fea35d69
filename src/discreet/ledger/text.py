"""A ledger for people: one line for each data set, one for each entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.accounting import Cost


def summary_line(found: Mapping[str, Any]) -> str:
    """What was spent of a data set's budget."""
    parts = {"ε": found["epsilon"], "δ": found["delta"], "ρ": found["rho"]}
    spent = ", ".join(f"{sign} = {amount:g}" for sign, amount in parts.items() if amount)
    line = f"{found['name']}: {found['private_releases']} private releases"
    line += f" cost {spent} together" if spent else ""
    return f"{line}; {_budget(found)}."


def row_line(row: Mapping[str, Any]) -> str:
    """One entry."""
    shown = f"{row['time']}  {row['name']}, edition {row['edition']}: {row['entry']}"
    return f"{shown}{_details(row)}"


def _budget(found: Mapping[str, Any]) -> str:
    if found["budget"] is None:
        return "no budget"
    budget, together = Cost(**found["budget"]), found["epsilon_at_delta"]
    proved = "no finite ε" if together is None else f"ε = {together:g}"
    return f"{proved} of a budget of {budget}"


def _details(row: Mapping[str, Any]) -> str:
    step = ", ".join(f"{name} {value}" for name, value in row.get("step", {}).items())
    match row["entry"]:
        case "private release":
            return f", {Cost(row['epsilon'], row['delta'], row['rho'])} ({step})"
        case "table-wise release":
            return f" {row['number']} ({step})"
        case "edition":
            return f", keys {row['keys']}" if row["keys"] else ""
    return f" of {row['variables']}"
