"""Forms on the pages of assets. Services validate the values."""

import json
from typing import Any

from django import forms

from slicewise_server.web.forms import ParamsField, ServiceForm

_SELECTION_HELP = "A key, a range from..to (inclusive), a month or a year; separate with commas."


class MaterializeForm(ServiceForm):
    """The partitions to materialize now, with strategy and params."""

    selection = forms.CharField(
        required=False,
        label="Partitions",
        help_text=_SELECTION_HELP,
    )
    strategy = forms.CharField(
        required=False,
        label="Run granularity",
        help_text="partition: one run per partition; range: single run; a number: up to that many"
        " partitions per run. Empty: default of the asset.",
    )
    params = ParamsField(required=False, label="Params", help_text="JSON object.")

    def __init__(
        self, *args: Any, partitioned: bool, params: dict[str, Any], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["params"].widget.attrs["rows"] = 4
        if not partitioned:
            del self.fields["selection"]
            del self.fields["strategy"]
        if not params:
            del self.fields["params"]
        elif not self.is_bound:
            self.initial["params"] = json.dumps(params, indent=2)


class ReportWriteForm(ServiceForm):
    """The partitions that another program has written, with row count, size and metadata."""

    selection = forms.CharField(
        required=False,
        label="Partitions",
        help_text=_SELECTION_HELP,
    )
    rows = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        label="Row count",
        help_text="Optional, single partition only.",
    )
    bytes = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        label="Size in bytes",
        help_text="Optional, single partition only.",
    )
    metadata = ParamsField(
        required=False, label="Metadata", help_text="JSON object, kept with the record."
    )

    def __init__(self, *args: Any, partitioned: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["metadata"].widget.attrs["rows"] = 3
        if not partitioned:
            del self.fields["selection"]
