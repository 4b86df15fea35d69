"""Results kept in memory: those at hand are given at once, those under way are made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.serve.data.seats import Seats

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """A cache whose readers never wait for anything but what they asked for.

    Whoever asks first makes the result, outside of any lock; whoever asks for the same meanwhile
    waits for it. A failure is told to all who wait and is not kept.

    Args:
      room: What all results together may weigh.
      weigh: The weight of a result; every result weighs one when absent.
      seats: Places to make a result in and to wait for one; as many as like when absent.
    """

    def __init__(
        self,
        room: float,
        weigh: Callable[[V], float] | None = None,
        seats: Seats | None = None,
    ) -> None:
        self.room, self._weigh, self._seats = room, weigh or (lambda _: 1.0), seats
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._under_way: dict[K, Future[V]] = {}
        self._load = 0.0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The result of a key, made if nobody has.

        Raises:
          Refusal: It is not at hand, and there is no place to wait for it.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            waiting = self._under_way.get(key)
            if waiting is None:
                mine = self._under_way[key] = Future()
        return self._made(key, make, mine) if waiting is None else self._awaited(waiting)

    def _awaited(self, result: Future[V]) -> V:
        """What somebody else is making; a failure is a copy, which may be written on."""
        with nullcontext() if self._seats is None else self._seats.waiting():
            error = result.exception()
        if isinstance(error, DiscreetError):
            raise _copied(error) from error
        return result.result()

    def items(self) -> list[tuple[K, V]]:
        """What is kept at the moment."""
        with self._lock:
            return [(key, result) for key, (result, _) in self._kept.items()]

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def _made(self, key: K, make: Callable[[], V], mine: Future[V]) -> V:
        try:
            with nullcontext() if self._seats is None else self._seats.making():
                result = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._keep(key, result)
            del self._under_way[key]
        mine.set_result(result)
        return result

    def _keep(self, key: K, result: V) -> None:
        weight = self._weigh(result)
        self._kept[key] = (result, weight)
        self._load += weight
        while self._load > self.room and len(self._kept) > 1:
            _, (_, gone) = self._kept.popitem(last=False)
            self._load -= gone


def _copied(error: DiscreetError) -> DiscreetError:
    """An error of its own, with what the other one says."""
    copy = type(error).__new__(type(error), *error.args)
    vars(copy).update(vars(error))
    return copy
