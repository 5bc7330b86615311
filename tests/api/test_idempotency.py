"""Idempotency keys when two requests come at once: the second waits and gets the first's answer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from accounts_app.policy import Role
from assets_app.models import RunGroup
from tests import factories
from tests.described_answers import DescribedClient


@pytest.mark.django_db(transaction=True)
def test_requests_at_the_same_moment_with_one_key_make_one_thing() -> None:
    olga = factories.person("olga", Role.OPERATOR)
    factories.asset("raw_flights", factories.DAILY_2013)

    def ask(_: int) -> Any:
        client = DescribedClient(raise_request_exception=False)
        client.force_authenticate(olga)
        try:
            return client.post(
                "/api/v1/assets/raw_flights/materialize/",
                {"selection": "2013-01-01"},
                format="json",
                HTTP_IDEMPOTENCY_KEY="one",
            )
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert [answer.status_code for answer in answers] == [201] * 8
    assert len({answer.json()["group"] for answer in answers}) == 1
    assert RunGroup.objects.count() == 1
