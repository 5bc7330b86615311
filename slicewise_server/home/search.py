"""The search of everything: assets, partitions, runs, backfills and bundles, each list bounded."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from assets_app.models import Asset, AssetPartition, Bundle, Run
from assets_app.queries.keys import still_known
from backfills_app.models import Backfill
from partitions_app.labels import label_of_key
from partitions_app.templatetags.slicewise_pages import partition_url
from slicewise_server.web.storable import is_storable
from slicewise_server.web.typed_ids import is_id

_MOST = 10
_KEYS_TRIED = 20
_LONGEST = 300


class Hit(NamedTuple):
    """A result: the text of the link, the address, and further words."""

    label: str
    url: str
    note: str = ""


class Section(NamedTuple):
    """The results of one kind, and the address of the list with all of these."""

    title: str
    hits: list[Hit]
    all_url: str = ""


@login_required
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Show the rows that match the words of the address, by kind."""
    text = request.GET.get("q", "").strip()[:_LONGEST]
    sections = sections_of(text) if text and is_storable(text) else []
    sections = [section for section in sections if section.hits]
    context = {"q": text, "sections": sections, "hint": _hint() if text and not sections else ""}
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
    """Return the results for a text by kind: at most six statements."""
    assets, backfills = reverse("assets:assets"), reverse("backfills:backfills")
    query = urlencode({"q": text})
    return [
        Section("Partitions", _partitions(text)),
        Section("Runs", _runs(text)),
        Section("Assets", _assets(text), f"{assets}?{query}"),
        Section("Backfills", _backfills(text), f"{backfills}?{query}"),
        Section("Bundles", _bundles(text)),
    ]


def _assets(text: str) -> list[Hit]:
    words = Q(name__icontains=text) | Q(group__icontains=text) | Q(description__icontains=text)
    rows = Asset.objects.filter(words, active=True).order_by("name")[:_MOST]
    return [
        Hit(row.name, reverse("assets:asset", args=[row.name]), row.group or row.description[:80])
        for row in rows
    ]


def _partitions(text: str) -> list[Hit]:
    """Return the partition that ``asset key`` names, for each asset of a matching name."""
    name, _, key = text.partition(" ")
    if not key.strip():
        return []
    rows = Asset.objects.filter(name__icontains=name, active=True)
    hits = []
    for row in rows.select_related("partition_definition").order_by("name")[:_MOST]:
        try:
            parsed = row.definition.parse(key.strip()) if row.definition else None
        except ValueError:
            continue
        if parsed is not None:
            label = f"{row.name} {label_of_key(parsed)}"
            hits.append(Hit(label, partition_url(row.name, parsed.text)))
    return hits


def _runs(text: str) -> list[Hit]:
    number = text.removeprefix("run").strip(" #")
    if not is_id(number):
        return []
    rows = Run.objects.listed().filter(pk=int(number))
    return [
        Hit(
            f"Run {row.pk}",
            reverse("assets:run", args=[row.pk]),
            f"{row.asset.name} {row.selection[:80]}, {row.get_state_display().lower()}",
        )
        for row in rows
    ]


def _backfills(text: str) -> list[Hit]:
    words = Q(name__icontains=text) | Q(description__icontains=text)
    rows = Backfill.objects.filter(words, deleted=False).order_by("-id")[:_MOST]
    return [
        Hit(row.name, reverse("backfills:backfill", args=[row.pk]), _backfill_note(row))
        for row in rows
    ]


def _backfill_note(row: Any) -> str:
    return ", ".join(filter(None, [row.get_state_display().lower(), row.description[:80]]))


def _bundles(text: str) -> list[Hit]:
    rows = Bundle.objects.filter(name__icontains=text).order_by("name")[:_MOST]
    return [Hit(row.name, reverse("assets:bundles")) for row in rows]
