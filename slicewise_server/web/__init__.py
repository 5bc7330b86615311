"""What the web pages and the API of all apps share: errors, answers, lists, checks of input.

These modules have no models and know none of the apps.
"""
