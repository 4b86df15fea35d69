"""The facts of PxWebApi 2 that tests are generated from: python tools/pxweb_facts.py FILE.

FILE is the OpenAPI description of the protocol, `PxAPI-2.yml` of PxTools/PxApiSpecs. Kept are
paths, parameters, status codes and the shapes of bodies; its sentences and examples are not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parents[1] / "tests" / "serve" / "api" / "pxweb" / "facts.json"
_WORDS = ("description", "example", "examples", "title", "summary", "default")


def facts(document: dict[str, Any]) -> dict[str, Any]:
    """Operations and shapes, and what contradicts itself in the description."""
    left_out: list[str] = []
    shapes = {
        name: _shape(shape, name, left_out)
        for name, shape in document["components"]["schemas"].items()
    }
    operations = [
        _operation(path, method, said, document)
        for path, methods in document["paths"].items()
        for method, said in methods.items()
    ]
    return {"operations": operations, "shapes": shapes, "left_out": left_out}


def _operation(
    path: str, method: str, said: dict[str, Any], document: dict[str, Any]
) -> dict[str, Any]:
    parameters = [_resolved(one, document) for one in said.get("parameters", [])]
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {})
    return {
        "id": said["operationId"],
        "method": method.upper(),
        "path": path,
        "parameters": [
            {
                "name": one["name"],
                "in": one["in"],
                "shape": _shape(_resolved(one["schema"], document), one["name"], []),
            }
            for one in parameters
        ],
        "body": _name(body.get("schema", {})),
        "answers": {
            status: _answer(_resolved(answer, document))
            for status, answer in said["responses"].items()
        },
    }


def _answer(answer: dict[str, Any]) -> dict[str, str]:
    """The shape of an answer by its media type; empty where it is a text."""
    return {media: _name(one["schema"]) for media, one in answer["content"].items()}


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _resolved(found: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in found:
        return found
    at: Any = document
    for part in found["$ref"].removeprefix("#/").split("/"):
        at = at[part]
    return dict(at)


def _shape(said: Any, where: str, left_out: list[str]) -> Any:
    """A shape as JSON Schema, without its sentences."""
    if isinstance(said, list):
        return [_shape(one, where, left_out) for one in said]
    if not isinstance(said, dict):
        return said
    if "$ref" in said:  # what stands beside a reference does not count in OpenAPI 3.0
        return {"$ref": f"#/shapes/{_name(said)}"}
    found = {
        name: {k: _shape(v, f"{where}.{k}", left_out) for k, v in value.items()}
        if name == "properties"
        else _shape(value, where, left_out)
        for name, value in said.items()
        if name not in (*_WORDS, "nullable")
    }
    if found.get("exclusiveMaximum") is True:
        found["exclusiveMaximum"] = found.pop("maximum")
    if found.get("format") == "date-time" and "pattern" in found:
        left_out.append(f"{where}: a pattern of days for a time")
        del found["pattern"]
    properties = found.get("properties", {})
    for name in list(found.get("required", ())):
        if properties and name not in properties:
            left_out.append(f"{where}: {name} is required, but described nowhere")
            found["required"].remove(name)
    if said.get("nullable") and "type" in found:
        found["type"] = [found["type"], "null"]
    return found


def _lines(found: dict[str, Any]) -> str:
    """JSON with a line for each operation and each shape."""
    operations = ",\n".join(f"  {json.dumps(one)}" for one in found["operations"])
    shapes = ",\n".join(f'  "{name}": {json.dumps(one)}' for name, one in found["shapes"].items())
    left_out = json.dumps(found["left_out"])
    return (
        f'{{"operations": [\n{operations}\n ],\n "shapes": {{\n{shapes}\n }},\n'
        f' "left_out": {left_out}}}\n'
    )


if __name__ == "__main__":
    description = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    TARGET.write_text(_lines(facts(description)), encoding="utf-8")
