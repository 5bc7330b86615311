"""Errors of several fields of one request, reported at once."""

import pytest

from slicewise_server.web.request_errors import ConflictingRequest, FieldErrors, InvalidRequest


def test_errors_of_several_blocks_are_collected_field_by_field() -> None:
    errors = FieldErrors()
    with errors:
        raise InvalidRequest({"end": "No such day.", "start": "Name a day."})
    with errors:
        raise ConflictingRequest({"end": "The end is before the start."})
    errors.add("order", "Oldest or newest.")
    assert errors.messages == {
        "end": ["No such day.", "The end is before the start."],
        "start": ["Name a day."],
        "order": ["Oldest or newest."],
    }


def test_a_block_without_error_adds_nothing_and_other_errors_pass() -> None:
    errors = FieldErrors()
    with errors:
        pass
    with pytest.raises(KeyError), errors:
        raise KeyError("name")
    assert errors.messages == {}
