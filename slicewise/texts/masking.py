"""Masking of secrets, by `***`, in texts that are shown to people.

Masking is for accidents, not against people who mean to print a secret. Exactly this is masked:

- the password in the user info of a URI, and the URI's parameters that are named like secrets;
- values after a name that ends like a secret (`password`, `secret`, `token`, `access_key` …), or is
  the word `pass`: a quoted value after `=` or `:`, as in Python and JSON, and any value directly
  after `=`;
- the credentials of an `Authorization` header, and the values of headers such as `X-Api-Key`;
- key ids of AWS and tokens of GitHub, anywhere in the text.

Every pattern takes time in proportion to the length of the text, for any text, since user code
writes the texts.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

__all__ = ["holds_mask", "masked_blocks", "masked_json", "masked_text", "masked_uri"]

MASK = "***"

# A password may hold any character, also one that ends a host by RFC 3986; the last "@" ends it.
_USER_PASSWORD = re.compile(r"(//[^/?#@:]*):.*@", re.DOTALL)
# But for clients that follow RFC 3986, digits before "/" are a port; a later "@" is in the path.
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
# A cut-off text has no closing quote: the value then ends with the line.
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
_STARS, _UNMASKED = re.compile(r"\*\*\*"), re.compile(r"unmasked\d+x")
# The masked key of a service that is the user of a URI, without a password.
_MASKED_USER = re.compile(r"//\*\*\*@")
# A search for words costs a tenth of the patterns, and most lines hold no such word. In lowered
# text a name with "=" or ":" is searched next: many lines say "token" without a value.
_WORDS = ("pass", "pwd", "secret", "token", "credential", "authorization")
_KEY_WORDS = ("api", "access", "private", "storage", "account")
_NAMED = re.compile(rf"(?:{_NAME}|authorization)\\?[\"']?[ \t]{{0,4}}[=:]")
_BLOCK_CHARACTERS = 64 * 1024
_HARMLESS = ("none", "null", "true", "false", MASK)


def masked_uri(uri: str) -> str:
    """Return the URI with `***` for the password in the user info and for secrets in the query."""
    return mask_parameters(_without_password(uri))


def masked_text(text: str) -> str:
    """Return a text, such as an error, a log or source code, with the secrets masked."""
    if "//" in text:
        text = _URI_IN_TEXT.sub(_masked_in_text, text)
    if _has_word(text.lower()):
        text = "".join(map(_masked_line, text.splitlines(keepends=True)))
    return _KNOWN_KEY.sub(MASK, text)


def masked_blocks(text: str) -> Iterator[str]:
    """Yield a text with the secrets masked, in blocks of whole lines, each masked on demand."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _BLOCK_CHARACTERS) + 1 or len(text)
        yield masked_text(text[begin:end])
        begin = end


def masked_json(value: Any) -> Any:
    """Return JSON with the secrets masked in every text, and all values named like secrets."""
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


def holds_mask(value: Any) -> bool:
    """Return whether JSON holds `***` in the place of a secret, as ``masked_json`` returns JSON.

    A secret that has `***` among other characters is no mask.
    """
    match value:
        case str():
            return MASK in value and _is_masked(value)
        case Mapping():
            return any(
                _is_hidden(inner) if _is_secret_name(name) else holds_mask(inner)
                for name, inner in value.items()
            )
        case list() | tuple():
            return any(map(holds_mask, value))
    return False


def _is_masked(text: str) -> bool:
    """Return whether a `***` of a text stands for a whole secret."""
    if _MASKED_USER.search(text):
        return True
    pieces = text.split(MASK)
    # Each `***` becomes a word of its own. A word that is masked stood in the place of a secret: of
    # the whole secret, where the new mask stands between the same characters.
    words = [f"unmasked{number}x" for number in range(len(pieces) - 1)]
    shown = masked_text("".join(chain.from_iterable(zip(pieces, [*words, ""], strict=True))))
    shown_words = set(_UNMASKED.findall(shown))
    surroundings = {
        (shown[max(match.start() - 1, 0) : match.start()], shown[match.end() : match.end() + 1])
        for match in _STARS.finditer(shown)
    }
    return any(
        word not in shown_words and (before[-1:], after[:1]) in surroundings
        for word, before, after in zip(words, pieces, pieces[1:], strict=False)
    )


def mask_parameters(uri: str) -> str:
    """Return the URI with `***` for parameters of the query that are named like secrets."""
    return _HIDDEN_VALUE.sub(lambda match: f"{match[1] or match[2]}{MASK}", uri)


def _masked_in_text(match: re.Match[str]) -> str:
    begin = match.start()
    scheme = _SCHEME_AT_END.search(match.string[max(0, begin - 12) : begin])
    before = scheme[0] if scheme else ""
    return masked_uri(before + match[0])[len(before) :]


def _without_password(uri: str) -> str:
    begin = 0
    while host := _HOST_AND_PORT.match(uri, begin):
        begin = host.end()
    return uri[:begin] + _without_user_password(uri[begin:])


def _without_user_password(uri: str) -> str:
    # Only the text before the last "@" is searched: after it, each ":" would be tried with the
    # whole rest.
    login, separator, rest = uri.rpartition("@")
    return _USER_PASSWORD.sub(rf"\1:{MASK}@", login + separator) + rest


def _is_secret_name(name: object) -> bool:
    return _SECRET_NAME.search(str(name)[-200:]) is not None


def _hidden(value: Any) -> Any:
    """Return the mask; for an object, the names with masks. Empty values and booleans stay."""
    if isinstance(value, Mapping):
        return {name: _hidden(inner) for name, inner in value.items()}
    return value if value is None or isinstance(value, bool) or value in ("", [], ()) else MASK


def _is_hidden(value: Any) -> bool:
    """Return whether a value is the mask, or an object with a mask."""
    if isinstance(value, Mapping):
        return any(map(_is_hidden, value.values()))
    return bool(value == MASK)


def _has_word(lowered: str) -> bool:
    return any(word in lowered for word in _WORDS) or (
        "key" in lowered and any(word in lowered for word in _KEY_WORDS)
    )


def _masked_line(line: str) -> str:
    lowered = line.lower()
    match = _NAMED.search(lowered) if _has_word(lowered) else None
    if match is None:
        return line
    # Begin at the word that holds the name. Lowering may turn one letter into two; then positions
    # differ, and the whole line is masked.
    begin = line.rfind(" ", 0, match.start()) + 1 if len(line) == len(lowered) else 0
    rest = _QUOTED_VALUE.sub(_mask_quoted, line[begin:])
    rest = _BARE_VALUE.sub(_mask_bare, rest)
    rest = _AUTHORIZATION.sub(rf"\1{MASK}", rest)
    return line[:begin] + _KEY_HEADER.sub(rf"\1{MASK}", rest)


def _mask_quoted(match: re.Match[str]) -> str:
    value = match[0][len(match[1]) :]
    opening = value[: 2 if value.startswith("\\") else 1]
    return f"{match[1]}{opening}{MASK}{match[2] or match[3] or match[4] or ''}"


def _mask_bare(match: re.Match[str]) -> str:
    value = match[2].rstrip(")]}")
    if value.lower() in _HARMLESS:
        return match[0]
    return f"{match[1]}{MASK}{match[2][len(value) :]}"
