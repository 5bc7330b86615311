"""Pages for signing in, signing out and the user's account."""

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from accounts_app.forms import OwnPasswordForm, SignInForm
from accounts_app.models import User
from accounts_app.page_policy import person_of
from accounts_app.services.passwords import change_own_password
from accounts_app.services.sign_in_limits import retry_after_seconds, try_again_text
from accounts_app.services.tokens import revoke_token, tokens_of
from slicewise_server.web.request_errors import ConflictingRequest


class SignIn(LoginView):
    """The sign-in page; a user who is already signed in goes on to the requested page."""

    template_name = "accounts_app/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """The end of a session, by POST alone."""


def sign_in_refused(request: HttpRequest, *_: object) -> HttpResponse:
    """Return the answer for an attempt beyond the limits, on all pages (AXES_LOCKOUT_CALLABLE)."""
    wait = retry_after_seconds(request)
    context = {"sentence": try_again_text(wait), "back": request.get_full_path()}
    answer = render(request, "accounts_app/sign_in_refused.html", context, status=429)
    answer["Retry-After"] = str(wait)
    return answer


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's account and tokens, and change the password."""
    person = person_of(request)
    form = OwnPasswordForm(request, person, request.POST if request.method == "POST" else None)
    if form.is_valid() and (changed := _change_password(person, form)):
        update_session_auth_hash(request, changed)
        messages.success(
            request,
            "Password changed. Your other sessions have ended, and your tokens are revoked.",
        )
        return redirect("accounts:account")
    context = {"form": form, "tokens": tokens_of(person), "roles": person.groups.order_by("name")}
    return render(request, "accounts_app/account.html", context)


@login_required
@require_POST
def sign_out_all(request: HttpRequest) -> HttpResponse:
    """End all sessions, including the present session, and revoke all tokens."""
    person_of(request).sign_out_everywhere()
    logout(request)
    messages.success(request, "You are signed out everywhere, and your tokens are revoked.")
    return redirect("accounts:sign-in")


@login_required
@require_POST
def revoke(request: HttpRequest, key: str) -> HttpResponse:
    """Revoke a token of the user."""
    person = person_of(request)
    token = get_object_or_404(tokens_of(person), token_key=key)
    revoke_token(token, by=person)
    messages.success(request, f"Token {key[:8]}… revoked.")
    return redirect("accounts:account")


@sensitive_variables()
def _change_password(person: User, form: OwnPasswordForm) -> User | None:
    """Return the changed user; None with an error of the form if the change is refused."""
    old, new = form.cleaned_data["old_password"], form.cleaned_data["new_password1"]
    try:
        return change_own_password(person, old=old, new=new)
    except ConflictingRequest as conflict:
        form.add_error(None, str(conflict))
        return None
