"""Synthesis of records that do not fit into memory."""

from discreet.synthesize.streamed.ipso import Streamed, streamed_ipso

__all__ = ["Streamed", "streamed_ipso"]
