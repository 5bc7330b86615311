"""Django's admin with Slicewise's own site, which the role admin opens, and headings that name the
content of foreign tables.
"""

from __future__ import annotations

from axes.apps import AppConfig as AxesConfig
from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class Admin(AdminConfig):
    default_site = "accounts_app.admin_site.SlicewiseAdminSite"


class SignIns(AxesConfig):  # type: ignore[misc]  # axes has no types
    """The attempts to sign in, and the lockouts."""

    verbose_name = "Sign-ins"


class Tokens(AppConfig):
    """The tokens of the REST API."""

    name = "knox"
    verbose_name = "API tokens"
