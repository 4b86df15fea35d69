"""Saved queries whose name is the query itself, so that nothing has to be kept for them."""

from __future__ import annotations

import base64
import binascii
import zlib

from pydantic import ValidationError

from discreet.serve.api.pxweb.models import SavedQueryModel
from discreet.serve.refusals import Refusal

LONGEST = 4_000
_LARGEST = 100_000


def name_of(query: SavedQueryModel) -> str:
    """The name of a saved query: its content, packed."""
    packed = zlib.compress(query.model_dump_json(exclude={"id"}, exclude_none=True).encode(), 9)
    name = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(name) > LONGEST:
        message = "The query is too long to be saved."
        raise Refusal("too_long", message, "Expressions such as * in place of many codes.")
    return name


def query_named(name: str) -> SavedQueryModel:
    """The inverse of `name_of`; a name that no query has is refused."""
    try:
        packed = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, _LARGEST)
        found = SavedQueryModel.model_validate_json(text)
    except (ValueError, ValidationError, zlib.error, binascii.Error):
        message = "There is no saved query of this name."
        raise Refusal("unknown_query", message, "Names that /savedqueries gave.", 404) from None
    return found.model_copy(update={"id": name})
