"""The ASGI application of the web server: Django behind `slicewise_server.serving`."""

from __future__ import annotations

import resource

from django.conf import settings

from slicewise_server.serving import Application, Limits
from slicewise_server.wsgi import application as django_application

# Each connection takes a descriptor; a large body or answer takes a second descriptor.
_DESCRIPTORS = 16_384

_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if _soft < _DESCRIPTORS:
    most = _DESCRIPTORS if _hard == resource.RLIM_INFINITY else min(_hard, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, _hard))

application = Application(
    django_application,
    Limits(
        threads=settings.WEB_THREADS,
        waiting=settings.WEB_WAITING,
        health=settings.HEALTH_ADDRESS,
        static=settings.STATIC_URL,
        body=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
    ),
)
