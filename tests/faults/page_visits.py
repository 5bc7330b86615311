"""A person's look at the pages."""

import html
import re
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

from slicewise_server.stack.stack import ADMIN, Stack

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Pages:
    """Signs in as the administrator and reads pages."""

    def __init__(self, stack: Stack) -> None:
        self._base = stack.web_url
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        match = _TOKEN.search(self._opened("/sign-in/"))
        assert match is not None
        form = {
            "csrfmiddlewaretoken": match[1],
            "username": ADMIN,
            "password": stack.admin_password,
        }
        self._opened("/sign-in/", urllib.parse.urlencode(form).encode())

    def text(self, path: str) -> str:
        """Return the text of a page."""
        return html.unescape(self._opened(path))

    def _opened(self, path: str, form: bytes | None = None) -> str:
        request = urllib.request.Request(self._base + path, form, {"Referer": self._base})
        with self._opener.open(request, timeout=60) as answer:
            return str(answer.read().decode())
