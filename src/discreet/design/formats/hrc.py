"""τ-ARGUS hierarchies: `.hrc` files, and codes whose digit groups are the levels.

See the τ-ARGUS manual (Hundepool et al.): a hierarchical variable is described either by a file
of codes with a leading character per level, or by the number of digits of each level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path

from discreet.design.codes import canonical
from discreet.design.formats.tree import Tree
from discreet.errors import CodeError, DataError, ParameterError


def read_hrc(source: str | Path, root: str, leading: str) -> Tree:
    """Codes line by line; a code's depth below the root is one more than its leading signs.

    Args:
        source: A path, or the text itself when it is a string with a line break.
        root: Code of the total, which the file leaves out.
        leading: The sign that is repeated once for every level.
    """
    if not leading:
        message = "leading must be a sign such as '@', got an empty text"
        raise ParameterError(message)
    is_text = isinstance(source, str) and "\n" in source
    text = str(source) if is_text else read_text(Path(source))
    return Tree(root, _pairs(text, root, leading))


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 or, as older Windows programs write it, in Windows-1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"file {str(path)!r} cannot be read: {error.strerror or error}"
        raise DataError(message) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError as error:
        message = f"file {str(path)!r} is text in neither UTF-8 nor Windows-1252; save it as UTF-8"
        raise DataError(message) from error


def _pairs(text: str, root: str, leading: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    path = [root]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        depth, code = _depth_and_code(line.strip(), leading)
        if depth > len(path):
            message = (
                f"line {number}: {code!r} is {depth} levels deep under a code of depth "
                f"{len(path) - 1}; a code goes at most one level below the line before"
            )
            raise CodeError(message)
        if not code:
            message = f"line {number}: {leading!r} stands without a code"
            raise CodeError(message)
        del path[depth:]
        pairs.append((code, path[-1]))
        path.append(code)
    return pairs


def _depth_and_code(line: str, leading: str) -> tuple[int, str]:
    depth, start = 1, 0
    while line.startswith(leading, start):
        depth, start = depth + 1, start + len(leading)
    return depth, line[start:].strip()


def write_hrc(parents: Mapping[str, str], depths: Mapping[str, int], leading: str) -> str:
    """The text of an `.hrc` file.

    Raises:
        CodeError: A code cannot be written so that it is read back as it is.
    """
    for code in parents:
        if code != code.strip() or len(code.splitlines()) != 1 or code.startswith(leading):
            message = (
                f"code {code!r} cannot stand in an .hrc file: it begins with {leading!r}, begins "
                "or ends with a blank, or breaks the line; recode it or choose another leading="
            )
            raise CodeError(message)
    return "".join(f"{leading * (depths[code] - 1)}{code}\n" for code in parents)


def read_digits(codes: Iterable[object], digits: str | Iterable[int], root: str) -> Tree:
    """Codes whose leading digits are their groups: with ``"2 1 2"``, 01101 < 011 < 01 < root.

    Args:
        codes: Codes of full length, or shorter ones that end with a level.
        digits: Number of characters of each level, coarsest first.
        root: Code of the total.
    """
    ends = _level_ends(digits)
    parents: dict[str, str] = {}
    for code in map(canonical, codes):
        if len(code) not in ends:
            message = (
                f"code {code!r} has {len(code)} characters; the levels end at "
                f"{', '.join(map(str, ends))}. Were leading zeros lost?"
            )
            raise CodeError(message)
        prefixes = [root, *(code[:end] for end in ends if end <= len(code))]
        parents.update(zip(prefixes[1:], prefixes, strict=False))
    return Tree(root, list(parents.items()))


def _level_ends(digits: str | Iterable[int]) -> list[int]:
    given = digits.split() if isinstance(digits, str) else list(digits)
    try:
        widths = [int(width) for width in given]
    except ValueError:
        widths = [-1]
    if not any(widths) or min(widths) < 0:
        message = f"digits must be numbers of characters such as '2 1 2', got {digits!r}"
        raise ParameterError(message)
    return list(accumulate(width for width in widths if width))
