"""The address that Prometheus scrapes."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from slicewise_server.metrics.access import Access, access_of
from slicewise_server.metrics.scraping import Scraper

_scraper = Scraper()
_PLAIN = "text/plain; charset=utf-8"


@csrf_exempt
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics, in the text format or as OpenMetrics."""
    match access_of(request):
        case Access.WRONG_TOKEN:
            refused = HttpResponse("Wrong token.\n", _PLAIN, status=401)
            refused["WWW-Authenticate"] = 'Bearer realm="metrics"'
            return refused
        case Access.FOREIGN:
            text = (
                "Metrics are for clients with the token of METRICS_TOKEN, and for the networks of"
                " METRICS_NETWORKS.\n"
            )
            return HttpResponse(text, _PLAIN, status=403)
    exposition = _scraper.expose(request.headers.get("Accept", ""))
    return HttpResponse(exposition.text, exposition.content_type)
