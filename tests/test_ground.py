"""What everything stands on: random numbers, files that are written whole, and signatures."""

import inspect
import stat
from dataclasses import dataclass

import pytest

from discreet.errors import DataError, ParameterError, UnknownNameError, check_known
from discreet.files import EVERYONE, OWNER_ONLY, read_toml, write_text, written_whole
from discreet.randomness import stream, system_integers
from discreet.signatures import takes_options


def drawn(root, step):
    return stream(root, step).integers(2**32, size=4).tolist()


def test_a_stream_depends_on_its_seed_and_the_name_of_its_step():
    assert drawn(1, "protect") == drawn(1, "protect")
    assert drawn(1, "protect") != drawn(2, "protect")
    assert drawn(1, "protect") != drawn(1, "round")


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ParameterError, match="seed must be a whole number"):
        stream(seed, "protect")


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_integers_of_the_system_fill_their_range(bits):
    found = system_integers(4_000, bits)
    assert found.min() >= 0
    assert 0.9 * 2**bits < found.max() < 2**bits


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [OWNER_ONLY, EVERYONE])
def test_a_file_has_its_permissions_before_the_first_byte(tmp_path, mode):
    path = tmp_path / "out"
    with written_whole(path, mode) as temporary:
        assert permissions(temporary) == mode
        temporary.write_text("whole")
    assert (path.read_text(), permissions(path)) == ("whole", mode)


def write_half(path):
    with written_whole(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert path.read_text() == "old"


@dataclass(frozen=True)
class Recipe:
    """What a dish is told beside its source.

    Args:
      salt: How much.
      spoons: How many.
    """

    salt: float = 1.0
    spoons: int = 2


@takes_options(Recipe)
def cook(source: str, options: Recipe) -> tuple[str, Recipe]:
    """A dish.

    Args:
      source: What it is made of.
    """
    return source, options


def test_options_of_a_class_are_arguments_of_the_function():
    assert cook("peas", 0.5, spoons=3) == ("peas", Recipe(0.5, 3))
    assert cook(source="peas") == ("peas", Recipe())
    assert list(inspect.signature(cook).parameters) == ["source", "salt", "spoons"]
    described = "  source: What it is made of.\n  salt: How much.\n  spoons: How many."
    assert inspect.getdoc(cook) == f"A dish.\n\nArgs:\n{described}"
    with pytest.raises(TypeError, match=r"cook\(\) got an unexpected keyword argument 'pepper'"):
        cook("peas", pepper=1)
    with pytest.raises(TypeError, match=r"cook\(\) missing a required argument: 'source'"):
        cook()


@pytest.mark.parametrize(
    ("content", "wrong"),
    [(b"a = ", "not valid TOML"), (b"a = '\xe9'", "not TOML in UTF-8"), (None, "there is no file")],
)
def test_a_file_that_is_no_toml_is_told_in_one_line(tmp_path, content, wrong):
    path = tmp_path / "site.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=wrong) as told:
        read_toml(path)
    assert str(path) in str(told.value)


def test_a_toml_file_may_begin_with_the_mark_of_windows(tmp_path):
    path = write_text(tmp_path / "site.toml", "\ufefftitle = 'Größe'\n")
    assert read_toml(path) == {"title": "Größe"}


def test_the_first_unknown_name_is_told():
    check_known("column", ["age"], ("age", "sex"))
    with pytest.raises(UnknownNameError, match="unknown column 'agee'.*'age'"):
        check_known("column", ["age", "agee"], ("age", "sex"))
