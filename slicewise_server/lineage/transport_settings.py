"""The settings of the transport of events, by the variables and the file that the client reads.

Without a type of transport OpenLineage's client prints events to the log, and counts the events as
sent. `slicewise doctor` reads this module where no package is installed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PREFIX = "OPENLINEAGE__TRANSPORT"
_DYNAMIC_PREFIX = "OPENLINEAGE__"
_FILE = "openlineage.yml"
# The settings without which a transport of the client cannot start. A type with a dot is a class.
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "http": ("url",),
    "async_http": ("url",),
    "kafka": ("config", "topic"),
    "msk-iam": ("config", "topic"),
    "file": ("log_file_path",),
    "composite": ("transports",),
    "transform": ("transport", "transformer_class"),
    "gcplineage": ("project_id",),
    "amazon_datazone_api": ("domainId",),
    "datadog": (),
    "console": (),
    "noop": (),
}
_PLACES = f"{PREFIX}__{{key}}, or `{{name}}` below `transport` in {_FILE}"


def is_disabled(env: Mapping[str, str]) -> bool:
    """Return whether OPENLINEAGE_DISABLED is set."""
    return env.get("OPENLINEAGE_DISABLED", "").lower().strip() == "true"


def settings_file(env: Mapping[str, str]) -> Path | None:
    """Return the file that the client reads: the first readable one of three places."""
    named_file = env.get("OPENLINEAGE_CONFIG")
    files = [Path(named_file)] if named_file else []
    files += [Path.cwd() / _FILE, Path("~/.openlineage").expanduser() / _FILE]
    return next((file for file in files if _is_readable(file)), None)


def transport_problem(env: Mapping[str, str]) -> str:
    """Return a sentence about settings with which no event reaches a receiver; empty for complete
    settings, and where nothing is set.
    """
    file = settings_file(env)
    is_set = any(name.startswith(PREFIX) for name in env)
    if is_disabled(env) or not (is_set or file):
        return ""
    try:
        file_transport = _transport_of(file) if file else None
    except ValueError as error:
        return f"{file} cannot be read: {error}."
    if not is_set and file_transport is None:
        return ""
    # As in the client, the file comes before variables.
    transport = _merged(_transport_in(env), file_transport)
    if not isinstance(transport, dict):
        return f"The value of {PREFIX} is no JSON object with `type` and the transport's settings."
    if not transport.get("type"):
        return "" if env.get("OPENLINEAGE_URL") else _sentence_about("type", "", "")
    return next(_problems(transport, env), "")


def receiver_name(env: Mapping[str, str]) -> str:
    """Return the host and the port of the receiver, or the type of a transport whose address does
    not tell these; empty where the settings name none.
    """
    file = settings_file(env)
    try:
        transport = _merged(_transport_in(env), _transport_of(file) if file else None)
    except ValueError:
        return ""
    values = transport if isinstance(transport, dict) else {}
    url = str(values.get("url") or env.get("OPENLINEAGE_URL", ""))
    return _host_and_port(url) or str(values.get("type") or "")


def _host_and_port(url: str) -> str:
    """Return the host and the port of an address, without credentials; empty for an address without
    these, and for an address in which these may be credentials.

    A password with "#", "/" or "?" that is not encoded ends the part of the address for the host.
    """
    try:
        address = urlsplit(url)
        host, port = address.hostname or "", address.port
    except ValueError:
        return ""
    if any("@" in text for text in (address.path, address.query, address.fragment)):
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port is None else f"{host}:{port}"


def _problems(transport: Mapping[str, Any], env: Mapping[str, str]) -> Iterator[str]:
    kind = str(transport["type"])
    if kind not in _REQUIRED and "." not in kind:
        yield f"{kind!r} is no type of OpenLineage's transports: {', '.join(sorted(_REQUIRED))}."
    # The client itself takes the address of OPENLINEAGE_URL for these two.
    has_url = kind in ("async_http", "composite") and bool(env.get("OPENLINEAGE_URL"))
    for name in () if has_url else _REQUIRED.get(kind, ()):
        if not transport.get(name):
            yield _sentence_about(name, f" {kind}", name)
    children = transport.get("transports") if kind == "composite" else None
    for child_name, child in _named(children):
        if isinstance(child, dict) and not child.get("type"):
            yield f"Transport {child_name} of the composite transport of OpenLineage has no `type`."


def _named(children: Any) -> Iterator[tuple[object, Any]]:
    if isinstance(children, dict):
        yield from children.items()
    elif isinstance(children, list):
        yield from enumerate(children, start=1)


def _sentence_about(name: str, kind: str, setting: str) -> str:
    places = _PLACES.format(key=name.upper(), name=name)
    if not setting:
        return f"OpenLineage's transport has no type, and would send no event. Set {places}."
    return f"OpenLineage's transport{kind} lacks `{name}`, and would send no event. Set {places}."


def _transport_in(env: Mapping[str, str]) -> Any:
    """Return the transport in variables, as the client joins them: the shortest name is the last
    word. None where there is none.
    """
    tree: dict[str, Any] = {}
    for variable in sorted(env, reverse=True):
        if not variable.startswith(_DYNAMIC_PREFIX):
            continue
        *outer_keys, last = variable.removeprefix(_DYNAMIC_PREFIX).lower().split("__")
        branch: Any = tree
        for key in outer_keys:
            branch = branch.setdefault(key, {}) if isinstance(branch, dict) else {}
        if isinstance(branch, dict):
            branch[last] = _value(env[variable])
    return tree.get("transport")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _merged(below: Any, above: Any) -> Any:
    if below is None or above is None:
        return below or above or {}
    return {**below, **above} if isinstance(below, dict) and isinstance(above, dict) else above


def _transport_of(file: Path) -> Any:
    """Return the transport in a file; None for a file without one. Raises ValueError."""
    try:
        import yaml
    except ImportError:  # `slicewise doctor` before the set-up
        return None
    try:
        content = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise ValueError(type(error).__name__) from error
    except (OSError, ValueError):
        return None
    has_transport = isinstance(content, dict) and "transport" in content
    return (content["transport"] or {}) if has_transport else None


def _is_readable(file: Path) -> bool:
    try:
        with file.open():
            return True
    except OSError:
        return False
