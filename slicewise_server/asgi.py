"""The ASGI application of the web server: Django behind `slicewise_server.serving`."""

from __future__ import annotations

import logging
import resource

from django.conf import settings

from slicewise_server.metrics.request_counting import store_steadily
from slicewise_server.process_output import log_other_output
from slicewise_server.serving import Application, Limits
from slicewise_server.web.proxies import warning_of_unnamed_proxies
from slicewise_server.wsgi import application as django_application

log = logging.getLogger(__name__)

# Each connection takes a descriptor; a large body or answer takes a second descriptor.
_DESCRIPTORS = 16_384

_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if _soft < _DESCRIPTORS:
    most = _DESCRIPTORS if _hard == resource.RLIM_INFINITY else min(_hard, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, _hard))

if _warning := warning_of_unnamed_proxies(
    is_behind_tls=settings.BEHIND_TLS, names_proxies=bool(settings.TRUSTED_PROXIES)
):
    log.warning(_warning)

application = Application(
    django_application,
    Limits(
        threads=settings.WEB_THREADS,
        waiting=settings.WEB_WAITING,
        health=settings.HEALTH_ADDRESS,
        metrics=settings.METRICS_ADDRESS,
        static=settings.STATIC_URL,
        body=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
    ),
)
store_steadily()
log_other_output()
