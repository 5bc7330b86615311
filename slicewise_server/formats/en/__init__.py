"""Formats for the language of the pages."""
