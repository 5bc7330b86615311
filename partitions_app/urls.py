"""Address of the help on the looks of partitions and on selections."""

from django.urls import path

from partitions_app import views

app_name = "partitions"
urlpatterns = [path("help/partitions/", views.help_page, name="help")]
