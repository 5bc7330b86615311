"""Django as a WSGI application, which `slicewise_server.asgi` serves."""

from __future__ import annotations

import os
import signal

import django
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from slicewise.process import freeze_loaded_objects
from slicewise_server.exec_bound_to_parent import die_with_parent
from slicewise_server.static_collection import collect_static_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")

if "SLICEWISE_BOUND_TO_PARENT" in os.environ:
    # granian serves from a child, which would go on serving when granian itself is killed.
    die_with_parent(signal.SIGKILL, os.getppid())

django.setup()
collect_static_files()
application = get_wsgi_application()

# Otherwise the first request would load the code of the pages.
_ = get_resolver().url_patterns
freeze_loaded_objects()
