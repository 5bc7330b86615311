"""Shared parts of the web pages and of the API: errors, answers, lists, checks of input.

These modules have no models and know none of the apps.
"""
