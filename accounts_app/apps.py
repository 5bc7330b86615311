from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts_app"
    verbose_name = "Accounts"

    def ready(self) -> None:
        post_migrate.connect(create_roles, sender=self, dispatch_uid="accounts_app.create_roles")
        import_module("accounts_app.receivers")


def create_roles(*, using: str, **_: Any) -> None:
    """Make the groups that stand for roles: people can be put into them from the first start."""
    from django.contrib.auth.models import Group

    from accounts_app.policy import Role

    for role in Role:
        Group.objects.using(using).get_or_create(name=role.value)
