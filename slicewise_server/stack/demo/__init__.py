"""`slicewise demo`: the flights of 2013, materialized through the public API and shown."""
