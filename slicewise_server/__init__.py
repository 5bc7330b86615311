"""Settings, Celery, URLs, the embedded stack and the console script of all packages together.

Django is not imported here, so that `slicewise doctor` works on a machine where nothing is set up.
"""
