"""Pages for signing in, signing out, the user's account, and the audit log."""

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView, LogoutView
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, Value
from django.db.models.functions import Replace
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts_app.forms import NewTokenForm, OwnPasswordForm, SignInForm
from accounts_app.models import AuditEntry, User
from accounts_app.page_policy import person_of
from accounts_app.policy import granted_names, opens_admin
from accounts_app.services.passwords import change_own_password
from accounts_app.services.sign_in_limits import retry_after_seconds, try_again_text
from accounts_app.services.tokens import IssuedToken, issue_token, revoke_token, tokens_of
from slicewise_server.web.listing import address_of, page_of_rows
from slicewise_server.web.request_errors import ConflictingRequest

# The columns that the fields of the page search, by the name in the address.
_AUDIT_FIELDS = {
    "person": "actor_name__icontains",
    "action": "action_words__icontains",
    "subject": "subject__icontains",
}


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
    return _account_page(request, form, NewTokenForm(request, person))


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a token for the user, and show the token in this answer alone."""
    if request.method != "POST":
        # After a sign-in, or from the address bar: the form is on the page of the account.
        return redirect("accounts:account")
    person = person_of(request)
    token_form = NewTokenForm(request, person, request.POST)
    issued = issue_token(person, lifetime=token_form.lifetime) if token_form.is_valid() else None
    if issued:
        token_form = NewTokenForm(request, person)
    elif not token_form.errors:
        token_form.add_error(None, "Your password has changed. Sign in again.")
    return _account_page(request, OwnPasswordForm(request, person), token_form, issued)


@sensitive_variables()
def _account_page(
    request: HttpRequest,
    form: OwnPasswordForm,
    token_form: NewTokenForm,
    issued: IssuedToken | None = None,
) -> HttpResponse:
    person = person_of(request)
    context = {
        "form": form,
        "token_form": token_form,
        "issued": issued,
        "tokens": tokens_of(person),
        "roles": person.groups.order_by("name"),
        "backfilled": granted_names(person),
    }
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


@login_required
@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    """Show the audit entries, newest first; only to people who may open the admin site."""
    if not opens_admin(request.user):
        raise PermissionDenied("The audit log needs the role admin.")
    context = {
        "page": page_of_rows(request, _matching(request)),
        "filtered": any(request.GET.get(name) for name in _AUDIT_FIELDS),
        "again": address_of(request, tuple(_AUDIT_FIELDS)),
        "fields": [(name, name.capitalize(), request.GET.get(name, "")) for name in _AUDIT_FIELDS],
    }
    return render(request, "accounts_app/audit.html", context)


def _matching(request: HttpRequest) -> QuerySet[AuditEntry]:
    words = {
        column: text
        for name, column in _AUDIT_FIELDS.items()
        if (text := request.GET.get(name, "").strip())
    }
    # The page shows spaces in place of underscores: both texts are found.
    if "action_words__icontains" in words:
        words["action_words__icontains"] = words["action_words__icontains"].replace("_", " ")
    entries = AuditEntry.objects.annotate(action_words=Replace("action", Value("_"), Value(" ")))
    return entries.filter(**words).order_by("-id")
