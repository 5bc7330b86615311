"""Texts for people: hints, tracebacks, masked secrets, counts, sizes, text for terminals."""

from slicewise.texts.counting import counted, listed
from slicewise.texts.hints import spelling_hint
from slicewise.texts.masking import (
    holds_mask,
    masked_blocks,
    masked_json,
    masked_text,
    masked_uri,
)
from slicewise.texts.memory_sizes import memory_bytes
from slicewise.texts.terminal import terminal_json, terminal_text
from slicewise.texts.web_links import is_web_address

__all__ = [
    "counted",
    "holds_mask",
    "is_web_address",
    "listed",
    "masked_blocks",
    "masked_json",
    "masked_text",
    "masked_uri",
    "memory_bytes",
    "spelling_hint",
    "terminal_json",
    "terminal_text",
]
