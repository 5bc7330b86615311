"""Settings that would fail later, or that would make a limit hit everyone, are refused at the
start.
"""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from slicewise_server.stack import doctor
from slicewise_server.web_addresses import web_address
from tests.docs.documents import PROJECT


@pytest.mark.parametrize("text", ["", "http://spark:4040", "https://spark.example/ui/"])
def test_an_address_of_pages_is_taken(text: str) -> None:
    assert web_address("SPARK_UI_URL", text) == text


@pytest.mark.parametrize(
    "text", ["spark:4040", "spark.example", "javascript:alert(1)", "http://", "http://[::1"]
)
def test_an_address_that_no_link_leads_to_stops_the_start(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"SPARK_UI_URL is .* with http"):
        web_address("SPARK_UI_URL", text)


PROXIES = pytest.mark.parametrize(
    ("behind_tls", "proxies", "warned"),
    [("true", "", True), ("True", "10.0.0.0/8", False), ("false", "", False), ("", "", False)],
)


@PROXIES
def test_doctor_warns_of_a_proxy_that_no_setting_names(
    behind_tls: str, proxies: str, warned: bool
) -> None:
    env = {**os.environ, "BEHIND_TLS": behind_tls, "TRUSTED_PROXIES": proxies}
    findings = [finding for finding in doctor.examine(env) if finding.name == "Proxy"]
    assert any("TRUSTED_PROXIES" in finding.warning for finding in findings) is warned


@PROXIES
def test_the_web_server_warns_of_a_proxy_that_no_setting_names(
    behind_tls: str, proxies: str, warned: bool
) -> None:
    env = {**os.environ, "BEHIND_TLS": behind_tls, "TRUSTED_PROXIES": proxies}
    code = "import os, slicewise_server.asgi; os._exit(0)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=PROJECT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert ("TRUSTED_PROXIES names none" in done.stdout + done.stderr) is warned
