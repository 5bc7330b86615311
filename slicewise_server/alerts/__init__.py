"""Alerts: rules that send events to channels, and the deliveries of the messages.

A delivery is a row with a body that never changes and an id of its own; the row is sent until the
channel accepts the message or a day has passed.
"""
