"""Texts with a signature and an end: sessions in cookies, and the proof that a form is ours."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time

_SEPARATOR = "."


class Signer:
    """Signs texts for a purpose; what was signed for one purpose is no good for another.

    Args:
      key: The key, which all processes of a site share.
      purpose: What the texts are for.
    """

    def __init__(self, key: bytes, purpose: str) -> None:
        self._key = hmac.new(key, purpose.encode(), hashlib.sha256).digest()

    def signed(self, text: str, seconds: float) -> str:
        """The text with its end and its signature, in letters that a cookie can hold."""
        body = _coded(f"{int(time.time() + seconds)}{_SEPARATOR}{text}".encode())
        return f"{body}{_SEPARATOR}{self._signature(body)}"

    def read(self, signed: str) -> str | None:
        """The text, where the signature is ours and the end has not come."""
        body, _, signature = signed.partition(_SEPARATOR)
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode()):
            return None
        end, _, text = _decoded(body).partition(_SEPARATOR)
        return text if end.isdigit() and int(end) > time.time() else None

    def _signature(self, body: str) -> str:
        return _coded(hmac.new(self._key, body.encode(), hashlib.sha256).digest())


def _coded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""
