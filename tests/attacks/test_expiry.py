"""Expired rows are deleted: strangers fill no table for good."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone
from knox.models import AuthToken

from accounts_app.models import IdempotentRequest, User
from accounts_app.policy import Role
from accounts_app.services import expiry
from accounts_app.services.sign_in_limits import KNOWN_FOR
from accounts_app.tasks import delete_expired
from tests import factories

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def vera() -> User:
    return factories.person("vera", Role.VIEWER)


def session(key: str, remaining: timedelta) -> None:
    Session.objects.create(session_key=key, session_data="", expire_date=timezone.now() + remaining)


def log(name: str, age: timedelta) -> None:
    row = AccessLog.objects.create(username=name)
    AccessLog.objects.filter(pk=row.pk).update(attempt_time=timezone.now() - age)


def answer(key: str, user: User, age: timedelta) -> None:
    row = IdempotentRequest.objects.create(user=user, key=key, fingerprint="")
    IdempotentRequest.objects.filter(pk=row.pk).update(created_at=timezone.now() - age)


def test_only_expired_rows_are_deleted(vera: User) -> None:
    session("old", -HOUR)
    session("new", HOUR)
    AuthToken.objects.create(user=vera, expiry=-HOUR)
    AuthToken.objects.create(user=vera, expiry=HOUR)
    AuthToken.objects.create(user=vera, expiry=None)
    log("old", KNOWN_FOR + HOUR)
    log("new", KNOWN_FOR - HOUR)
    answer("old", vera, IdempotentRequest.KEPT_FOR + HOUR)
    answer("new", vera, IdempotentRequest.KEPT_FOR - HOUR)
    delete_expired()
    assert [row.key for row in IdempotentRequest.objects.all()] == ["new"]
    assert [row.session_key for row in Session.objects.all()] == ["new"]
    assert [row.username for row in AccessLog.objects.all()] == ["new"]
    assert AuthToken.objects.count() == 2
    assert not AuthToken.objects.filter(expiry__lt=timezone.now()).exists()


def test_one_call_deletes_a_bounded_number_and_the_next_goes_on(
    monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(expiry, "_ROWS_PER_STEP", 2)
    monkeypatch.setattr(expiry, "_MAX_STEPS", 2)
    for n in range(5):
        session(f"old{n}", -HOUR)
    with django_assert_max_num_queries(7):
        delete_expired()
    assert Session.objects.count() == 1
    delete_expired()
    assert not Session.objects.exists()


def test_beat_asks_for_it_hourly_where_it_keeps_no_tick_waiting() -> None:
    entry = settings.CELERY_BEAT_SCHEDULE["delete expired sessions"]
    assert entry["task"] == delete_expired.name
    assert (entry["schedule"], entry["options"]) == (3600.0, {"queue": "bulk"})
    assert "accounts_app.tasks" in settings.CELERY_IMPORTS
