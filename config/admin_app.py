"""Django's admin with a site of our own: whoever has the role admin opens it."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class Admin(AdminConfig):
    default_site = "accounts_app.admin_site.SlicewiseAdminSite"
