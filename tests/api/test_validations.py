"""Validations in the answers of the API."""

from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, RunAttempt, ValidationResult

pytestmark = pytest.mark.django_db


def test_a_run_tells_what_its_validations_saw(api: APIClient, olga: User, carriers: Asset) -> None:
    run = materialize(MaterializeRequest(asset=carriers), user=olga).runs.get()
    assert api.get(f"/api/v1/runs/{run.pk}/").json()["validations"] == []
    now = timezone.now()
    for number in (1, 2):
        attempt = RunAttempt.objects.create(
            run=run, number=number, token=uuid4(), started_at=now, ended_at=now,
            outcome="failed",
        )  # fmt: skip
        ValidationResult.objects.create(
            attempt=attempt, position=0, asset=carriers, when="outlet", name="row_count",
            description="The data has at least 2 rows.", severity="error", passed=False,
            evaluated=True, message="The data has 1 row.", observed={"rows": number},
        )  # fmt: skip
    last, first = api.get(f"/api/v1/runs/{run.pk}/").json()["validations"]
    assert last == {
        "attempt": 2,
        "when": "outlet",
        "asset": "carriers",
        "name": "row_count",
        "description": "The data has at least 2 rows.",
        "severity": "error",
        "passed": False,
        "evaluated": True,
        "message": "The data has 1 row.",
        "observed": {"rows": 2},
    }
    assert first["attempt"] == 1
