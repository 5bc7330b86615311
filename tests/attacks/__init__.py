"""Attacks, one module for each theme: each attack worked once."""
