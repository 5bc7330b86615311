"""The trigger form. What is right or wrong is said by the services, here as at every door."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from accounts_app.errors import InvalidRequest
from assets_app.forms import ParamsField, ServiceForm
from assets_app.models import Asset
from backfills_app.models import ExistingPolicy
from backfills_app.services import BackfillRequest, request_from_text

_FIRST_AND_LAST = "A date, or the key of a partition. Both ends are made."


class AssetSelect(forms.Select):
    """Assets by name; each knows its first and last partition, for the presets, and its zone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spans: dict[str, dict[str, str]] = {}

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """With what a script needs to fill in dates."""
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        option["attrs"] |= self.spans.get(str(value), {})
        return option


class BackfillForm(ServiceForm):
    """What to make again or for the first time, from when to when, and how."""

    asset = forms.CharField(widget=AssetSelect, label="Asset")
    start = forms.CharField(label="First partition", help_text=_FIRST_AND_LAST)
    end = forms.CharField(label="Last partition", help_text="It has to be over.")
    description = forms.CharField(
        required=False, label="Description", help_text="Why, for whoever looks at this later."
    )
    max_active_runs = forms.CharField(
        initial="3", label="Max active runs", help_text="How many run at once, at most."
    )
    strategy = forms.CharField(
        required=False,
        label="Runs",
        help_text="partition: a run for each; range: one for all; a number: at most so many in one."
        " Empty: as the asset says.",
    )
    existing = forms.ChoiceField(
        choices=ExistingPolicy.choices,
        initial=ExistingPolicy.MISSING_AND_FAILED,
        label="Which of them",
    )
    params = ParamsField(
        required=False,
        label="Params",
        help_text="A JSON object; empty: as the asset declares them.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        select = self.fields["asset"].widget
        assert isinstance(select, AssetSelect)  # noqa: S101
        offered = _offered(timezone.now())
        select.choices = [("", "Choose an asset"), *((name, name) for name in offered)]
        select.spans = offered
        for name in ("start", "end"):
            self.fields[name].widget.attrs |= {"placeholder": "2013-01-01"}
        self.fields["max_active_runs"].widget.attrs["inputmode"] = "numeric"
        self.fields["strategy"].widget.attrs |= {"list": "strategies", "placeholder": "partition"}
        self.fields["params"].widget.attrs |= {"rows": 2, "placeholder": "{}"}

    def request(self) -> BackfillRequest:
        """What was typed, as a request; raises InvalidRequest for what cannot be read."""
        if not self.is_valid():
            raise InvalidRequest(
                {field: [str(said) for said in found] for field, found in self.errors.items()}
            )
        typed = self.cleaned_data
        return request_from_text(
            typed["asset"],
            typed["start"],
            typed["end"],
            description=typed["description"],
            max_active_runs=typed["max_active_runs"],
            strategy=typed["strategy"].strip() or None,
            existing=typed["existing"],
            params=typed["params"] or {},
        )


def _offered(now: datetime) -> dict[str, dict[str, str]]:
    """Assets that have a past to fill, with attributes for their options."""
    rows = Asset.objects.declared().filter(producer__current_version__isnull=False)
    offered: dict[str, dict[str, str]] = {}
    for asset in rows.order_by("name"):
        rule = None if asset.definition is None else asset.definition.time_dimension
        if rule is not None:
            offered[asset.name] = {"data-zone": rule.timezone, **_span(rule, now)}
    return offered


def _span(rule: Any, now: datetime) -> dict[str, str]:
    if rule.start is None:
        return {}
    windows = rule.windows(until=now)
    if not len(windows):
        return {}
    return {
        "data-first": str(windows[0].local_start.date()),
        "data-last": str(windows[-1].local_start.date()),
    }
