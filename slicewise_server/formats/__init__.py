"""Formats of dates and times in place of Django's (setting FORMAT_MODULE_PATH)."""
