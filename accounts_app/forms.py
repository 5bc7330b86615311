"""Forms for signing in and for a new password."""

from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts_app.services.sign_in_limits import forget_failures


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
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"


class OwnPasswordForm(PasswordChangeForm):
    """A form with the old password, and the new password twice."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._request = request
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
        # The form does not take the focus, since the page shows more than the form.
        del self.fields["old_password"].widget.attrs["autofocus"]
        self.fields["new_password2"].label = "Confirm new password"
        self.fields["new_password2"].help_text = ""

    @sensitive_variables()
    def clean_old_password(self) -> str:
        """Check the password under the limits of a sign-in: a session may have been left open."""
        password: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=password) is None:
            raise ValidationError("The old password is wrong.", code="password_incorrect")
        forget_failures(self._request, self.user)
        return password
