"""The secret behind record keys and noise, and the keyed hashes made with it."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from discreet.arrays import Unsigned64, Whole
from discreet.columns import Column, is_whole_kind
from discreet.design.base import Cell
from discreet.design.codes import MISSING, canonical
from discreet.errors import KeysError
from discreet.files import OWNER_ONLY, flush, made_once, refuse_shared, written_whole
from discreet.progress import notice
from discreet.tables.editions import EditionMode, edition_number
from discreet.tables.keys import KeyConvention, convention

FEWEST_BYTES = 32
FEWEST_BITS = 100
"""A secret whose bytes tell less than this much is refused."""
_DIGEST_BYTES = 8
_SEED_BYTES = 32
_LONGEST = 65
_FORMAT = re.compile(rb"([0-9a-f]{64})\n?")
_DEMO = b"discreet demo data: this secret is public and protects nobody"


class Secret:
    r"""A secret that gives ids and empty cells their keys, and noise its randomness.

    A key is :math:`\mathrm{BLAKE2b}_s(\text{domain} \,\|\, \text{text}) \bmod m`, a keyed hash of
    64 bits brought to the range of the key convention. Ids, ids of one edition, empty cells, noise
    by cell key, and generators are different domains.

    Promise: the same text has the same key wherever and whenever it is made; without the secret
    keys cannot be told from random ones. The secret is never shown, pickled or exported, and is
    not kept: the object holds states of the hash that have taken it in.
    Cost: about half a microsecond for each id.

    Make one with `from_file`, `from_env` or `generate`. The constructor is for programs and tests
    that hold the bytes already; white space at either end does not count. Bytes that somebody could
    guess are refused as far as they show it (see `surprise`); that a secret passes is no proof.
    """

    __slots__ = ("_is_public", "_keys", "_seeds")

    def __init__(
        self, material: bytes, origin: str = "a secret", *, is_public: bool = False
    ) -> None:
        material = material.strip()
        if len(material) < FEWEST_BYTES:
            raise KeysError(
                f"{origin} holds {len(material)} bytes; a secret needs at least {FEWEST_BYTES}. "
                "Make one with `Secret.from_file(path, create=True)`."
            )
        _check_surprise(material, origin)
        stretched = hashlib.blake2b(material).digest()
        self._keys = hashlib.blake2b(key=stretched, digest_size=_DIGEST_BYTES)
        self._seeds = hashlib.blake2b(key=stretched, digest_size=_SEED_BYTES)
        self._is_public = is_public

    @classmethod
    def from_file(cls, path: str | Path, *, create: bool = False) -> Secret:
        """The secret in a file that only its owner can read.

        Args:
          path: The file: 64 hexadecimal digits in lower case and at most one newline.
          create: Make the file, from the operating system's source, when it is not there.
        """
        path = Path(path)
        if create and not path.exists():
            _create(path)
        return cls(_read_private(path))

    @classmethod
    def from_env(cls, name: str) -> Secret:
        """The secret in an environment variable, written as in a secret file."""
        text = os.environ.get(name)
        if text is None:
            raise KeysError(f"environment variable {name!r} is not set; it should hold the secret.")
        return cls(_digits(os.fsencode(text), f"environment variable {name!r}"))

    @classmethod
    def generate(cls) -> Secret:
        """A new secret that ends with the program: for trials, since its keys cannot come back."""
        return cls(secrets.token_hex(FEWEST_BYTES).encode())

    @classmethod
    def demo(cls) -> Secret:
        """The secret of the demo data, which everybody knows: it protects nobody."""
        return cls(_DEMO, is_public=True)

    @property
    def is_public(self) -> bool:
        """Whether everybody knows the secret, as that of the demo data."""
        return self._is_public

    @property
    def mark(self) -> str:
        """A keyed hash of a constant, 16 hexadecimal digits: tells one secret from another."""
        mark: str = _of_domain(self._keys, b"discreet mark of a secret").hexdigest()
        return mark

    def keys_for_ids(
        self,
        ids: Iterable[object],
        rule: str | KeyConvention = "discreet",
        edition: str | None = None,
        mode: EditionMode | str | None = None,
    ) -> Whole:
        """The record key of each id: whole numbers below the convention's modulus.

        Args:
          ids: Any column or sequence of whole numbers or texts; ``7`` and ``"7"`` are one id.
          rule: The key convention.
          edition: Keys of this edition alone; without it an id has one key in all editions.
          mode: How editions follow each other; `"fresh"` where an edition is named. Kept keys are
            the same in all editions. Under `"renewed:q"` an id draws a new key with chance `q` for
            every edition, by a keyed coin.
        """
        chosen = EditionMode.parse("fresh" if mode is None else str(mode))
        if edition is None or chosen.kind == "kept":
            state = _of_domain(self._keys, b"discreet record key")
        elif chosen.share is not None:
            return self._renew_some(list(_id_texts(ids)), convention(rule), edition, chosen.share)
        else:
            state = _of_domain(self._keys, b"discreet record key of an edition")
            state.update(_with_length(edition))
        return _to_range(_words(state, _id_texts(ids)), convention(rule))

    def _renew_some(
        self, texts: list[bytes], rule: KeyConvention, edition: str, share: float
    ) -> Whole:
        """Keys that belong to the last edition in which an id's coin fell so.

        Cost: about `1/share` hashes for each id, since the coins of the editions before are thrown
        again; no list of them need be kept.
        """
        keys, waiting = np.zeros(len(texts), dtype=np.int64), np.arange(len(texts))
        below = np.uint64(int(share * 2**64))
        for number in range(edition_number(edition), -1, -1):
            some = [texts[k] for k in waiting.tolist()]
            place = number.to_bytes(8, "big")
            coin = _of_domain(self._keys, b"discreet renewal of a record key")
            coin.update(place)
            is_new = (_words(coin, some) < below) | (number == 0)
            state = _of_domain(self._keys, b"discreet renewed record key")
            state.update(place)
            chosen = [some[k] for k in np.flatnonzero(is_new).tolist()]
            keys[waiting[is_new]] = _to_range(_words(state, chosen), rule)
            waiting = waiting[~is_new]
            if not len(waiting):
                break
        return keys

    def zero_key(self, cells: Sequence[Cell], rule: str | KeyConvention = "discreet") -> Whole:
        """The key of each cell, from its definition alone: its codes, totals left out.

        Used for cells without records, whose sum of record keys says nothing.
        """
        state = _of_domain(self._keys, b"discreet zero cell key")
        return _to_range(_words(state, map(definition, cells)), convention(rule))

    def mix_keys(self, keys: Whole, purpose: str) -> Whole:
        """A keyed hash of each cell key: whole numbers below 2³², unrelated between purposes.

        Cost: about half a microsecond for each distinct key.

        Args:
          keys: Cell keys, in any number.
          purpose: What the result is for, such as the name of a method.
        """
        distinct, place = np.unique(np.asarray(keys, dtype=np.int64), return_inverse=True)
        state = _of_domain(self._keys, b"discreet cell noise")
        state.update(_with_length(purpose))
        words = _words(state, distinct.astype(">i8").view("V8").tolist())
        mixed: Whole = (words >> np.uint64(32)).astype(np.int64)[place]
        return mixed

    def cell_marks(self, cells: Sequence[Cell]) -> Whole:
        """A keyed hash of each cell's definition: by it a cell is known in other editions."""
        state = _of_domain(self._keys, b"discreet mark of a cell")
        return (_words(state, map(definition, cells)) >> np.uint64(1)).astype(np.int64)

    def generator(self, message: bytes) -> np.random.Generator:
        """A generator that depends on the secret and the message only.

        Its whole stream is determined by 256 bits: a keyed hash of the message, from which NumPy
        fills the state and the increment of a PCG64. Without the secret, streams of different
        messages are unrelated. PCG64 itself is no cipher, so a stream serves one message.
        """
        state = _of_domain(self._seeds, b"discreet generator")
        state.update(message)
        seed = int.from_bytes(state.digest(), "big")
        words = _SEED_BYTES // 4  # NumPy's usual pool of four words would keep 128 bits
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, pool_size=words)))

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise KeysError("a secret cannot be pickled or copied; read it again where it is needed.")


def copy_secret(path: str | Path, copy: str | Path) -> None:
    """Copy a secret's file to one that only its owner can read, and that is not there yet."""
    content = _read_private(Path(path))
    if Path(copy).exists():
        raise KeysError(f"{copy} exists; a copy never takes the place of another secret.")
    with written_whole(copy, OWNER_ONLY) as temporary:
        temporary.write_bytes(content + b"\n")


@contextmanager
def put_new_secret(path: str | Path) -> Iterator[Secret]:
    """A new secret, which takes the place of the one in a file when the block ends well."""
    with written_whole(path, OWNER_ONLY) as temporary:
        temporary.write_bytes(secrets.token_hex(FEWEST_BYTES).encode() + b"\n")
        yield Secret.from_file(temporary)


def surprise(material: bytes) -> float:
    r"""An upper bound of what some bytes can tell, in bits.

    The least, over several ways of reading them, of :math:`n H`, where `H` is the entropy of the
    frequencies of the `n` symbols: the bytes as they are; one period where they repeat; steps from
    byte to byte and from every second to the next but one, which tell counters and alphabets; and
    all of these for the bytes behind hexadecimal digits.

    >>> surprise(bytes(32)), surprise(bytes(range(32))), surprise(b"swordfish" * 4) < 30
    (0.0, 0.0, True)
    """
    read = [material]
    if re.fullmatch(rb"([0-9a-fA-F]{2}){32,}", material):  # as secret files have them
        read.append(bytes.fromhex(material.decode()))
    return min(_bits(view) for each in read for view in _views(each))


def _views(content: bytes) -> list[bytes]:
    n = len(content)
    period = next(p for p in range(1, n + 1) if content[p:] == content[:-p] or p == n)
    once = content[:period]
    steps = [bytes((b - a) % 256 for a, b in zip(once, once[lag:], strict=False)) for lag in (1, 2)]
    return [once, *(step for step in steps if len(step) > 1)]


def _bits(symbols: bytes) -> float:
    counts = np.bincount(np.frombuffer(symbols, dtype=np.uint8))
    counts = counts[counts > 0]
    return float(max(0.0, -(counts * np.log2(counts / counts.sum())).sum()))


def _check_surprise(material: bytes, origin: str) -> None:
    if surprise(material) < FEWEST_BITS:
        raise KeysError(
            f"{origin} can be guessed: its bytes repeat, count on or use few symbols, and tell "
            f"less than {FEWEST_BITS} bits. Make one from the operating system with "
            "`Secret.from_file(path, create=True)`."
        )


def secret_of(
    given: Secret | str | Path, name: str, *, marks: Collection[str] = (), has_keys: bool = False
) -> Secret:
    """The secret of a data set; its file is made when it is first used, and a notice says so.

    This is the one rule for records, tables, sites and commands. A data set has one secret, so
    none is made where there are signs of another one: the ledger knows its mark, keys were made
    with it, or it lies beside the file that was named.

    Args:
      given: The secret, or its file.
      name: Name of the data set.
      marks: Marks of its secrets that a ledger knows.
      has_keys: Whether the records have keys that a secret made.

    Raises:
      KeysError: The file is not there, and a new secret would be the data set's second.
    """
    if isinstance(given, Secret):
        return given
    path = Path(given)
    if path.exists():
        return Secret.from_file(path)
    beside = next((p for p in sorted(path.parent.glob("*.secret")) if p != path), None)
    sign = None
    if marks:
        sign = f"the ledger has releases of data set {name!r} with another one"
    elif has_keys:
        sign = f"keys of data set {name!r} were made with another one"
    elif beside is not None:
        sign = f"{beside} lies beside it"
    if sign is not None:
        raise KeysError(
            f"there is no secret file {path}, and a new one would be a second secret: {sign}. Name "
            "the file that was used before; a secret for other data is made on purpose, by "
            "`Secret.from_file(path, create=True)` or `discreet secret make FILE`."
        )
    made = Secret.from_file(path, create=True)
    notice(f"{path} is new: the secret of data set {name!r}. Keep a copy, and show it to nobody.")
    return made


def definition(cell: Cell) -> bytes:
    """A cell's codes as bytes that no other cell has: sorted pairs, each text after its length."""
    pairs = sorted(cell.items())
    return b"".join(_with_length(text) for pair in pairs for text in pair)


def _with_length(text: str) -> bytes:
    """A text after its length."""
    content = text.encode("utf-8", "surrogatepass")
    return len(content).to_bytes(8, "big") + content


def _of_domain(keyed: Any, domain: bytes) -> Any:
    """A hash that has taken in its key and domain, to be copied for each text.

    The domain after the key fills the hash's first block, so that a copy has one block to do.
    """
    state = keyed.copy()
    state.update(domain + b"\0")
    return state


def _words(state: Any, texts: Iterable[bytes]) -> Unsigned64:
    """The keyed hash of each text, 64 bits."""
    digests = []
    for text in texts:
        one = state.copy()
        one.update(text)
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def _to_range(words: Unsigned64, rule: KeyConvention) -> Whole:
    return (words % np.uint64(rule.modulus)).astype(np.int64)


def _id_texts(ids: Any) -> Iterable[bytes]:
    """Canonical texts as bytes; whole numbers and texts of a column are converted at once."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
        ids = Column(ids)
    if hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__"):
        ids = Column(ids)
    if not isinstance(ids, Column):
        return map(_id_text, ids)
    if (is_whole_kind(ids.kind) or ids.kind == "string") and not ids.null_count:
        return map(str.encode, ids.cast("string").to_pylist())
    return map(_id_text, ids)


def _id_text(value: object) -> bytes:
    text = canonical(value)
    if text == MISSING:
        raise KeysError("an id is missing; every record needs one to have a key.")
    return text.encode("utf-8", "surrogatepass")


def _digits(content: bytes, origin: str) -> bytes:
    """What a secret file holds, or a clear error that does not quote it."""
    found = _FORMAT.fullmatch(content)
    if found is None:
        raise KeysError(
            f"{origin} does not hold a secret. A secret is 64 hexadecimal digits in lower case, "
            "with at most one newline after them; make one with `discreet secret make` or "
            "`Secret.from_file(path, create=True)`."
        )
    return found[1]


def _create(path: Path) -> None:
    """Write a new secret under its name in one step; whoever comes second keeps the first one."""
    try:
        with made_once(path) as temporary:
            temporary.write_bytes(secrets.token_hex(FEWEST_BYTES).encode() + b"\n")
            flush(temporary)
    except OSError as error:
        raise KeysError(f"cannot create the secret file {path}: {error.strerror}.") from error


def _read_private(path: Path) -> bytes:
    """The secret in a file that only its owner can read, checked on the open file."""
    try:
        with path.open("rb") as file:
            found = _digits(file.read(_LONGEST + 1), f"file {path}")
            refuse_shared("secret file", path, os.fstat(file.fileno()), KeysError)
            return found
    except FileNotFoundError:
        raise KeysError(
            f"there is no secret file {path}. Give the path of one, or make it: `discreet secret "
            f"make {path}`, or create=True."
        ) from None
    except OSError as error:
        raise KeysError(f"cannot read the secret file {path}: {error.strerror}.") from error
