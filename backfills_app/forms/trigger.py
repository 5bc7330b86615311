"""The form for a new backfill. The services decide which values are valid, as for API and command
line.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from uuid import uuid4

from django import forms
from django.http import QueryDict

from accounts_app.models import User
from assets_app.models import Asset
from assets_app.queries.clock import database_now
from backfills_app.forms.choice import (
    MOST_BOXES,
    WAYS,
    Choice,
    NamesField,
    choice_in,
    offered_to,
)
from backfills_app.forms.dates import Dates, dates_of
from backfills_app.forms.following import (
    Segments,
    followers_of,
    segments_of,
    versions_of,
)
from backfills_app.forms.params import (
    PREFIX,
    declared_params,
    param_fields,
    shown_params,
    typed_params,
)
from backfills_app.forms.period import SEGMENT, SegmentsField, TypedPeriod, request_fields
from backfills_app.forms.presets import preset_ends
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services import BackfillRequest, request_from_text
from partitions_app.rules import has_time
from slicewise_server.web.forms import ParamsField, ServiceForm
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import read_json_object

AT_MOST = "n"
CHOSEN = "chosen"
_NEWEST = ("", "Latest")
_FIRST_AND_LAST = "Date or partition key, inclusive."
_STRATEGIES = (
    ("", "Default"),
    ("partition", "One run per partition"),
    (AT_MOST, "Batches"),
    ("range", "Single run"),
)
_DOWNSTREAM = (
    ("none", "None (become stale)"),
    ("all", "All"),
    (CHOSEN, "Selected"),
)


class BackfillForm(ServiceForm):
    """The form for a new backfill: the assets, the period, and the settings.

    Fields that depend on the asset are made for the chosen asset. Values that were typed for
    another asset, before the choice changed, are not read: ``shown_for`` tells the choice for which
    the fields were shown.
    """

    by = forms.ChoiceField(
        required=False, choices=WAYS, initial="asset", widget=forms.RadioSelect, label="Backfill"
    )
    asset = forms.CharField(
        required=False,
        label="Asset",
        widget=forms.TextInput(
            attrs={"list": "asset-options", "placeholder": "Search by name or group"}
        ),
    )
    assets = NamesField(required=False, label="Assets", widget=forms.CheckboxSelectMultiple)
    asset_group = forms.CharField(required=False, label="Group", widget=forms.Select)
    asset_tag = forms.CharField(required=False, label="Tag", widget=forms.Select)
    upstream = forms.BooleanField(required=False, label="Include upstream")
    shown_for = forms.CharField(required=False, widget=forms.HiddenInput)
    start = forms.CharField(required=False, label="From", help_text=_FIRST_AND_LAST)
    end = forms.CharField(required=False, label="To", help_text="Inclusive; no future dates.")
    selection = forms.CharField(
        required=False,
        label="Partition selection",
        help_text="Instead of From and To, for example 2013-01,2013-03..2013-05.",
    )
    existing = forms.ChoiceField(
        choices=ExistingPolicy.choices,
        initial=ExistingPolicy.MISSING_AND_FAILED,
        label="Partitions to run",
        help_text="Canceled and skipped partitions count as missing.",
        widget=forms.RadioSelect,
    )
    token = forms.CharField(required=False, widget=forms.HiddenInput)
    strategy = forms.ChoiceField(required=False, choices=_STRATEGIES, label="Run granularity")
    per_run = forms.CharField(
        required=False, label="Batch size", help_text="Partitions per run, only for batches."
    )
    order = forms.ChoiceField(
        required=False, choices=BackfillOrder.choices, initial=BackfillOrder.OLDEST, label="Order"
    )
    max_active_runs = forms.CharField(
        initial="3", label="Max active runs", help_text="Runs of this backfill at the same time."
    )
    downstream = forms.ChoiceField(
        required=False,
        choices=_DOWNSTREAM,
        initial="none",
        widget=forms.RadioSelect,
        label="Include downstream",
    )
    downstream_assets = forms.MultipleChoiceField(
        required=False, choices=(), widget=forms.CheckboxSelectMultiple, label="Selected assets"
    )
    description = forms.CharField(
        required=False, label="Description", help_text="Optional. The reason for this backfill."
    )
    params = ParamsField(
        required=False,
        label="Params",
        help_text="JSON object; empty for defaults.",
    )
    code_version = forms.CharField(
        required=False,
        widget=forms.Select(choices=(_NEWEST,)),
        label="Code version",
        help_text="Same version for all assets.",
    )
    start_at = forms.CharField(
        required=False,
        label="Start at",
        help_text="Optional. Earliest start of a run, for example 2026-01-31 22:00, in the time"
        " zone of the asset unless given.",
    )
    allow_holes = forms.BooleanField(required=False, label="Allow runs with holes")

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        initial_values = dict(initial or {})
        self.user = user
        self.choice: Choice = choice_in(initial_values if data is None else data)
        self.assets_chosen = [
            asset for asset in self.choice.assets if self.choice.by != "asset" or _is_timed(asset)
        ]
        is_single_asset = self.choice.by == "asset" and bool(self.assets_chosen)
        # Only a single asset has fields for params and segments.
        self.asset_chosen = self.assets_chosen[0] if is_single_asset else None
        self.declared = declared_params(self.asset_chosen, user)
        given_params = _readable_params((initial_values if data is None else data).get("params"))
        shown_for = self.choice.text
        dependent = shown_params(self.declared, given_params) | {"shown_for": shown_for}
        if data is not None and data.get("shown_for") != shown_for:
            data = _for_another_asset(data, dependent)
        typed_params_of_link = {
            name: value for name, value in initial_values.items() if name.startswith(PREFIX)
        }
        super().__init__(
            data,
            initial={"token": uuid4().hex}
            | initial_values
            | dependent
            | typed_params_of_link
            | self._chosen_initially(),
        )

    def add_fields(self) -> None:
        """Add the fields of the asset, and the choices that the asset allows."""
        asset = self.asset_chosen
        self._offer_assets()
        self.param_names = []
        for name, field in param_fields(self.declared):
            self.fields[name] = field
            self.param_names.append(name)
        self.segments: list[Segments] = segments_of(asset.definition) if asset else []
        for dimension in self.segments:
            self.fields[SEGMENT + dimension.name] = _segments_field(dimension, asset)
        chosen = self.assets_chosen
        self.followers: list[Asset] = followers_of(chosen) if chosen else []
        names = [(follower.name, follower.name) for follower in self.followers]
        self.fields["downstream_assets"].choices = names  # type: ignore[attr-defined]
        versions = versions_of(asset) if asset else []
        labeled_digests = [
            (digest, f"{digest} of {created_at:%Y-%m-%d %H:%M} UTC")
            for digest, created_at in versions
        ]
        self._choose("code_version", [_NEWEST, *labeled_digests])
        self.fields["code_version"].widget.attrs |= {"data-times": "options"}
        example = self.dates.last or "2013-01-01"
        for name in ("start", "end"):
            self.fields[name].widget.attrs |= {"placeholder": example}
        for name in ("max_active_runs", "per_run"):
            self.fields[name].widget.attrs["inputmode"] = "numeric"
        self.fields["params"].widget.attrs |= {"rows": 2, "placeholder": "{}"}

    def _chosen_initially(self) -> dict[str, Any]:
        return {"by": self.choice.by, "assets": self._names_chosen}

    def _offer_assets(self) -> None:
        self.offered = offered = offered_to(self.user)
        self.offers_assets = bool(offered.names)
        for name, first, texts in (
            ("asset_group", "Select a group", offered.groups),
            ("asset_tag", "Select a tag", offered.tags),
        ):
            self._choose(name, [("", first), *((text, text) for text in texts)])
        names = list(dict.fromkeys([*offered.names, *self._names_chosen]))
        self.are_boxes = len(names) <= MOST_BOXES
        field = self.fields["assets"]
        if self.are_boxes:
            field.widget.choices = [(name, name) for name in names]
        else:
            field.widget = forms.TextInput(attrs={"list": "assets-options"})
            field.help_text = "Asset names, separated by commas."
            self.initial["assets"] = ", ".join(self._names_chosen)

    @property
    def _names_chosen(self) -> list[str]:
        return self.choice.value if isinstance(self.choice.value, list) else []

    def _choose(self, name: str, choices: list[tuple[str, str]]) -> None:
        """Offer the choices and the present value, which the service refuses if the
        value is wrong.
        """
        present = str(self.data.get(name, "") if self.is_bound else self.initial.get(name) or "")
        if present and present not in dict(choices):
            choices = [*choices, (present, present)]
        self.fields[name].widget.choices = choices

    @property
    def param_fields(self) -> list[forms.BoundField]:
        """The fields of the declared params."""
        return [self[name] for name in self.param_names]

    @property
    def segment_fields(self) -> list[forms.BoundField]:
        """The fields of the dimensions without time."""
        return [self[SEGMENT + dimension.name] for dimension in self.segments]

    @property
    def timed(self) -> Asset | None:
        """The first of the chosen assets that has time."""
        return next(filter(_is_timed, self.assets_chosen), None)

    @property
    def zone(self) -> str:
        """The zone in which dates are read; empty until one asset is chosen."""
        definition = self.asset_chosen.definition if self.asset_chosen else None
        time = definition.time_dimension if definition else None
        return time.timezone if time else ""

    @cached_property
    def dates(self) -> Dates:
        """The dates of the asset's partitions, for the date picker."""
        timed = self.timed
        return dates_of(timed, database_now()) if timed else Dates()

    @property
    def opened(self) -> bool:
        """Whether a field of the section that is folded at first has a value or an error."""
        names = ("code_version", "start_at", "allow_holes", "description")
        return any(self[name].value() or self[name].errors for name in names)

    @property
    def is_begun(self) -> bool:
        """Whether enough is filled in for a preview or an error."""
        typed = any(self.data.get(name) for name in ("start", "end", "selection"))
        return bool(self.choice.value) and typed

    def refuse_once(self, refusal: InvalidRequest) -> None:
        """Show the errors of a refusal, without errors that fields have shown already."""
        shown_errors = {name: set(map(str, messages)) for name, messages in self.errors.items()}
        new_errors = {
            name: [message for message in messages if message not in shown_errors.get(name, ())]
            for name, messages in refusal.errors.items()
        }
        self.refuse(
            InvalidRequest({name: messages for name, messages in new_errors.items() if messages})
        )

    def with_preset(self, preset: str) -> "BackfillForm":
        """Return the form with the ends of a preset filled in; errors are shown at the fields."""
        assert isinstance(self.data, QueryDict)  # noqa: S101  (a preset is sent with the form)
        data = self.data.copy()
        data["selection"] = ""
        try:
            if self.timed is None:
                raise InvalidRequest({self.choice.by: "Select an asset first."})
            data["start"], data["end"] = preset_ends(self.timed, preset, database_now())
        except InvalidRequest as refusal:
            self.refuse(refusal)
            return self
        return BackfillForm(data, user=self.user)

    def request(self) -> BackfillRequest:
        """Return the typed values as a request; raise InvalidRequest for unreadable values."""
        if not self.is_valid():
            raise InvalidRequest(
                {
                    field: [str(message) for message in messages]
                    for field, messages in self.errors.items()
                }
            )
        typed = self.cleaned_data
        by = self.choice.by
        if not self.choice.value:
            raise InvalidRequest({by: "Select an asset." if by == "asset" else "Select one first."})
        return request_from_text(
            **{by: self.choice.value},
            **self._period(typed),
            upstream=typed["upstream"],
            description=typed["description"],
            max_active_runs=typed["max_active_runs"],
            strategy=_strategy(typed),
            existing=typed["existing"],
            order=typed["order"] or BackfillOrder.OLDEST,
            params={**typed["params"], **typed_params(self.declared, typed)},
            downstream=_downstream(typed),
            code_version=typed["code_version"],
            start_at=typed["start_at"].strip().replace(" ", "T"),
            allow_holes=typed["allow_holes"],
        )

    def _period(self, typed: dict[str, Any]) -> dict[str, str]:
        """Return the fields of the request that name the partitions."""
        segments = {dimension.name: typed[SEGMENT + dimension.name] for dimension in self.segments}
        start, end, selection = (typed[name].strip() for name in ("start", "end", "selection"))
        definition = self.asset_chosen.definition if self.asset_chosen else None
        return request_fields(definition, TypedPeriod(start, end, selection, segments))


def _segments_field(dimension: Segments, asset: Asset | None) -> forms.Field:
    """Return boxes for a few segments, or a text field with suggestions for many."""
    field = SegmentsField(required=False, label=dimension.name)
    if dimension.choices:
        field.widget = forms.CheckboxSelectMultiple(choices=dimension.choices)
        return field
    field.help_text = dimension.hint
    field.widget = forms.TextInput(attrs={"list": f"options-{dimension.name}"})
    return field


def _is_timed(asset: Asset) -> bool:
    return has_time(asset.definition)


def _readable_params(params: object) -> dict[str, Any]:
    """Return the params of a link, or typed as JSON; empty where unreadable."""
    if isinstance(params, Mapping):
        return dict(params)
    try:
        return read_json_object(params) if isinstance(params, str) and params.strip() else {}
    except ValueError:
        return {}


def _for_another_asset(data: QueryDict, dependent: Mapping[str, Any]) -> QueryDict:
    """Return the typed values, without values typed for the asset that was chosen before.

    Segments stay: another asset often has the same dimension, and ignores the others.
    """
    remaining = data.copy()
    for name in data:
        if name.startswith(PREFIX) or name in ("downstream_assets", "code_version"):
            del remaining[name]
    if remaining.get("downstream") != "all":
        remaining["downstream"] = "none"
    for name, value in dependent.items():
        remaining[name] = value
    return remaining


def _strategy(typed: dict[str, Any]) -> str | None:
    if typed["strategy"] != AT_MOST:
        return typed["strategy"] or None
    if not typed["per_run"].strip().isdecimal():
        raise InvalidRequest({"per_run": "Enter the batch size."})
    return str(typed["per_run"]).strip()


def _downstream(typed: dict[str, Any]) -> str | list[str]:
    if typed["downstream"] != CHOSEN:
        return typed["downstream"] or "none"
    if not typed["downstream_assets"]:
        raise InvalidRequest({"downstream_assets": "Select at least one downstream asset."})
    return list(typed["downstream_assets"])
