"""The names that separate the data of one attempt from the data of any other attempt."""

from uuid import uuid4

from assets_app.models import RunAttempt


def test_attempts_of_two_databases_have_names_of_their_own_and_keep_them() -> None:
    first = RunAttempt(run_id=1, number=1, token=uuid4(), spark_session_id=uuid4())
    second = RunAttempt(run_id=1, number=1, token=uuid4(), spark_session_id=uuid4())
    assert first.name_on_disk != second.name_on_disk
    before = first.name_on_disk
    first.token = uuid4()  # as when another worker finishes its publication
    assert first.name_on_disk == before
