"""The search of everything: assets, partitions, runs, backfills, bundles, owners and tags, and
errors, each list bounded.
"""

import re
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from assets_app.models import Asset, AssetPartition, Bundle, Run
from assets_app.queries.clock import database_now
from assets_app.queries.declared_facts import offered_facts
from assets_app.queries.keys import still_known
from backfills_app.models import Backfill
from partitions_app.labels import label_of_key
from partitions_app.templatetags.slicewise_pages import partition_url
from slicewise import PartitionDefinition, PartitionSet
from slicewise_server.home.search_failures import broken_files, failed_runs
from slicewise_server.home.search_hits import MOST_HITS, Hit, Section
from slicewise_server.web.storable import is_storable
from slicewise_server.web.typed_ids import is_id

_KEYS_TRIED = 20
_LONGEST = 300
# To count partitions between which windows are excluded takes a second for a million windows.
_MOST_COUNTED = 10_000
# Items of lists, over all assets: to find the first and the last partition of an item takes up to
# 40 ms where windows are excluded.
_MOST_ITEMS = 50
# The first and the last gaps of a text that may lie between a name, which may have gaps itself, and
# a key: so many of each.
_GAPS_TRIED = 4
# The beginning of a time in a key: the hour without minutes, which no selection has.
_HOUR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d):?")

_ITEM_ENDS = re.compile("[,;]")


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show the rows that match the words of the address, by kind."""
    text = request.GET.get("q", "").strip()[:_LONGEST]
    sections = sections_of(text) if text and is_storable(text) else []
    is_found = any(section.hits for section in sections)
    context = {
        "q": text,
        "sections": [section for section in sections if section.hits or section.is_cut],
        "hint": _hint() if text and not is_found else "",
    }
    return render(request, "home/search.html", context)


def _hint() -> str:
    """Return a hint for a search without results, with an example that has results, if any asset
    is declared.
    """
    asset = Asset.objects.filter(active=True).order_by("name").first()
    if asset is None:
        return "Change the search."
    partitions = AssetPartition.objects.filter(asset=asset, identity=asset.identity)
    texts = partitions.order_by("-key").values_list("key", flat=True)[:_KEYS_TRIED]
    keys = still_known(asset.definition, texts) if asset.definition else iter(())
    key = next(keys, None)
    return f"Change the search. Example: {asset.name} {key.text if key else ''}".strip()


def sections_of(text: str) -> list[Section]:
    """Return the results for a text by kind: at most thirteen statements."""
    assets, backfills = reverse("assets:assets"), reverse("backfills:backfills")
    query = urlencode({"q": text})
    return [
        Section("Partitions", _partitions(text)),
        Section("Runs", _runs(text)),
        Section("Assets", _assets(text), f"{assets}?{query}"),
        Section("Backfills", _backfills(text), f"{backfills}?{query}"),
        Section("Bundles", _bundles(text)),
        Section("Owners and tags", _owners_and_tags(text)),
        broken_files(text),
        failed_runs(text, database_now()),
    ]


def _assets(text: str) -> list[Hit]:
    words = Q(name__icontains=text) | Q(group__icontains=text) | Q(description__icontains=text)
    rows = Asset.objects.filter(words, active=True).order_by("name")[:MOST_HITS]
    return [
        Hit(row.name, reverse("assets:asset", args=[row.name]), row.group or row.description[:80])
        for row in rows
    ]


def _partitions(text: str) -> list[Hit]:
    """Return the partitions that ``asset key`` names, for each asset of a matching name.

    The key may be a selection, or the hour of a key. A long list is read for fewer assets. The
    longest name that has such partitions counts: names and selections may have spaces.
    """
    gaps = list(re.finditer(" +", text))
    # A key seldom has spaces, a list has some: the name ends at one of the first or last gaps.
    tried = gaps if len(gaps) <= 2 * _GAPS_TRIED else gaps[:_GAPS_TRIED] + gaps[-_GAPS_TRIED:]
    hits_by_name = (
        _partitions_of(text[: gap.start()], text[gap.end() :]) for gap in reversed(tried)
    )
    return next(filter(None, hits_by_name), [])


def _partitions_of(name: str, key: str) -> list[Hit]:
    rows = Asset.objects.filter(name__icontains=name, active=True)
    most = min(MOST_HITS, max(_MOST_ITEMS // len(_ITEM_ENDS.split(key)), 1))
    hits = []
    for row in rows.select_related("partition_definition").order_by("name")[:most]:
        chosen = _selected(row.definition, key) if row.definition else None
        if chosen:
            hits.append(_partitions_hit(row.name, chosen))
    return hits


def _selected(definition: PartitionDefinition, text: str) -> PartitionSet | None:
    """Return the partitions that a text selects, if any."""
    hour = _HOUR.fullmatch(text)
    for candidate in (f"{hour[1]}:00", f"{hour[1]}:00Z") if hour else (text,):
        try:
            return definition.select(candidate)
        except ValueError:
            continue
    return None


def _partitions_hit(name: str, chosen: PartitionSet) -> Hit:
    # Windows of excluded partitions count.
    most = sum((stop - first) * len(segments) for first, stop, segments in chosen.window_ranges)
    windows = chosen.space.windows
    is_counted = most <= _MOST_COUNTED or windows is None or not windows.has_exclusions
    if is_counted and len(chosen) == 1:
        (key,) = chosen
        return Hit(f"{name} {label_of_key(key)}", partition_url(name, key.text))
    address = reverse("assets:asset", args=[name])
    query = urlencode({"selection": chosen.text})
    number = f"{len(chosen):,}" if is_counted else f"at most {most:,}"
    return Hit(f"{name} {chosen.text[:80]}", f"{address}?{query}", f"{number} partitions")


def _runs(text: str) -> list[Hit]:
    number = text.lower().removeprefix("run").strip(" #")
    if not is_id(number):
        return []
    rows = Run.objects.listed().filter(pk=int(number))
    return [
        Hit(
            f"Run {row.pk}",
            reverse("assets:run", args=[row.pk]),
            f"{row.asset.name} {row.selection[:80]}",
            row.state,
        )
        for row in rows
    ]


def _backfills(text: str) -> list[Hit]:
    words = Q(name__icontains=text) | Q(description__icontains=text)
    rows = Backfill.objects.filter(words, deleted=False).order_by("-id")[:MOST_HITS]
    return [
        Hit(
            row.name,
            reverse("backfills:backfill", args=[row.pk]),
            row.description[:80],
            row.state,
        )
        for row in rows
    ]


def _bundles(text: str) -> list[Hit]:
    rows = Bundle.objects.filter(name__icontains=text).order_by("name")[:MOST_HITS]
    return [Hit(row.name, reverse("assets:bundles")) for row in rows]


def _owners_and_tags(text: str) -> list[Hit]:
    """Return the owners and the tags with a text, which lead to their assets."""
    facts = offered_facts(Asset.objects.filter(active=True), text)
    assets = reverse("assets:assets")
    return [
        Hit(value, f"{assets}?{urlencode({fact: value})}", f"{fact}: list of assets")
        for fact in ("owner", "tag")
        for value in facts[fact]
    ][:MOST_HITS]
