"""Assets of all kinds on a fast clock while processes are killed: ``python -m bench.soak``
(`make soak`).

At the end no partition may be missing, none made twice at once, and what is on disk and what is on
record have to be the same.
"""
