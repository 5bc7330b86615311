"""The addresses of the overview, which is the home page."""

from django.urls import path

from slicewise_server.home import search, views

app_name = "home"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("search/", search.search, name="search"),
    path("going-on/", views.going_on, name="going-on"),
]
