"""Coming in and going out."""

from django.contrib.auth.views import LoginView, LogoutView

from accounts_app.forms import SignInForm


class SignIn(LoginView):
    """The sign-in page; whoever is signed in already goes on to where they wanted."""

    template_name = "accounts_app/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True


class SignOut(LogoutView):
    """Ends the session, by POST alone."""
