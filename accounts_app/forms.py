"""Forms for signing in, for a new password and for a new token."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts_app.models import User
from accounts_app.services.sign_in_limits import forget_failures
from slicewise_server.web.forms import style_fields


class BoundedSignInForm(AuthenticationForm):
    """User name and password. The name is at most as long as the column of user names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        longest = self.username_field.max_length or 0
        self.fields["username"].validators.append(MaxLengthValidator(longest))


class SignInForm(BoundedSignInForm):
    """The sign-in form of the pages, in the style of the other forms."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        style_fields(self)


class OwnPasswordForm(PasswordChangeForm):
    """A form with the old password, and the new password twice."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request = request
        style_fields(self)
        # The form does not take the focus, since the page shows more than the form.
        del self.fields["old_password"].widget.attrs["autofocus"]
        self.fields["new_password2"].label = "Confirm new password"
        self.fields["new_password2"].help_text = ""

    @sensitive_variables()
    def clean_old_password(self) -> str:
        """Check the password under the limits of a sign-in: a session may have been left open."""
        password: str = self.cleaned_data["old_password"]
        _check_password(self._request, self.user, password, "The old password is wrong.")
        return password


class NewTokenForm(forms.Form):
    """A form for a new token: how long the token lives, and the password of the user."""

    days = forms.TypedChoiceField(
        label="Expires",
        coerce=int,
        choices=[(days, f"in {days} days") for days in (7, 30, 90)],
        initial=30,
    )
    password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, request: HttpRequest, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request, self._user = request, user
        style_fields(self)

    @sensitive_variables()
    def clean_password(self) -> str:
        """Check the password under the limits of a sign-in: a session may have been left open."""
        password: str = self.cleaned_data["password"]
        _check_password(self._request, self._user, password, "The password is wrong.")
        return password

    @property
    def lifetime(self) -> timedelta:
        """The chosen time until the token expires; of a valid form."""
        return timedelta(days=self.cleaned_data["days"])


@sensitive_variables()
def _check_password(request: HttpRequest, user: User, password: str, refusal: str) -> None:
    """Raise ValidationError unless the password is that of the user."""
    if authenticate(request, username=user.get_username(), password=password) is None:
        raise ValidationError(refusal, code="password_incorrect")
    forget_failures(request, user)
