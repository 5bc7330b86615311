"""The layer between the web server and Django: a slow client never occupies a Django thread.

Bodies are read, and answers are sent, without a thread; in between a thread of a bounded pool runs
Django.
"""

from slicewise_server.serving.application import Application
from slicewise_server.serving.limits import Limits

__all__ = ["Application", "Limits"]
