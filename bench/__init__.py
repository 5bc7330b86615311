"""Measures the speed of Slicewise: ``python -m bench`` (`make bench`).

Work with a bare counterpart is measured in turns with the counterpart, in one process: on a noisy
machine the ratio is stable where seconds are not. A slow measurement is no failure.
"""
