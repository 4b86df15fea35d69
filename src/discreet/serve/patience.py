"""How long a connection may take: to send a request, and to take its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 15.0
"""For a whole request, from the first byte to the last one of its body."""
ANSWER_SECONDS = 60.0
"""For the next piece of an answer to be taken."""


class PatientProtocol(H11Protocol):
    """HTTP for clients that make progress; others are cut off.

    A client that sends its request byte by byte, or never reads its answer, would hold a
    connection for ever.
    """

    request_seconds = REQUEST_SECONDS
    answer_seconds = ANSWER_SECONDS

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._request, self._answer = _Timer(self.loop), _Timer(self.loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request."""
        super().connection_made(transport)
        self._request.start(self.request_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        if not self._request.is_running and not self._is_answering():
            self._request.start(self.request_seconds, self.transport.abort)
        super().data_received(data)
        if self._is_answering():
            self._request.stop()

    def pause_writing(self) -> None:
        """Expect the client to take what waits."""
        self.flow.pause_writing()
        self._answer.start(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._answer.stop()
        self.flow.resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, by force where the client never takes the last answer."""
        super().timeout_keep_alive_handler()
        self._answer.start(self.answer_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._request.stop()
        self._answer.stop()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        """Whether a whole request has come and is being answered."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body


class _Timer:
    """Does something after a while unless it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float, act: Callable[[], None]) -> None:
        self.stop()
        self._handle = self._loop.call_later(seconds, act)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
