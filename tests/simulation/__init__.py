"""A deployment over months in minutes: the real services on a fast clock, beside a simple reference
that shares no code with the services.
"""
