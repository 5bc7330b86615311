"""Foreign text on a terminal: control characters are shown and have no effect.

A log may hold sequences that set the clipboard, the title or links of a terminal (OSC), move its
cursor over other lines (CSI), or request answers that the terminal types.
"""

# C0 but for newline and tab, DEL, and C1, which holds CSI and OSC as one character.
_CONTROLS = [code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
_SHOWN = {code: f"\\x{code:02x}" for code in _CONTROLS} | {ord("\r"): "\\r"}
_IN_JSON = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def terminal_text(text: str) -> str:
    r"""Return the text with control characters written out, such as `\x1b`; line breaks stay."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


def terminal_json(text: str) -> str:
    """Return JSON of the same value without the control characters that JSON allows."""
    return text.translate(_IN_JSON)
