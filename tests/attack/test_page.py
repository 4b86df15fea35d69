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
