"""Compression of pages on the way to browsers."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class CompressedPagesMiddleware(GZipMiddleware):
    """Compress pages in HTML for browsers that accept gzip.

    A page of the grid has a thousand cells, which compress to a tenth. Django adds bytes of random
    length, which hide the length of secrets in a page. Answers of the API stay as they are: their
    ETags are strong.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if not response.get("Content-Type", "").startswith("text/html"):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed
