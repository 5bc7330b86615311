"""A deployment over months in minutes: the real services, on a clock that runs fast, beside a
simple reference that shares no code with them.
"""
