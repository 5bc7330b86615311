"""Receivers of signals, which keep the declared rules in the transaction of the sender."""

from typing import Any

from django.dispatch import receiver

from assets_app.signals import bundle_synced
from slicewise_server.alerts.declared_rules import store_declared_rules


@receiver(bundle_synced)
def receive_bundle(**_: Any) -> None:
    store_declared_rules()
