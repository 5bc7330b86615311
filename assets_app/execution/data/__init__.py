"""The places of data that this host reaches: connections, storages, users, and records of files."""
