"""The rules of a style sheet that style elements with given words, as text again.

A rule stays if each class, element and attribute of one of its selectors is among the words. A
variable stays if a remaining rule or an own style sheet reads the variable.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tinycss2

# Elements that browsers add, and the root.
ALWAYS = frozenset({"html", "body", "root", "tbody"})
_READ_VARIABLE = re.compile(r"--[\w-]+")
# Alternatives within a selector.
_ALTERNATIVES = ("is", "where")


@dataclass(frozen=True, slots=True)
class Block:
    """A rule: the text before its braces, and its declarations or inner rules."""

    head: str
    declarations: tuple[str, ...] = ()
    inner: tuple["Block", ...] = ()

    @property
    def text(self) -> str:
        """The rule as text; empty if the rule says nothing."""
        inside = "".join(block.text for block in self.inner) + ";".join(self.declarations)
        return f"{self.head}{{{inside}}}" if inside else ""


def rules_in_use(style_sheet: str, words: Iterable[str], own_styles: str) -> list[str]:
    """Return the rules of a style sheet that elements with these words need, one a text.

    ``own_styles`` are the texts that may read variables of the style sheet. Raise ValueError for a
    style sheet that cannot be read.
    """
    names = ALWAYS | set(words)
    blocks = list(_blocks(tinycss2.parse_stylesheet(style_sheet, True, True), names))
    blocks = _without_unread_variables(blocks, set(_READ_VARIABLE.findall(own_styles)))
    texts = [text for block in blocks if (text := block.text)]
    named = [text for text in texts if not text.startswith("@keyframes")]
    words_of_rules = set(re.findall(r"[\w-]+", " ".join(named)))
    return [text for text in texts if text in named or _animation(text) in words_of_rules]


def _animation(keyframes: str) -> str:
    return keyframes.split("{", 1)[0].removeprefix("@keyframes").strip()


def _blocks(rules: Sequence[Any], names: frozenset[str]) -> Iterator[Block]:
    for rule in rules:
        for node in (rule, *getattr(rule, "prelude", ())):
            if node.type == "error":
                raise ValueError(f"line {node.source_line}: {node.message}")
        if rule.type == "qualified-rule":
            selectors = [
                s for s in _split(rule.prelude) if all(n in names for n in _names(s, names))
            ]
            if selectors:
                head = ",".join(tinycss2.serialize(selector) for selector in selectors)
                yield Block(head, _declarations(rule.content))
        elif rule.content is not None:
            head = f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}"
            if rule.lower_at_keyword in ("media", "supports"):
                inner = tinycss2.parse_rule_list(rule.content, True, True)
                yield Block(head, inner=tuple(_blocks(inner, names)))
            else:
                yield Block(head, (tinycss2.serialize(rule.content),))


def _declarations(content: Sequence[Any]) -> tuple[str, ...]:
    parsed = tinycss2.parse_blocks_contents(content, True, True)
    return tuple(declaration.serialize() for declaration in parsed)


def _split(selectors: Sequence[Any]) -> list[list[Any]]:
    """Return the selectors that commas separate."""
    split: list[list[Any]] = [[]]
    for token in selectors:
        if token.type == "literal" and token.value == ",":
            split.append([])
        else:
            split[-1].append(token)
    return split


def _names(selector: Sequence[Any], names: frozenset[str]) -> Iterator[str]:
    """Return the elements, classes, ids, attributes and their values that a selector needs.

    A name within ``:not`` is needed by no element, and of alternatives the first with known names
    is enough.
    """
    previous = None
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and previous != ":"):
            yield token.value
        elif token.type == "[] block":
            # An attribute may begin with an empty value: `[class^=""]`.
            yield from (t.value for t in token.content if t.type in ("ident", "string") and t.value)
        elif token.type == "function" and token.lower_name in _ALTERNATIVES:
            needed = [list(_names(choice, names)) for choice in _split(token.arguments)]
            yield from next(filter(names.issuperset, needed), needed[0])
        previous = token.value if token.type == "literal" else None


def _without_unread_variables(blocks: list[Block], own_names: set[str]) -> list[Block]:
    """Leave out variables that nothing reads, until all that remain are read."""
    while True:
        text = "".join(block.text for block in blocks)
        read = own_names | set(re.findall(r"var\((--[\w-]+)", text))
        remaining = [_with_variables(block, read) for block in blocks]
        if remaining == blocks:
            return blocks
        blocks = remaining


def _with_variables(block: Block, read: set[str]) -> Block:
    return replace(
        block,
        declarations=tuple(
            declaration
            for declaration in block.declarations
            if not declaration.startswith("--") or declaration.split(":", 1)[0] in read
        ),
        inner=tuple(_with_variables(inner, read) for inner in block.inner),
    )
