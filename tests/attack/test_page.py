"""The page of what each method withstands is the one that its stored figures give."""

import importlib.util
import json
from pathlib import Path

from discreet import registry

ROOT = Path(__file__).parents[2]


def test_the_page_and_its_pictures_are_those_of_the_stored_figures():
    spec = importlib.util.spec_from_file_location("attack_page", ROOT / "tools" / "attack_page.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    data = json.loads(tool.DATA.read_text(encoding="utf-8"))
    for file, text in tool.texts(data).items():
        assert file.read_text(encoding="utf-8") == text, file.name
    for name in tool.TABLES:
        assert {row["method"] for row in data[name]["lifts"]} == set(tool.METHODS)
    kinds = {getattr(method, "name", "") for method in tool.METHODS.values()}
    assert set(registry.METHODS) == kinds - {""} | {"magnitude-key"}
    data["people"][0]["fixed"] += 1
    assert tool.PAGE.read_text(encoding="utf-8") != tool.page(data)  # the comparison can fail


def test_the_page_on_limits_repeats_what_the_surest_claims_reached():
    data = json.loads((ROOT / "docs" / "withstands.json").read_text(encoding="utf-8"))
    rows = {(row["method"], row["attack"]): row for row in data["groups"]}
    page = " ".join((ROOT / "docs" / "limits.md").read_text(encoding="utf-8").split())
    keys = rows["cell keys, D = 5, V = 3", "nested-crossings"]
    every, sure = ([f"{100 * keys[w][k]:.0f}" for w in ("all", "surest")]
                   for k in ("success", "baseline"))  # fmt: skip
    assert f"in {every[0]} % of the claims, the surest tenth in {every[1]} %" in page
    assert f"it was {sure[0]} and {sure[1]} %" in page
    small = rows["cell keys, fitted", "group-attributes"]["surest"]
    assert f"{100 * small['success']:.0f} beside {100 * small['baseline']:.0f} %" in page
    overlaps = {row["method"]: row for row in data["overlaps"]}
    people = overlaps["cell keys, D = 5, V = 3"]["people"]
    right = f"rightly in {100 * people['success']:.0f} % of the claims, without their records in"
    assert f"{right} {100 * people['baseline']:.0f} %" in page
    assert overlaps["cell keys, D = 5, V = 3"]["areas"]["low"] < 0 < people["low"]
    private = ("Laplace", "discrete Laplace", "discrete Gaussian")
    told = [rows[key][w]["low"] > 0 for key in rows if key[0].startswith(private)
            for w in ("all", "surest")]  # fmt: skip
    told += [overlaps[m][w]["low"] > 0 for m in overlaps if m.startswith(private)
             for w in ("areas", "people")]  # fmt: skip
    assert told
    assert not any(told)
