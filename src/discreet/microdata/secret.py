"""The secret behind record keys, and the keyed hashes made with it."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Cell
from discreet.design.codes import MISSING, canonical
from discreet.design.keys import KeyConvention, convention
from discreet.errors import KeysError
from discreet.files import OWNER_ONLY

FEWEST_BYTES = 32
_DIGEST_BYTES = 8
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Secret:
    r"""A secret that gives ids and empty cells their keys.

    A key is :math:`\mathrm{BLAKE2b}_s(\text{domain} \,\|\, \text{text}) \bmod m`, a keyed hash of
    64 bits brought to the range of the key convention; ids and cells are different domains.

    Promise: the same text has the same key wherever and whenever it is made; without the secret
    keys cannot be told from random ones. The secret is never shown, pickled or exported, and is
    not kept: the object holds states of the hash that have taken it in.
    Cost: about half a microsecond for each id.

    Make one with `from_file`, `from_env` or `generate`.
    """

    __slots__ = ("_ids", "_zeros")

    def __init__(self, material: bytes, origin: str = "a secret") -> None:
        material = material.strip()
        if len(material) < FEWEST_BYTES:
            raise KeysError(
                f"{origin} holds {len(material)} bytes; a secret needs at least {FEWEST_BYTES}. "
                "Make one with `Secret.from_file(path, create=True)`."
            )
        stretched = hashlib.blake2b(material).digest()
        self._ids = _keyed_state(stretched, b"discreet record key\0")
        self._zeros = _keyed_state(stretched, b"discreet zero cell key\0")

    @classmethod
    def from_file(cls, path: str | Path, *, create: bool = False) -> Secret:
        """The secret in a file that only its owner can read.

        Args:
          path: The file; at least 32 bytes, of which white space at either end does not count.
          create: Make the file, from the operating system's source, when it is not there.
        """
        path = Path(path)
        if create and not path.exists():
            _create(path)
        return cls(_read_private(path), f"file {path}")

    @classmethod
    def from_env(cls, name: str) -> Secret:
        """The secret in an environment variable; the same text in a file gives the same keys."""
        text = os.environ.get(name)
        if text is None:
            raise KeysError(f"environment variable {name!r} is not set; it should hold the secret.")
        return cls(os.fsencode(text), f"environment variable {name!r}")

    @classmethod
    def generate(cls) -> Secret:
        """A new secret that ends with the program: for trials, since its keys cannot come back."""
        return cls(secrets.token_hex(FEWEST_BYTES).encode())

    def keys_for_ids(
        self, ids: Iterable[object], rule: str | KeyConvention = "discreet"
    ) -> NDArray[np.int64]:
        """The record key of each id: whole numbers below the convention's modulus.

        Args:
          ids: Any column or sequence of whole numbers or texts; ``7`` and ``"7"`` are one id.
          rule: The key convention.
        """
        return _hashed(self._ids, _id_texts(ids), convention(rule))

    def zero_key(
        self, cells: Sequence[Cell], rule: str | KeyConvention = "discreet"
    ) -> NDArray[np.int64]:
        """The key of each cell, from its definition alone: its codes, totals left out.

        Used for cells without records, whose sum of record keys says nothing.
        """
        return _hashed(self._zeros, map(definition, cells), convention(rule))

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise KeysError("a secret cannot be pickled or copied; read it again where it is needed.")


def definition(cell: Cell) -> bytes:
    """A cell's codes as bytes that no other cell has: sorted pairs, each text after its length."""
    pairs = sorted(cell.items())
    texts = (text.encode("utf-8", "surrogatepass") for pair in pairs for text in pair)
    return b"".join(len(text).to_bytes(8, "big") + text for text in texts)


def _keyed_state(key: bytes, domain: bytes) -> Any:
    """A hash that has taken in its key and domain, to be copied for each text.

    The domain after the key fills the hash's first block, so that a copy has one block to do.
    """
    state = hashlib.blake2b(key=key, digest_size=_DIGEST_BYTES)
    state.update(domain)
    return state


def _hashed(state: Any, texts: Iterable[bytes], rule: KeyConvention) -> NDArray[np.int64]:
    fresh = state.copy

    def digest(text: bytes) -> bytes:
        one = fresh()
        one.update(text)
        done: bytes = one.digest()
        return done

    words = np.frombuffer(b"".join(map(digest, texts)), dtype=">u8")
    return (words % np.uint64(rule.modulus)).astype(np.int64)


def _id_texts(ids: Any) -> Iterable[bytes]:
    """Canonical texts as bytes; whole numbers and texts in Arrow or NumPy are converted at once."""
    import pyarrow as pa

    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        ids = pa.array(ids)
    in_arrow = isinstance(ids, (pa.Array, pa.ChunkedArray))
    if in_arrow and _is_plain(ids.type) and not ids.null_count:
        texts: list[bytes] = ids.cast(pa.string()).cast(pa.binary()).to_pylist()
        return texts
    return map(_id_text, ids.to_pylist() if in_arrow else ids)


def _id_text(value: object) -> bytes:
    text = canonical(value)
    if text == MISSING:
        raise KeysError("an id is missing; every record needs one to have a key.")
    return text.encode("utf-8", "surrogatepass")


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    )


def _create(path: Path) -> None:
    """Write a new secret under its name in one step; whoever comes second keeps the first one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_hex(FEWEST_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise KeysError(f"cannot create the secret file {path}: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def _read_private(path: Path) -> bytes:
    """The bytes of a file that only its owner can read, checked on the open file."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & _OTHERS:
                raise KeysError(
                    f"secret file {path} has permissions {stat.S_IMODE(mode):o}: others can reach "
                    f"it. Change them with `chmod 600 {path}`."
                )
            return file.read()
    except FileNotFoundError:
        raise KeysError(
            f"there is no secret file {path}. Give the path of one, or create=True."
        ) from None
    except OSError as error:
        raise KeysError(f"cannot read the secret file {path}: {error.strerror}.") from error
