"""The admin site, which the policy opens."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.admin import AdminSite
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts_app.forms import BoundedSignInForm
from accounts_app.models import User
from accounts_app.policy import opens_admin

_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])
_METHODS_OF_PAGES = require_http_methods(["GET", "HEAD", "POST"])


class AdminSignInForm(BoundedSignInForm, AdminAuthenticationForm):
    """The sign-in form of the admin site, for users who may open the site."""

    def confirm_login_allowed(self, user: Any) -> None:
        # Not AdminAuthenticationForm's check, which asks for `is_staff` alone.
        AuthenticationForm.confirm_login_allowed(self, user)
        if not (isinstance(user, User) and opens_admin(user)):
            raise ValidationError(
                self.error_messages["invalid_login"],
                code="invalid_login",
                params={"username": self.username_field.verbose_name},
            )


class SlicewiseAdminSite(AdminSite):
    """The admin site for staff and the role admin. Passwords are changed on the account's page."""

    site_header = "Slicewise administration"
    site_title = "Slicewise admin"
    index_title = "Administration"
    login_form = AdminSignInForm

    def has_permission(self, request: HttpRequest) -> bool:
        return opens_admin(request.user)

    def admin_view(self, view: _View, cacheable: bool = False) -> _View:
        """Wrap a view with the site's check of permission, and refuse other methods than GET, HEAD
        and POST: Django's own views answer every method but POST as GET.
        """
        return super().admin_view(_METHODS_OF_PAGES(view), cacheable)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        return redirect("accounts:account")
