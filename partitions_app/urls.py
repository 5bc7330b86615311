"""Help on what partitions look like and how they are selected."""

from django.urls import path

from partitions_app import views

app_name = "partitions"
urlpatterns = [path("help/partitions/", views.help_page, name="help")]
