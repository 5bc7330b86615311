"""Preparation of the database: tables, the first account, the declared assets.

`python -m slicewise_server.stack.prepare` runs once, before web, beat and workers; a second run
changes nothing.
"""

from __future__ import annotations

import logging
import os

import django
from django.core.checks import Tags
from django.core.management import call_command

from slicewise_server.lineage.checks import TAG as LINEAGE_CHECKS

log = logging.getLogger(__name__)


def main() -> None:
    """Prepare the database that the settings name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    django.setup()
    # Without a receiver, the events of runs would be printed, and lost.
    call_command("check", tags=[LINEAGE_CHECKS])
    migrate()
    make_first_account()
    try:
        call_command("sync")
    except Exception:  # the pages must start and show any error; beat tries again
        log.exception("a bundle could not be synced")


def migrate() -> None:
    """Migrate the tables to this version; refuse a database that this version cannot migrate."""
    # Django checks nothing before a command that is called by code.
    call_command("check", databases=["default"], tags=[Tags.database])
    call_command("migrate", interactive=False, verbosity=1)


def make_first_account() -> None:
    """Create the account of DJANGO_SUPERUSER_USERNAME and _PASSWORD, if no account exists."""
    from django.contrib.auth import get_user_model

    if "DJANGO_SUPERUSER_PASSWORD" in os.environ and not get_user_model().objects.exists():
        call_command("createsuperuser", interactive=False, email="admin@localhost")


if __name__ == "__main__":
    main()
