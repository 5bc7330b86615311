from importlib import import_module
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import post_migrate, pre_save


class AccountsConfig(AppConfig):
    name = "accounts_app"
    verbose_name = "Accounts"

    def ready(self) -> None:
        post_migrate.connect(create_roles, sender=self, dispatch_uid="accounts_app.create_roles")
        # The commands of Slicewise migrate nothing, and import no code of migrations.
        if not settings.IS_COMMAND:
            import_module("accounts_app.migration_checks")
        receivers = import_module("accounts_app.receivers")
        # The command line loads no axes, and signs no user in.
        if apps.is_installed("axes"):
            pre_save.connect(
                receivers.keep_no_form_data,
                sender="axes.AccessAttempt",
                dispatch_uid="accounts_app.keep_no_form_data",
            )


def create_roles(*, using: str, **_: Any) -> None:
    """Create the groups of the roles, so that people have roles to join from the first start."""
    from django.contrib.auth.models import Group

    from accounts_app.policy import Role

    for role in Role:
        Group.objects.using(using).get_or_create(name=role.value)
