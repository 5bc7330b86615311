"""Django apps for the command line: tables only, without pages and migrations."""

from __future__ import annotations

from django.apps import AppConfig


class Auth(AppConfig):
    name = "django.contrib.auth"
    default_auto_field = "django.db.models.AutoField"


class ContentTypes(AppConfig):
    name = "django.contrib.contenttypes"
    default_auto_field = "django.db.models.AutoField"
