"""Processes for user code, forked from a warm parent that has pyspark loaded.

A worker uses ``client``; ``parent`` is the warm parent (``python -m slicewise.runner``), ``child``
the work of a forked process. Three descriptors connect a runner with a worker: a *channel* (the
request down, JSON lines up), a pipe for the *log*, and a *status* socket that the parent keeps
(pings down, start and end up), so that no user code can stop the watch over the runner.
"""
