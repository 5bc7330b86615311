"""Celery tasks that keep the catalogue in step with the bundles."""

from celery import shared_task

from assets_app.catalogue import services


@shared_task(name="assets_app.catalogue.tasks.sync_bundles")
def sync_bundles() -> None:
    """Sync every configured bundle."""
    services.sync_bundles()
