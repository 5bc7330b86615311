"""Attempts at runs: inputs, outputs, ends, and answers to the questions of runners."""
