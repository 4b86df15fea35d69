"""The one owner of randomness: named streams for experiments, the system's source for secrets.

Nothing in the package touches NumPy's global state, and no function invents a generator of its
own: a seed or a generator is always an argument.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np

from discreet.errors import ParameterError, whole


def stream(root: int, step: str) -> np.random.Generator:
    """A generator that depends on the root seed and the step's name only.

    Adding a step elsewhere leaves every older stream as it was.

    >>> int(stream(1, "protect").integers(100)) == int(stream(1, "protect").integers(100))
    True
    """
    seed = whole("seed", root, 0)
    word = int.from_bytes(hashlib.sha256(step.encode()).digest()[:8], "big")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(word,)))


def system_integers(n: int, bits: int = 32) -> np.ndarray:
    """`n` integers of `bits` (8, 16 or 32) bits, as int64, from the operating system's source."""
    width = {8: np.uint8, 16: np.uint16, 32: np.uint32}.get(bits)
    if width is None:
        raise ParameterError(f"bits must be 8, 16 or 32, got {bits}.")
    raw = secrets.token_bytes(n * bits // 8)
    return np.frombuffer(raw, dtype=width).astype(np.int64)


def system_generator() -> np.random.Generator:
    """A generator whose 256 bits come from the operating system; nobody can draw it again."""
    seed = np.random.SeedSequence(secrets.randbits(256), pool_size=8)
    return np.random.Generator(np.random.PCG64(seed))
