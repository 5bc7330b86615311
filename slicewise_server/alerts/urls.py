"""The addresses of the page of alerts."""

from django.urls import path

from slicewise_server.alerts import form_views, views

app_name = "alerts"
urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/listed/", views.alerts_listed, name="alerts-listed"),
    path("alerts/new-channel/", form_views.channel_new, name="channel-new"),
    path("alerts/channels/<str:name>/", form_views.channel_change, name="channel-change"),
    path("alerts/channels/<str:name>/delete/", form_views.channel_delete, name="channel-delete"),
    path("alerts/new-rule/", form_views.rule_new, name="rule-new"),
    path("alerts/rules/<str:name>/", form_views.rule_change, name="rule-change"),
    path("alerts/rules/<str:name>/delete/", form_views.rule_delete, name="rule-delete"),
    path("alerts/channels/<str:name>/test/", views.channel_test, name="channel-test"),
    path(
        "alerts/deliveries/<uuid:delivery_id>/resend/",
        views.delivery_resend,
        name="delivery-resend",
    ),
]
