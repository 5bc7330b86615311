"""ETags for polled resources: an unchanged resource is answered with 304 and no body."""

import hashlib
from typing import Any

from django.utils.http import parse_etags
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response


def conditional(request: Request, data: Any) -> Response:
    """Return the resource with its ETag, or 304 when the caller has the same ETag."""
    # Weak, since it stands for the content and not for the bytes that a proxy may compress.
    etag = f'W/"{hashlib.sha256(JSONRenderer().render(data)).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    known_etags = parse_etags(request.headers.get("If-None-Match", ""))
    if etag in known_etags or "*" in known_etags:
        return Response(status=304, headers=headers)
    return Response(data, headers=headers)
