"""Django's settings, all from the environment; a missing or malformed one stops the start.

Beside a running stack `slicewise` supplies these; elsewhere see docker-compose.yml.
"""

from __future__ import annotations

import importlib
import os
from datetime import timedelta
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from slicewise_server import logging as log_lines
from slicewise_server.metrics_token import metrics_token
from slicewise_server.name_value_pairs import pairs
from slicewise_server.networks import networks
from slicewise_server.number_settings import above_zero, at_least_one, memory
from slicewise_server.redis_urls import cache_url
from slicewise_server.web_addresses import web_address

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
# A command serves no pages and receives no messages: the import of Celery and the views would take
# longer than the command. `slicewise_server.stack.cli` sets the variable; a sender of messages
# imports Celery then.
IS_COMMAND = "SLICEWISE_COMMAND" in os.environ
if not IS_COMMAND:
    # Allow annotations such as `ModelAdmin[User]`; at run time Django's classes are not generic.
    importlib.import_module("django_stubs_ext").monkeypatch()

# ---------------------------------------------------------------- locations
SECRET_KEY = env.str("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
DATABASES = {"default": env.db("DATABASE_URL")}
REDIS_URL = env.str("REDIS_URL")
SPARK_REMOTE = env.str("SPARK_REMOTE")
# For assets with engine="submit", each run a Spark application; refused without a master.
SPARK_MASTER = env.str("SPARK_MASTER", default="")
SPARK_SUBMIT_CONF = pairs("SPARK_SUBMIT_CONF", env.str("SPARK_SUBMIT_CONF", default=""))
SPARK_HOME = env.str("SPARK_HOME", default="")
JAVA_HOME = env.str("JAVA_HOME", default="")
# The address of Spark's own pages; each run links to it.
SPARK_UI_URL = web_address("SPARK_UI_URL", env.str("SPARK_UI_URL", default=""))
# The address at which people open the pages, for links in messages.
SLICEWISE_URL = web_address("SLICEWISE_URL", env.str("SLICEWISE_URL", default=""))
# The namespace of jobs, and of assets without a URI, in events of OpenLineage. Further variables of
# that name are read by its client.
OPENLINEAGE_NAMESPACE = env.str("OPENLINEAGE_NAMESPACE", default="slicewise")
DATA_FOLDER = Path(env.str("SLICEWISE_DATA")).resolve()
BUNDLES = {name: Path(folder) for name, folder in env.dict("SLICEWISE_BUNDLES", default={}).items()}
RUNNER_ENV = env.list("SLICEWISE_RUNNER_ENV", default=[])
# Options of data locations for gateways, such as logins; a file, not in the environment.
_connections = env.str("SLICEWISE_CONNECTIONS", default="")
SLICEWISE_CONNECTIONS = Path(_connections) if _connections else None
# Drivers for locations such as postgres:, for submissions; a Spark Connect server has its own.
JDBC_JARS = env.list("SLICEWISE_JDBC_JARS", default=[])
# The user of user code if root starts the workers; user code cannot look into the workers then.
RUNNER_USER = env.str("SLICEWISE_RUNNER_USER", default="")
# A range of user ids, 20000-20031: each run has one user id for itself. Names are not needed.
RUNNER_USERS = env.str("SLICEWISE_RUNNER_USERS", default="")
SLOTS = env.int("SLICEWISE_SLOTS", default=3)

# ---------------------------------------------------------------- limits
MAX_PARTITIONS_PER_BACKFILL = env.int("MAX_PARTITIONS_PER_BACKFILL", default=1_000_000)
MAX_ASSETS_PER_BACKFILL = env.int("MAX_ASSETS_PER_BACKFILL", default=1_000)
MAX_PARTITIONS_PER_REQUEST = env.int("MAX_PARTITIONS_PER_REQUEST", default=10_000)
DEPENDS_ON_PAST_HOURS = env.float("DEPENDS_ON_PAST_HOURS", default=168.0)
MAX_SEGMENTS_PER_SEQUENCE = env.int("MAX_SEGMENTS_PER_SEQUENCE", default=10_000)
MAX_PARTITIONS_PER_TICK = env.int("MAX_PARTITIONS_PER_TICK", default=10_000)
MAX_PARTITIONS_PER_TRANSACTION = env.int("MAX_PARTITIONS_PER_TRANSACTION", default=50_000)
SCHEDULE_TICK_DAYS = env.int("SCHEDULE_TICK_DAYS", default=90)
EVENT_DAYS = env.int("EVENT_DAYS", default=30)
# Networks of receivers of alerts, beside those that are blocked without a setting.
ALERT_ALLOWED_NETWORKS = networks(
    "ALERT_ALLOWED_NETWORKS", env.list("ALERT_ALLOWED_NETWORKS", default=[])
)
ALERT_BLOCKED_NETWORKS = networks(
    "ALERT_BLOCKED_NETWORKS", env.list("ALERT_BLOCKED_NETWORKS", default=[])
)
LOG_LIMIT_BYTES = env.int("LOG_LIMIT_BYTES", default=10 * 1024 * 1024)
RUN_OUTPUT_LIMIT_BYTES = env.int("RUN_OUTPUT_LIMIT_BYTES", default=32 * 1024 * 1024)
# Limits of one run.
RUN_MEMORY = memory(env, "SLICEWISE_RUN_MEMORY")
RUN_PROCESSES = at_least_one(env, "SLICEWISE_RUN_PROCESSES", default=4096)
# The control group below which each run gets a group; empty: the group that systemd has delegated.
RUN_CGROUP = env.str("SLICEWISE_RUN_CGROUP", default="")
RUN_OPEN_FILES = at_least_one(env, "SLICEWISE_RUN_OPEN_FILES", default=65_536)
BUNDLE_LIMIT_BYTES = env.int("BUNDLE_LIMIT_BYTES", default=50 * 1024 * 1024)
# The time that a tear-down has, from the end of the function or the request to end it.
TEARDOWN_SECONDS = above_zero(env, "TEARDOWN_SECONDS", default=60.0)
LOADER_TIMEOUT_SECONDS = env.int("LOADER_TIMEOUT_SECONDS", default=60)
# Outages that a run survives: a failover of the database takes up to a minute, Spark may be away
# for hours. docs/adr/ has the reasons.
LEASE_SECONDS = env.int("LEASE_SECONDS", default=120)
PLATFORM_RETRY_HOURS = env.float("PLATFORM_RETRY_HOURS", default=6.0)
PLATFORM_RETRY_PAUSE_SECONDS = above_zero(env, "PLATFORM_RETRY_PAUSE_SECONDS", default=1.0)
PLATFORM_RETRY_LONGEST_PAUSE_SECONDS = above_zero(
    env, "PLATFORM_RETRY_LONGEST_PAUSE_SECONDS", default=300.0
)
LOST_ATTEMPTS_LIMIT = env.int("LOST_ATTEMPTS_LIMIT", default=8)
SUSPECT_AFTER_LOSSES = env.int("SUSPECT_AFTER_LOSSES", default=2)
SPARK_CHECK_SECONDS = above_zero(env, "SPARK_CHECK_SECONDS", default=2.0)
BACKFILL_NAME_PATTERN = env.str(
    "BACKFILL_NAME_PATTERN", default="backfill_{asset}_{timestamp:%Y%m%dT%H%M%S}"
)

# ---------------------------------------------------------------- the web server
# Threads of each process that run Django; requests that wait for a thread, before others get 503.
WEB_THREADS = at_least_one(env, "WEB_THREADS", default=4)
WEB_WAITING = at_least_one(env, "WEB_WAITING", default=128)

# ---------------------------------------------------------------- Django
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
ROOT_URLCONF = "slicewise_server.urls"
WSGI_APPLICATION = "slicewise_server.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts_app.User"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "slicewise_server.formats"
USE_I18N = False

INSTALLED_APPS = [
    "slicewise_server.admin_app.Admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "slicewise_server.admin_app.SignIns",
    "csp",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "slicewise_server.admin_app.Tokens",
    "rest_framework",
    "template_partials",
    "accounts_app",
    "partitions_app",
    "assets_app",
    "backfills_app",
    "slicewise_server.events",
    "slicewise_server.alerts",
    "slicewise_server.lineage",
    "slicewise_server.metrics",
    "slicewise_server.tracing",
]

if IS_COMMAND:
    ROOT_URLCONF = "slicewise_server.command_urls"
    INSTALLED_APPS = [
        "slicewise_server.command_apps.Auth",
        "slicewise_server.command_apps.ContentTypes",
        "knox",
        *(app for app in INSTALLED_APPS if app.endswith("s_app")),
        "slicewise_server.events",
        "slicewise_server.lineage",
    ]

MIDDLEWARE = [
    "slicewise_server.metrics.request_counting.MeasuringMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "slicewise_server.web.request_checks.PermissionsPolicyMiddleware",
    "slicewise_server.static_files.StaticFilesMiddleware",
    "slicewise_server.web.compression.CompressedPagesMiddleware",
    "csp.middleware.CSPMiddleware",
    # Before each middleware that reads a body.
    "slicewise_server.web.request_checks.BoundedBodyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "slicewise_server.web.request_checks.HostMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "accounts_app.middleware.SessionEndMiddleware",
    "accounts_app.middleware.StorableAddressMiddleware",
    "accounts_app.middleware.AuditOriginMiddleware",
    "accounts_app.middleware.DatabaseAwayMiddleware",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "slicewise_server.home.navigation.navigation",
                "slicewise_server.home.present_time.present_time",
            ],
        },
    },
]

if DATABASES["default"]["ENGINE"] != "django.db.backends.postgresql":
    raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL database (postgres://…).")
# A lost server, or a device that drops idle connections, is noticed within a minute. Keepalives do
# not cover a statement that is being sent: without a separate limit the kernel sends the statement
# again for a quarter of an hour, and the step of the tick waits meanwhile.
DATABASES["default"].setdefault("OPTIONS", {}).update(
    {
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
)
DATABASE_POOL_SIZE = env.int("DATABASE_POOL_SIZE", default=max(16, SLOTS + 4, WEB_THREADS + 4))
if DATABASE_POOL_SIZE:
    DATABASES["default"]["ENGINE"] = "slicewise_server.pooled"
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 0,
        "max_size": DATABASE_POOL_SIZE,
        "timeout": 5,
        # Pauses between tries of the pool double: after an early end the pool begins again with the
        # next request, so that a server that comes back is noticed in a second or two.
        "reconnect_timeout": 5,
    }

# Redis is required for the broker; the cache may be emptied at any moment.
CACHES = {
    "default": {
        "BACKEND": "slicewise_server.cache.JsonRedisCache",
        "LOCATION": cache_url(
            REDIS_URL,
            env.int("CACHE_REDIS_DB", default=None),
            env.str("CACHE_URL", default=""),
        ),
        "KEY_PREFIX": "slicewise",
    }
}

# ---------------------------------------------------------------- static files
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The web server fills this folder; below a data folder of root the web server may not write.
STATIC_ROOT = Path(env.str("STATIC_FOLDER", default="") or DATA_FOLDER / "static")
# Names contain a hash of the content, so that browsers cache files for a year. With DEBUG, files
# have plain names and are served from the source folders.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "slicewise_server.static_files.HashedFiles"},
}

# ---------------------------------------------------------------- sign-in and security
AUTHENTICATION_BACKENDS = [
    "accounts_app.backends.SignInLimits",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL
# The proxies whose header with the client address is trusted; the header of others is ignored.
TRUSTED_PROXIES = networks("TRUSTED_PROXIES", env.list("TRUSTED_PROXIES", default=[]))
AXES_CLIENT_IP_CALLABLE = "slicewise_server.web.addresses.limited_address"
AXES_FAILURE_LIMIT = at_least_one(env, "SIGN_IN_ATTEMPTS", default=10)
SIGN_IN_NAMES_PER_ADDRESS = at_least_one(env, "SIGN_IN_NAMES_PER_ADDRESS", default=20)
SIGN_IN_ATTEMPTS_PER_NAME = at_least_one(env, "SIGN_IN_ATTEMPTS_PER_NAME", default=30)
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_CALLABLE = "accounts_app.views.sign_in_refused"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# A refused attempt that was not tried does not count, so the announced wait stays correct.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_VERBOSE = False

# Cookies are sent over TLS only if the site is behind TLS; loopback has no TLS.
BEHIND_TLS = env.bool("BEHIND_TLS", default=False)
SESSION_COOKIE_SECURE = BEHIND_TLS
CSRF_COOKIE_SECURE = BEHIND_TLS
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = BEHIND_TLS
# Load balancers and supervisors send plain HTTP, to the address of a container.
HEALTH_ADDRESS = "/api/v1/health/"
# Prometheus sends its requests so as well, with a token or from a named network.
METRICS_ADDRESS = "/metrics"
SECURE_REDIRECT_EXEMPT = [rf"^{address[1:]}\Z" for address in (HEALTH_ADDRESS, METRICS_ADDRESS)]
SECURE_HSTS_SECONDS = 31_536_000 if BEHIND_TLS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# No page accepts files: a form with a file is refused before anything is written to disk.
FILE_UPLOAD_HANDLERS = ["slicewise_server.web.uploads.RefusingFiles"]

METRICS_TOKEN = metrics_token("METRICS_TOKEN", env.str("METRICS_TOKEN", default=""))
# With a token, or behind a proxy, which may be on this host, this host has no special rights.
METRICS_NETWORKS = networks(
    "METRICS_NETWORKS",
    env.list(
        "METRICS_NETWORKS",
        default=[] if METRICS_TOKEN or BEHIND_TLS else ["127.0.0.0/8", "::1"],
    ),
)
# Asset groups that have a label value of their own; all others share one.
METRICS_GROUPS = at_least_one(env, "METRICS_GROUPS", default=50)

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# ---------------------------------------------------------------- API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "slicewise_server.web.api.operations.OperationSchema",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
REST_KNOX = {
    "TOKEN_TTL": timedelta(days=90),
    "AUTH_HEADER_PREFIX": "Bearer",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Slicewise",
    "DESCRIPTION": "Partition-aware data assets: partitions, schedules, runs and backfills.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    # The labels are the words of pages, and repeat the values.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Enumerations that share the name of a field with others, or have several such names. Without a
    # name of ours each gets part of a hash, which changes with the values. Settings of a view would
    # not do: the names of the first description that a process generates stay in force.
    "ENUM_NAME_OVERRIDES": {
        "RunState": "assets_app.models.RunState",
        "SkipReason": "assets_app.models.SkipReason",
        "BackfillState": "backfills_app.models.BackfillState",
        "BackfillPartitionState": "backfills_app.models.BackfillPartition.State",
        "EventKind": "slicewise_server.events.models.EventKind",
        "ChannelKind": "slicewise_server.alerts.models.ChannelKind",
        "HealthState": "slicewise_server.api_health.HEALTH_STATES",
    },
}

# ---------------------------------------------------------------- Celery
# Each process with settings may send messages, so the app becomes Celery's current app here.
CELERY_APP_MODULE = "slicewise_server.celery"
_interval: type[float] = float
if not IS_COMMAND:
    importlib.import_module(CELERY_APP_MODULE)
    _interval = importlib.import_module("slicewise_server.intervals").AtMultiples
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A sender must notice a broker that is down, and not wait.
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    # For senders; workers keep trying to connect.
    "max_retries": 0,
}
CELERY_IMPORTS = [
    "accounts_app.tasks",
    "assets_app.scheduling.tasks",
    "assets_app.execution.tasks",
    "assets_app.catalogue.tasks",
    "backfills_app.tasks",
    "slicewise_server.events.tasks",
    "slicewise_server.alerts.tasks",
    "slicewise_server.lineage.tasks",
    "slicewise_server.metrics.tasks",
]
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = SLOTS
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
CELERY_BEAT_SCHEDULER = "slicewise_server.beat:SteadyScheduler"
# No message expires: a receiver would compare the sender's clock with the own clock. The queue
# `bulk` has a separate worker, so that ticks, dispatch and recovery never wait for long tasks.
CELERY_BEAT_SCHEDULE = {
    "tick": {
        "task": "assets_app.scheduling.tasks.tick",
        "schedule": _interval(0.2),
        "options": {"queue": "control"},
    },
    "check queue heads": {
        "task": "assets_app.execution.tasks.check_queues",
        "schedule": 60.0,
        "options": {"queue": "control"},
    },
    "watch freshness": {
        "task": "assets_app.scheduling.tasks.watch",
        "schedule": 2.0,
        "options": {"queue": "bulk"},
    },
    "advance backfills": {
        "task": "backfills_app.tasks.advance",
        "schedule": 0.5,
        "options": {"queue": "bulk"},
    },
    "forget old ticks": {
        "task": "assets_app.scheduling.tasks.forget",
        "schedule": 3600.0,
        "options": {"queue": "bulk"},
    },
    "publish events": {
        "task": "slicewise_server.events.tasks.publish",
        "schedule": 0.5,
        "options": {"queue": "bulk"},
    },
    "deliver alerts": {
        "task": "slicewise_server.alerts.tasks.deliver",
        "schedule": 1.0,
        "options": {"queue": "bulk"},
    },
    "forget old events": {
        "task": "slicewise_server.events.tasks.forget",
        "schedule": 600.0,
        "options": {"queue": "bulk"},
    },
    "forget old deliveries": {
        "task": "slicewise_server.alerts.tasks.forget",
        "schedule": 600.0,
        "options": {"queue": "bulk"},
    },
    # Events of some seconds are read together: that is cheaper by far than an event at a time.
    "send lineage": {
        "task": "slicewise_server.lineage.tasks.send",
        "schedule": 5.0,
        "options": {"queue": "bulk"},
    },
    "forget old lineage": {
        "task": "slicewise_server.lineage.tasks.forget",
        "schedule": 600.0,
        "options": {"queue": "bulk"},
    },
    "count runs": {
        "task": "slicewise_server.metrics.tasks.count",
        "schedule": 2.0,
        "options": {"queue": "bulk"},
    },
    "delete expired sessions": {
        "task": "accounts_app.tasks.delete_expired",
        "schedule": 3600.0,
        "options": {"queue": "bulk"},
    },
    "sync bundles": {
        "task": "assets_app.catalogue.tasks.sync_bundles",
        "schedule": 30.0,
        "options": {"queue": "bulk"},
    },
}

# ---------------------------------------------------------------- logs
LOGGING = log_lines.configure(
    level=env.str("LOG_LEVEL", default="INFO"), as_json=env.bool("LOG_JSON", default=False)
)
