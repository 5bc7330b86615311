"""Assets of all kinds on a fast clock while processes are killed: ``python -m bench.soak``
(`make soak`).

At the end no partition may be missing, no two runs may have materialized a partition at the same
time, and disk and record must agree.
"""
