"""Writes the part of Tabler's style sheet that pages use; ``make styles`` calls this package."""
