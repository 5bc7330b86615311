"""Addresses of the pages for signing in, signing out and the user's account."""

from django.urls import path

from accounts_app import views

app_name = "accounts"
urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign-in"),
    path("sign-out/", views.SignOut.as_view(), name="sign-out"),
    path("audit/", views.audit_log, name="audit"),
    path("account/", views.account, name="account"),
    path("account/sign-out-everywhere/", views.sign_out_all, name="sign-out-everywhere"),
    path("account/tokens/", views.create_token, name="token-create"),
    path("account/tokens/<str:key>/revoke/", views.revoke, name="token-revoke"),
]
