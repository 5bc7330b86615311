"""What ties the packages together: settings, Celery, URLs, the embedded stack, the console script.

Django is not imported here, so that `slicewise doctor` works on a machine where nothing is set up.
"""
