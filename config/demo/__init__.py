"""`slicewise demo`: the flights of 2013, made through the public API and shown."""
