"""Runs user code in processes of its own, forked from a warm parent that has pyspark loaded.

``client`` is what a worker uses, ``parent`` is the warm parent (``python -m slicewise.runner``),
``child`` is what a forked process does. Three descriptors tie a runner to its worker: a *channel*
(the request down, JSON lines up), a pipe for its *log*, and a *status* socket that the parent keeps
(pings down, the start and the end up), so that no user code can stop the watch over it.
"""
