"""The address of the metrics."""

from django.urls import path

from slicewise_server.metrics import views

app_name = "metrics"
urlpatterns = [path("metrics", views.metrics, name="metrics")]
