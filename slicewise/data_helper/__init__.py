"""Work on data by processes that have the rights of runs, for a worker that has more.

User code writes the folders in which a worker publishes and removes data, and may put links there.
A worker that is root would follow them with all its rights. So it asks a process of the user whose
rights its runs have: `client` starts one, `server` forks a process for each request.
"""
