"""The data helper: processes with the user of runs that work on data for a worker with more rights.

User code writes the folders in which a worker publishes and removes data, and may put links there.
A worker that is root would follow links with all rights of root. So the worker asks a process of
the user of runs: `client` starts that process, `server` forks a process for each request.
"""
