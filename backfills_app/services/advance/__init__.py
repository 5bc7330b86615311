"""The steps of the bulk worker: expansion, admission, retries, withdrawal."""
