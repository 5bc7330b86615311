"""What is wrong with one asset keeps no other from being made."""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.db import InterfaceError, OperationalError, transaction

from assets_app.models import Asset

log = structlog.get_logger(__name__)


@contextmanager
def apart(asset: Asset) -> Iterator[None]:
    """A savepoint for what is done about an asset: an error in it is undone and logged, and the
    caller goes on with the next one.

    What is wrong with the database is nothing about the asset, and passes: the caller is to fail,
    so that all is looked at once more.
    """
    try:
        with transaction.atomic():
            yield
    except (InterfaceError, OperationalError):
        raise
    except Exception:
        log.exception("an asset could not be judged", asset=asset.name)
