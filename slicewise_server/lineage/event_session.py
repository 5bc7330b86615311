"""A session of `requests` that prepares the request of an event once, for all events."""

from typing import Any

from requests import HTTPError, PreparedRequest, Request, Response, Session


class EventSession(Session):
    """A session that sends bodies to one address, with proxies, certificates and logins of the
    environment as they were at the first request.

    `requests` reads the environment and files again for each request, and builds the same headers:
    this takes as much processor time as the sending.
    """

    def __init__(self) -> None:
        super().__init__()
        self._settings: dict[tuple[Any, ...], Any] = {}
        self._prepared: tuple[tuple[Any, ...], PreparedRequest] | None = None

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Return the settings of a request; a request with proxies has settings of its own."""
        if proxies:
            return super().merge_environment_settings(url, proxies, stream, verify, cert)
        key = (url, stream, verify, cert)
        if key not in self._settings:
            settings = super().merge_environment_settings(url, {}, stream, verify, cert)
            self._settings = {key: settings}
        return self._settings[key].copy()

    def prepare_request(self, request: Request) -> PreparedRequest:
        """Return the request, with the prepared headers of the last request to the same address
        with the same headers.
        """
        body = request.data
        if request.auth or request.cookies or request.params or not isinstance(body, str | bytes):
            return super().prepare_request(request)
        key = (request.method, request.url, tuple(request.headers.items()))
        if self._prepared is None or self._prepared[0] != key:
            without_cookies = super().prepare_request(request)
            without_cookies.headers.pop("Cookie", None)
            self._prepared = key, without_cookies
        prepared = self._prepared[1].copy()
        prepared.prepare_cookies(self.cookies)
        prepared.prepare_body(body, None)
        return prepared

    def get_redirect_target(self, resp: Response) -> str | None:
        """Return None, or raise HTTPError for a redirect: the request would go on without its body,
        or with its headers to another host.
        """
        if super().get_redirect_target(resp) is not None:
            raise HTTPError(f"status {resp.status_code} is a redirect", response=resp)
        return None
