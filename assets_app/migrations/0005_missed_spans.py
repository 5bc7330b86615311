"""The spans of the last pause of a schedule in which windows are missed."""

from datetime import datetime
from typing import Any

from django.db import migrations, models


def _has_times(term: dict[str, Any]) -> bool:
    kinds = ("cron", "timedelta", "after")
    return term["kind"] in kinds or any(map(_has_times, term.get("of", ())))


def write_spans(apps: Any, schema_editor: Any) -> None:
    """Write the span of each pause on record: from the last tick before, to the end of the pause or
    of the schedule. A schedule without times has missed no window.
    """
    schedules = apps.get_model("assets_app", "Schedule").objects
    rows = schedules.using(schema_editor.connection.alias).filter(
        handled_before_pause__isnull=False
    )
    for row in rows.exclude(rule=None):
        if not _has_times(row.rule["schedule"]):
            continue
        since, until = row.handled_before_pause, row.unpaused_at
        if until is None:
            row.misses_since = since
        else:
            if row.rule.get("end"):
                until = min(until, datetime.fromisoformat(row.rule["end"]))
            row.missed_spans = [[since.isoformat(), until.isoformat()]] if until > since else []
        row.save(update_fields=["misses_since", "missed_spans"])


class Migration(migrations.Migration):
    """Add the columns, and fill the columns in for pauses on record."""

    dependencies = [("assets_app", "0004_worker_names")]
    operations = [
        migrations.AddField(
            model_name="schedule",
            name="misses_since",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="schedule",
            name="missed_spans",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.RunPython(write_spans, migrations.RunPython.noop),
    ]
