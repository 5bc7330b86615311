"""Lineage by OpenLineage: events of attempts are sent, and events of other tools are received.

An event is a row that is written with the change, and is sent later by OpenLineage's own client.
"""
