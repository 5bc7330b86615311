"""Base classes of the API's views: authentication, permission, parser and answers for errors."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db.models import Model
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.generics import ListAPIView
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts_app.api.authentication import TokenAuthentication
from accounts_app.models import User
from accounts_app.policy import Action, may
from slicewise_server.web.api.filtering import StrictFilterBackend
from slicewise_server.web.api.pages import KeysetPages
from slicewise_server.web.api.parsing import BoundedJSONParser
from slicewise_server.web.api.problems import MEDIA_TYPE, answer_exception, problem

_Row = TypeVar("_Row", bound=Model)


class MayView(BasePermission):
    """Permission for every signed-in user to view; the service of a write asks the policy."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return may(request.user, Action.VIEW)


class ApiView(APIView):
    """Base of all views below ``/api/``."""

    authentication_classes: Sequence[type[BaseAuthentication]] = (
        TokenAuthentication,
        SessionAuthentication,
    )
    permission_classes: Sequence[type[BasePermission]] = (MayView,)
    parser_classes = (BoundedJSONParser,)

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return answer_exception

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        final = super().finalize_response(request, response, *args, **kwargs)
        if final.content_type == MEDIA_TYPE:
            # Problems are JSON, also where a view renders another format.
            final.accepted_renderer = JSONRenderer()
        return final


class ApiList(ApiView, ListAPIView[_Row]):
    """Base of lists: a ``queryset``, a ``filterset_class``, and ``page_order``, a unique column."""

    pagination_class = KeysetPages
    filter_backends = (StrictFilterBackend,)
    page_order = "-id"


class NoSuchAddress(ApiView):
    """View of unknown addresses below ``/api/``, which answers in the words that programs read."""

    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check nothing about the caller, since no method has anything to protect."""

    def _absent(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return problem(404, f"There is nothing at {request.path}; see /api/docs/.")

    get = post = put = patch = delete = _absent


def signed_in(request: Request) -> User:
    """Return the user of a request that ``MayView`` has admitted."""
    user = request.user
    if isinstance(user, AnonymousUser):  # pragma: no cover - the permission answers first
        raise TypeError("Ask only where a permission keeps out who is not signed in.")
    return user
