"""The groups, kinds, owners and tags of assets, as lists offer these facts for filters."""

from typing import Any

from django.db.models import F, Func, QuerySet, TextField, Value

from assets_app.models import Asset

# The column of each fact by the name of its filter: texts, and lists of texts.
_TEXTS = {"group": "group", "kind": "kind"}
_LISTS = {"owner": "owners", "tag": "tags"}
FACTS = (*_TEXTS, *_LISTS)
# A list of options that a person can still read.
MOST_OFFERED = 500


class _Elements(Func):
    """The elements of a JSON list, a row for each element."""

    function = "jsonb_array_elements_text"
    output_field = TextField()
    set_returning = True


def having_facts(assets: QuerySet[Asset], facts: dict[str, str]) -> QuerySet[Asset]:
    """Select the assets with all of these facts: ``{"owner": "ada"}``."""
    for fact, text in facts.items():
        condition = (
            {_TEXTS[fact]: text} if fact in _TEXTS else {f"{_LISTS[fact]}__contains": [text]}
        )
        assets = assets.filter(**condition)
    return assets


def offered_facts(assets: QuerySet[Asset], containing: str = "") -> dict[str, list[str]]:
    """Return the present values of each fact that contain a text, in order, at most
    `MOST_OFFERED`: one statement.
    """
    searched = containing.casefold()
    rows = assets.order_by()
    first_fact, *more_facts = (_values(rows, fact) for fact in FACTS)
    offered: dict[str, list[str]] = {fact: [] for fact in FACTS}
    for fact, text in sorted(first_fact.union(*more_facts)):
        is_offered = text and searched in text.casefold()
        if is_offered and len(offered[fact]) < MOST_OFFERED:
            offered[fact].append(text)
    return offered


def _values(rows: QuerySet[Asset], fact: str) -> QuerySet[Asset, Any]:
    text = F(_TEXTS[fact]) if fact in _TEXTS else _Elements(_LISTS[fact])
    values = rows.annotate(fact=Value(fact, output_field=TextField()), text=text)
    return values.values_list("fact", "text")
