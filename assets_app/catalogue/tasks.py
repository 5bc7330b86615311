"""Keeps the catalogue in step without anybody asking."""

from celery import shared_task

from assets_app.catalogue import services


@shared_task(name="assets_app.catalogue.tasks.sync_bundles")
def sync_bundles() -> None:
    """Look at every configured bundle."""
    services.sync_bundles()
