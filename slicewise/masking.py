"""Secrets in texts that people are shown: `***` in their place.

For accidents, not against people who mean to print a secret. What is masked, and nothing else:

- the password in the user info of a URI, and parameters of it that are named like secrets;
- values after a name that ends like a secret (`password`, `secret`, `token`, `access_key` …), or is
  the word `pass`: what is quoted after `=` or `:`, as in Python and JSON, and what follows `=` at
  once;
- the credentials of an `Authorization` header, and the values of headers such as `X-Api-Key`;
- key ids of AWS and tokens of GitHub, wherever they stand.

Every pattern takes time in proportion to the text, whatever it holds: user code writes it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["masked_blocks", "masked_json", "masked_text", "masked_uri"]

MASK = "***"

# A password may hold anything, also what ends a host by RFC 3986; so it goes on to the last "@".
_USER_PASSWORD = re.compile(r"(//[^/?#@:]*):.*@", re.DOTALL)
# But for clients that read RFC 3986, digits before "/" are a port, and an "@" belongs to the path.
_HOST_AND_PORT = re.compile(
    r"(?:s?webhdfs|hdfs|viewfs|s3[an]?|gcs|gs|https?)://[^/?#@:]*:\d+/", re.IGNORECASE
)
_SCHEME_AT_END = re.compile(r"[A-Za-z0-9]+:\Z")
_HIDDEN = (
    r"(?:[^=&;?#]{0,64}(?:pass|pwd|secret|token|credential|signature"
    r"|(?:api|access|account|private)[_-]?key)[^=&;?#]{0,64}|sig)="
)
_HIDDEN_VALUE = re.compile(rf"([?&]{_HIDDEN})[^&]*|(;{_HIDDEN})[^;&]*", re.IGNORECASE)
_URI_IN_TEXT = re.compile(r"(?<=[A-Za-z0-9+.:-])//[^\s\"'`<>]+")

_NAME = (
    r"(?:password|passwd|passphrase|(?<![A-Za-z])pass|pwd|secret|token|credentials?"
    r"|(?:api|access|private|storage|secret)[._-]?key|account[._-]?key(?:\.[\w.-]{1,100})?)"
)
# A cut-off text has no closing quote: the value then goes on to the end of the line.
_QUOTED_VALUE = re.compile(
    rf"""({_NAME}\\?["']?[ \t]{{0,4}}[=:][ \t]{{0,4}}[bfru]{{0,2}})"""
    r"""(?:"(?:\\.|[^"\\\n])+("?)|'(?:\\.|[^'\\\n])+('?)|\\"[^"\\\n]+((?:\\")?))""",
    re.IGNORECASE,
)
_BARE_VALUE = re.compile(rf"({_NAME}=)([^\s&;,\"'`<>]+)", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"(authorization[\"']?[ \t]{0,4}[=:][ \t]{0,4}[\"']?(?:bearer|basic|token)[ ]{1,4})[^\s\"',;]+",
    re.IGNORECASE,
)
_KEY_HEADER = re.compile(
    r"((?<![\w-])x-[a-z-]{0,40}(?:key|token|secret|password)[ \t]{0,4}:[ \t]{0,4})[^\s\"',;]+",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(rf"{_NAME}\Z", re.IGNORECASE)
_KNOWN_KEY = re.compile(r"\b(?:(?:AKIA|ASIA)[0-9A-Z]{16}\b|(?:gh[opsur]|github_pat)_\w{22,})")
# To look for words costs a tenth of the patterns, and most lines hold none. In lowered text a name
# with "=" or ":" is looked for next: many lines say "token" and give none.
_WORDS = ("pass", "pwd", "secret", "token", "credential", "authorization")
_KEY_WORDS = ("api", "access", "private", "storage", "account")
_NAMED = re.compile(rf"(?:{_NAME}|authorization)\\?[\"']?[ \t]{{0,4}}[=:]")
_BLOCK_CHARACTERS = 64 * 1024
_HARMLESS = ("none", "null", "true", "false", MASK)


def masked_uri(uri: str) -> str:
    """Return the URI with `***` for the password in its user info and for secrets in its query."""
    return without_secret_parameters(_without_password(uri))


def masked_text(text: str) -> str:
    """Any text, such as an error, a log or source code, with its secrets masked."""
    if "//" in text:
        text = _URI_IN_TEXT.sub(_masked_in_text, text)
    if _has_word(text.lower()):
        text = "".join(map(_masked_line, text.splitlines(keepends=True)))
    return _KNOWN_KEY.sub(MASK, text)


def masked_blocks(text: str) -> Iterator[str]:
    """Any text with its secrets masked, in blocks of whole lines, each masked when it is due."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _BLOCK_CHARACTERS) + 1 or len(text)
        yield masked_text(text[begin:end])
        begin = end


def masked_json(value: Any) -> Any:
    """JSON with the secrets masked in every text of it, and whatever is named like a secret."""
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return {
                name: _hidden(inner) if _is_secret_name(name) else masked_json(inner)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [masked_json(inner) for inner in value]
    return value


def without_secret_parameters(uri: str) -> str:
    """Return the URI with `***` for what its query names like secrets."""
    return _HIDDEN_VALUE.sub(lambda found: f"{found[1] or found[2]}{MASK}", uri)


def _masked_in_text(found: re.Match[str]) -> str:
    begin = found.start()
    scheme = _SCHEME_AT_END.search(found.string[max(0, begin - 12) : begin])
    before = scheme[0] if scheme else ""
    return masked_uri(before + found[0])[len(before) :]


def _without_password(uri: str) -> str:
    begin = 0
    while place := _HOST_AND_PORT.match(uri, begin):
        begin = place.end()
    return uri[:begin] + _without_user_password(uri[begin:])


def _without_user_password(uri: str) -> str:
    # Without an "@" behind it every ":" would be looked at with all that follows.
    login, at, rest = uri.rpartition("@")
    return _USER_PASSWORD.sub(rf"\1:{MASK}@", login + at) + rest


def _is_secret_name(name: object) -> bool:
    return _SECRET_NAME.search(str(name)[-200:]) is not None


def _hidden(value: Any) -> Any:
    """Return the mask; of an object, its names with masks. What is empty, true or false stays."""
    if isinstance(value, Mapping):
        return {name: _hidden(inner) for name, inner in value.items()}
    return value if value is None or isinstance(value, bool) or value in ("", [], ()) else MASK


def _has_word(lowered: str) -> bool:
    return any(word in lowered for word in _WORDS) or (
        "key" in lowered and any(word in lowered for word in _KEY_WORDS)
    )


def _masked_line(line: str) -> str:
    lowered = line.lower()
    found = _NAMED.search(lowered) if _has_word(lowered) else None
    if found is None:
        return line
    # The word that holds the name; a letter may have become two by being lowered.
    begin = line.rfind(" ", 0, found.start()) + 1 if len(line) == len(lowered) else 0
    rest = _QUOTED_VALUE.sub(_mask_quoted, line[begin:])
    rest = _BARE_VALUE.sub(_mask_bare, rest)
    rest = _AUTHORIZATION.sub(rf"\1{MASK}", rest)
    return line[:begin] + _KEY_HEADER.sub(rf"\1{MASK}", rest)


def _mask_quoted(found: re.Match[str]) -> str:
    value = found[0][len(found[1]) :]
    opening = value[: 2 if value.startswith("\\") else 1]
    return f"{found[1]}{opening}{MASK}{found[2] or found[3] or found[4] or ''}"


def _mask_bare(found: re.Match[str]) -> str:
    value = found[2].rstrip(")]}")
    if value.lower() in _HARMLESS:
        return found[0]
    return f"{found[1]}{MASK}{found[2][len(value) :]}"
