"""Forms of channels and alert rules. Services validate the values."""

from typing import Any

from django import forms

from slicewise_server.alerts.models import (
    VARIABLE_FORM,
    VARIABLE_LENGTH,
    VARIABLE_PATTERN,
    AlertRule,
    Channel,
    ChannelKind,
)
from slicewise_server.alerts.serializers import LONGEST_ADDRESS, MOST_NAMES, NAME_FORM, NAME_PATTERN
from slicewise_server.events.models import EventKind
from slicewise_server.web.forms import ServiceForm
from slicewise_server.web.storable import is_storable

_LONGEST_NAME = 250
_named = forms.RegexField(
    NAME_PATTERN, max_length=100, label="Name", error_messages={"invalid": NAME_FORM}
)


class NamesField(forms.CharField):
    """Names, one on each line."""

    widget = forms.Textarea

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)
        self.widget.attrs["rows"] = 2

    def prepare_value(self, value: Any) -> Any:
        """Return the text for a list of names."""
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Return the list of names, each once."""
        lines = (line.strip() for line in (super().to_python(value) or "").splitlines())
        names = list(dict.fromkeys(line for line in lines if line))
        if len(names) > MOST_NAMES:
            raise forms.ValidationError(f"At most {MOST_NAMES:,} names.")
        if longest := next((name for name in names if len(name) > _LONGEST_NAME), ""):
            raise forms.ValidationError(
                f"{longest[:40]}… is longer than {_LONGEST_NAME} characters."
            )
        # The validator of texts sees a list, in which NUL is spelled in other characters.
        if not all(map(is_storable, names)):
            raise forms.ValidationError("Names may not hold NUL or surrogate characters.")
        return names


class ChannelForm(ServiceForm):
    """The fields of a channel. The current address is not shown."""

    name = _named
    kind = forms.ChoiceField(choices=ChannelKind.choices, label="Type")
    address = forms.CharField(
        required=False,
        max_length=LONGEST_ADDRESS,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Webhook: https://… Message: an Apprise URL, such as"
        " mailtos://user:password@mail.example?to=oncall@example.com. Stored encrypted.",
    )
    variable = forms.RegexField(
        VARIABLE_PATTERN,
        required=False,
        max_length=VARIABLE_LENGTH,
        label="Or environment variable of the bulk worker",
        error_messages={"invalid": VARIABLE_FORM},
        help_text=VARIABLE_FORM,
    )
    active = forms.BooleanField(
        required=False,
        initial=True,
        label="Active",
        help_text="Deliveries of a channel that is not active wait for up to a day after the event,"
        " and are then given up.",
    )

    def __init__(self, *args: Any, channel: Channel | None = None, **kwargs: Any) -> None:
        self._channel = channel
        if channel is not None:
            kwargs["initial"] = {"active": channel.active}
        super().__init__(*args, **kwargs)

    def add_fields(self) -> None:
        """Leave out the fields that cannot change, and those that a new channel does not have."""
        if self._channel is None:
            del self.fields["active"]
            return
        del self.fields["name"], self.fields["kind"]
        self.fields["address"].label = "New address"
        self.fields["address"].help_text += " Leave empty to keep the current address."

    @property
    def address_changes(self) -> dict[str, str]:
        """The address and the variable, if at least one is given; None of both changes nothing."""
        changes = {name: self.cleaned_data[name] for name in ("address", "variable")}
        return changes if any(changes.values()) else {}


class AlertRuleForm(ServiceForm):
    """The fields of an alert rule."""

    name = _named
    channel = forms.ModelChoiceField(Channel.objects.all(), to_field_name="name")
    kinds = forms.MultipleChoiceField(
        choices=EventKind.choices,
        required=False,
        label="Events",
        widget=forms.CheckboxSelectMultiple,
        help_text="Check none for all events. Events of workers and bundles have no asset: a rule"
        " for some assets sends such an event only if the event is checked.",
    )
    assets = NamesField(
        help_text="One name per line. The rule is for assets that at least one of the four lists"
        " names: assets, groups, tags or owners. Leave all four empty for all assets."
    )
    groups = NamesField()
    tags = NamesField()
    owners = NamesField()
    gather_seconds = forms.IntegerField(
        initial=30,
        label="Gather for (seconds)",
        help_text="Events of that time become one message; 0: one message per event. A webhook"
        " gets each event alone.",
    )
    backfill_runs = forms.BooleanField(
        required=False,
        label="Also alert on each run of a backfill",
        help_text="Otherwise the events Backfill failed and Backfill canceled report the failures"
        " at the end of a backfill, and no message reports validation warnings.",
    )
    active = forms.BooleanField(
        required=False,
        initial=True,
        label="Active",
        help_text="A rule that is not active never sends the events of that time. Deliveries of a"
        " channel that is not active wait for up to a day.",
    )

    def __init__(self, *args: Any, alert_rule: AlertRule | None = None, **kwargs: Any) -> None:
        self._alert_rule = alert_rule
        if alert_rule is not None:
            values = {name: getattr(alert_rule, name) for name in self.base_fields}
            kwargs["initial"] = values | {"channel": alert_rule.channel.name}
        super().__init__(*args, **kwargs)

    def add_fields(self) -> None:
        """Leave out the fields that cannot change, and those that a new rule does not have."""
        if self._alert_rule is None:
            absent = {"active"}
        elif self._alert_rule.declared:
            absent = self.fields.keys() - {"active"}
        else:
            # The name is the rule's address.
            absent = {"name"}
        for name in absent:
            del self.fields[name]
