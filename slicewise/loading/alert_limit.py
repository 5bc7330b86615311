"""The limit on different alerts of a bundle."""

from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.registry import Registry

MOST_ALERTS = 1_000
"""The number of different alerts in a bundle."""


def excess_alerts(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for the first declaration of each file with an alert beyond the most: a
    server has a rule for each different alert.
    """
    alerts: set[str] = set()
    errors: dict[str, AssetDefinitionError] = {}
    for producer in registry.producers():
        new_alerts = {repr(alert) for alert in producer.production.alerts} - alerts
        if len(alerts) + len(new_alerts) <= MOST_ALERTS:
            alerts |= new_alerts
        elif producer.site.file not in errors:
            errors[producer.site.file] = producer.refused(
                f"alerts has an alert that would be number {MOST_ALERTS + 1:,} of the bundle, and"
                f" a bundle has at most {MOST_ALERTS:,} different alerts: assets share an Alert"
                " with the same kinds, channel and time"
            )
    return list(errors.values())
