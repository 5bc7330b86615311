"""Traces of runs by OpenTelemetry, where its SDK is installed and its variables name a receiver."""
