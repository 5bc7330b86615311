"""Django's admin with Slicewise's own site, which the role admin opens."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class Admin(AdminConfig):
    default_site = "accounts_app.admin_site.SlicewiseAdminSite"
