"""What discreet is made of: a bill of materials in CycloneDX's JSON, and a list of licences.

Both are read from the metadata of what is installed in this environment, core and extras.
"""

from __future__ import annotations

import datetime
import json
import re
import tomllib
import uuid
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from weigh import EXTRAS, closure

_CLASSIFIER = "License :: OSI Approved :: "
_SPDX = re.compile(r"[A-Za-z0-9.+\-() ]{2,80}")
_IDS = {
    "MIT License": "MIT",
    "MIT": "MIT",
    "The MIT License (MIT)": "MIT",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "BSD License": "BSD-3-Clause",
    "BSD-3-Clause": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_WORDS = {
    "Redistribution and use in source and binary forms": "BSD-3-Clause",
    "Permission is hereby granted, free of charge": "MIT",
}
_LONGEST_NAME = 80
_NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")  # of addresses


def write(version: str, seconds: str, out: Path) -> list[Path]:
    """The bill and the licences of a version, dated at its commit."""
    needed = dict.fromkeys(_plain_names(""), "required")
    for extra in EXTRAS:
        needed |= {name: "optional" for name in _plain_names(extra) if name not in needed}
    found = {name: Distribution.from_name(name) for name in sorted(needed)}
    bill = out / f"discreet-{version}.cdx.json"
    content = json.dumps(_bill(version, seconds, found, needed), indent=1, ensure_ascii=False)
    bill.write_text(content + "\n", encoding="utf-8", newline="\n")
    licences = out / "LICENCES.md"
    rows = [f"| {n} | {d.version} | {licence_of(d)} | {needed[n]} |\n" for n, d in found.items()]
    head = (
        f"# Licences of discreet {version} and of what it needs\n\ndiscreet itself: Apache-2.0.\n\n"
    )
    columns = "| package | version | licence | |\n|---|---|---|---|\n"
    licences.write_text(head + columns + "".join(rows), encoding="utf-8", newline="\n")
    return [bill, licences]


def licence_of(package: Distribution) -> str:
    """The licence of a package, as an SPDX expression where it says one."""
    said = package.metadata
    if said.get("License-Expression"):
        return str(said["License-Expression"])
    classified = [c.removeprefix(_CLASSIFIER) for c in said.get_all("Classifier") or []
                  if c.startswith(_CLASSIFIER)]  # fmt: skip
    whole = said.get("License") or ""
    for given in (*classified, whole.strip().partition("\n")[0]):
        if given in _IDS:
            return _IDS[given]
    for words, name in _WORDS.items():  # some give the whole text
        if words in " ".join(whole.split()):
            return name
    if whole and len(whole) < _LONGEST_NAME:
        return whole.strip()
    return "not stated"


def _plain_names(extra: str) -> set[str]:
    """Names of what discreet needs with an extra and what is installed here; not itself."""
    names = {name.split("[")[0] for name in closure("discreet", extra)} - {"discreet"}
    return {name for name in names if _is_installed(name)}


def _is_installed(name: str) -> bool:
    try:
        Distribution.from_name(name)
    except PackageNotFoundError:
        return False
    return True


def _bill(
    version: str, seconds: str, found: dict[str, Distribution], needed: dict[str, str]
) -> dict[str, Any]:
    """The bill; its number follows from its content, so that it is the same each time."""
    own = {"type": "library", "bom-ref": f"pkg:pypi/discreet@{version}", "name": "discreet",
           "version": version, "purl": f"pkg:pypi/discreet@{version}",
           "licenses": [{"license": {"id": "Apache-2.0"}}]}  # fmt: skip
    parts = [_component(name, package, needed[name]) for name, package in found.items()]
    tied = [{"ref": own["bom-ref"], "dependsOn": sorted(_ref(n, found[n]) for n in _direct(found))}]
    tied += [
        {
            "ref": _ref(name, package),
            "dependsOn": sorted(_ref(n, found[n]) for n in _own(package, found)),
        }
        for name, package in found.items()
    ]
    said = json.dumps([own, parts], sort_keys=True)
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, said)}",
        "version": 1,
        "metadata": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": own},
        "components": parts,
        "dependencies": tied,
    }


def _component(name: str, package: Distribution, scope: str) -> dict[str, Any]:
    licence = licence_of(package)
    is_id = licence in _IDS.values()
    is_expression = package.metadata.get("License-Expression") == licence and _SPDX.fullmatch(
        licence
    )
    stated: dict[str, Any] = {"license": {"id": licence} if is_id else {"name": licence}}
    if is_expression and not is_id:
        stated = {"expression": licence}
    return {"type": "library", "bom-ref": _ref(name, package), "name": name,
            "version": package.version, "scope": scope, "purl": _ref(name, package),
            "licenses": [stated]}  # fmt: skip


def _ref(name: str, package: Distribution) -> str:
    return f"pkg:pypi/{name}@{package.version}"


def _direct(found: dict[str, Distribution]) -> set[str]:
    """What discreet itself asks for, in its core or an extra."""
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [n for e in EXTRAS if e for n in project["optional-dependencies"].get(e, [])]
    return _names([*project["dependencies"], *extras], found)


def _own(package: Distribution, found: dict[str, Distribution]) -> set[str]:
    return _names([text for text in package.requires or [] if "extra ==" not in text], found)


def _names(texts: list[str], found: dict[str, Distribution]) -> set[str]:
    names = (re.sub(r"[-_.]+", "-", Requirement(text).name).lower() for text in texts)
    return {name for name in names if name in found}
