"""The addresses of the page of alerts."""

from django.urls import path

from slicewise_server.alerts import views

app_name = "alerts"
urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/listed/", views.alerts_listed, name="alerts-listed"),
    path("alerts/channels/<str:name>/test/", views.channel_test, name="channel-test"),
    path(
        "alerts/deliveries/<uuid:delivery_id>/resend/",
        views.delivery_resend,
        name="delivery-resend",
    ),
]
