"""Filters that refuse misspelt parameters: no caller mistakes a full list for the answer."""

from collections.abc import Sequence
from typing import Any, cast

import django_filters
from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from django_filters.utils import translate_validation
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework.request import Request
from rest_framework.views import APIView

from slicewise_server.web.request_errors import InvalidRequest

_PAGING = {"cursor", "page_size"}


class StrictFilterBackend(DjangoFilterBackend):
    """django-filter's backend for views that name a ``filterset_class``."""

    def filter_queryset(
        self, request: Any, queryset: QuerySet[Any], view: APIView
    ) -> QuerySet[Any]:
        filterset_class = self.get_filterset_class(view, queryset)
        filter_names = set(filterset_class.base_filters) if filterset_class else set()
        refuse_unknown_parameters(request, filter_names | _PAGING)
        filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return filtered


def filter_values(
    request: Request, filterset_class: type[django_filters.FilterSet], rows: QuerySet[Any]
) -> dict[str, Any]:
    """Return the values of the request's filters, for a view that finds its rows by itself; refuse
    what ``StrictFilterBackend`` refuses. ``rows`` may be empty: only the model matters.
    """
    refuse_unknown_parameters(request, set(filterset_class.base_filters) | _PAGING)
    filterset = filterset_class(request.query_params, rows, request=request)
    if not filterset.is_valid():
        # The type hints of django-filter give a dict here.
        raise cast(Exception, translate_validation(filterset.errors))
    values: dict[str, Any] = filterset.form.cleaned_data
    return values


@extend_schema_field(OpenApiTypes.BOOL)
class YesNoFilter(django_filters.TypedChoiceFilter):
    """Filter by ``true`` or ``false``; django-filter's own filter ignores any other text."""

    def __init__(self, **options: Any) -> None:
        choices = (("true", "true"), ("false", "false"))
        super().__init__(choices=choices, coerce=lambda text: text == "true", **options)


class _NamesWords:
    """A filter by words whose error for another word names the words."""

    def __init__(self, *, choices: Sequence[tuple[str, Any]], **options: Any) -> None:
        words = ", ".join(word for word, _ in choices)
        error = f"%(value)s is no value of this parameter; there are {words}."
        super().__init__(choices=choices, error_messages={"invalid_choice": error}, **options)  # type: ignore[call-arg]


class WordFilter(_NamesWords, django_filters.ChoiceFilter):
    """Filter by one of some words."""


class WordsFilter(_NamesWords, django_filters.MultipleChoiceFilter):
    """Filter by one or several of some words."""


def refuse_unknown_parameters(request: Request, parameters: set[str]) -> None:
    """Raise InvalidRequest for query parameters that the view does not read."""
    unknown = sorted(set(request.query_params) - parameters)
    if unknown:
        sentence = f"There is no such parameter; there are {', '.join(sorted(parameters))}."
        raise InvalidRequest(dict.fromkeys(unknown, sentence))
