"""What `make release` promises: one version everywhere, the same bytes twice, and a whole bill."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import bill_of_materials  # noqa: E402  (tools are no package)
import release  # noqa: E402

PLACES = ["CITATION.cff", "studies/pyproject.toml", "CHANGELOG.md", "src/discreet/__init__.py"]
is_repository = subprocess.run(["git", "-C", str(ROOT), "log", "-1"], capture_output=True)
needs_git = pytest.mark.skipif(is_repository.returncode != 0, reason="builds what is committed")


@pytest.fixture
def copy(tmp_path):
    for place in PLACES:
        target = tmp_path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, target)
    return tmp_path


def write(root, place, old, new):
    path = root / place
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_version_is_the_same_wherever_it_stands():
    assert release.version_of(ROOT) == discreet.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]


@pytest.mark.parametrize(
    ("place", "before", "said"),
    [
        ("CITATION.cff", "\nversion: ", "CITATION.cff says 9"),
        ("studies/pyproject.toml", '\nversion = "', "version says 9"),
        ("studies/pyproject.toml", "]==", "dependencies says 9"),
        ("CHANGELOG.md", "\n## ", None),
        ("src/discreet/__init__.py", '__version__ = "', "says 9"),
    ],
)
def test_a_version_that_differs_is_refused_and_its_place_named(copy, place, before, said):
    version = discreet.__version__
    write(copy, place, before + version if said else f"\n## {version}", f"{before}9{version}")
    with pytest.raises(release.ReleaseError, match=said or "the newest version says 9"):
        release.version_of(copy)


def test_changes_without_a_version_are_no_final_release(copy):
    text = "# Changelog\n\n## Unreleased\n\n### Added\n- One.\n- Two.\n\n## {}\n\n- Old.\n"
    (copy / "CHANGELOG.md").write_text(text.format(discreet.__version__), encoding="utf-8")
    assert release.count_unreleased(copy) == 2
    with pytest.raises(release.ReleaseError, match="2 changes stand under Unreleased"):
        release.release(copy, copy / "dist", is_final=True)
    assert not (copy / "dist").exists()


@needs_git
def test_two_builds_have_the_same_bytes(tmp_path):
    made = release.build_twice(ROOT, tmp_path / "dist")
    assert [path.name for path in made] == [
        f"discreet-{discreet.__version__}-py3-none-any.whl",
        f"discreet-{discreet.__version__}.tar.gz",
    ]
    names = zipfile.ZipFile(made[0]).namelist()
    assert {"discreet/display/templates/display.html", "discreet/testing/golden.json"} <= {*names}
    assert not [name for name in names if name.startswith(("tests/", "tools/"))]
    with zipfile.ZipFile(made[0]) as files:
        files.extractall(tmp_path / "site")
    compiled = tmp_path / "site/discreet/design/__pycache__/incidence.sum_up-292.py311.1.nbc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"what Numba keeps after first use is no file of the release")
    program = (
        "from discreet.testing.install import _versions; print(_versions()['installed files'])"
    )
    told = subprocess.run(
        [sys.executable, "-B", "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert told.stdout.strip() == f"SHA-256 {release.installed_digest(made[0])}"


def test_builds_that_differ_are_refused(tmp_path, monkeypatch):
    """The planted fault: something of the clock or the folder gets into the files."""
    number = itertools.count()

    def build(root, folder):
        folder.mkdir()
        made = folder / "discreet-1.whl"
        made.write_text(f"built {next(number)}")
        return [made]

    monkeypatch.setattr(release, "build", build)
    with pytest.raises(release.ReleaseError, match=r"differ: discreet-1\.whl"):
        release.build_twice(ROOT, tmp_path / "dist")
    assert not (tmp_path / "dist").exists()


def test_the_bill_names_everything_once_with_its_licence(tmp_path):
    bill, licences = bill_of_materials.write("1.0", "1700000000", tmp_path)
    first = bill.read_bytes()
    found = json.loads(first)
    parts = {part["bom-ref"]: part for part in found["components"]}
    assert len(parts) == len(found["components"])
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    required = {part["name"] for part in parts.values() if part["scope"] == "required"}
    assert required >= {"numpy", "duckdb", "arro3-core", "markupsafe", "llvmlite"}
    assert {part["name"] for part in parts.values()} - required >= {"opendp", "fastapi", "pandas"}
    assert not required & {"opendp", "fastapi", "pandas"}
    tied = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}
    assert {ref for refs in tied.values() for ref in refs} <= {*parts}
    assert {*tied} == {*parts, found["metadata"]["component"]["bom-ref"]}
    for part in parts.values():
        (licence,) = part["licenses"]
        said = (
            licence.get("expression") or licence["license"].get("id") or licence["license"]["name"]
        )
        assert said != "not stated", part["name"]
        assert f"| {part['name']} | {part['version']} | {said} |" in licences.read_text()
    bill_of_materials.write("1.0", "1700000000", tmp_path)
    assert bill.read_bytes() == first
