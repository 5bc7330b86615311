"""Measures what Slicewise promises to be fast at: ``python -m bench`` (`make bench`).

Every figure that has a bare counterpart is taken beside it, in turns, in the same run: on a noisy
machine the ratio holds where seconds do not. Nothing here is a test; nothing fails for being slow.
"""
