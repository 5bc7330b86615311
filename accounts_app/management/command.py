"""The base of commands: the acting user, the output and the exit code.

Exit codes: 0, 1 for work that failed, 2 for a request that is refused or cannot be read.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.http import Http404

from accounts_app import policy
from accounts_app.models import User
from slicewise.texts import counted, masked_text, terminal_json, terminal_text
from slicewise_server.web.request_errors import InvalidRequest
from slicewise_server.web.storable import read_json_object

if TYPE_CHECKING:
    from rich.console import Console

# Functions that print JSON and tables import the libraries: a command is as fast as its imports.
USER_VARIABLE = "SLICEWISE_USER"
# Wide enough that no text is cut where the output goes to a file or another program.
FILE_WIDTH = 400
Act = Callable[..., None]
_LISTED = 5


class Refused(CommandError):
    """A wrong or forbidden request; nothing was done. Django prints the error with this name."""

    def __init__(self, message: str) -> None:
        super().__init__(terminal_safe(message), returncode=2)


class Failed(CommandError):
    """A correct request whose work did not succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(terminal_safe(message), returncode=1)


class SlicewiseCommand(BaseCommand):
    """Base of commands with verbs: ``assets list``, ``backfill create``.

    A verb is a method that takes options by name; every verb has ``--json`` and ``--as``.
    """

    requires_system_checks = []

    def add_verbs(self, parser: CommandParser) -> "argparse._SubParsersAction[CommandParser]":
        """Add and return the group of subparsers to which verbs are added."""
        return parser.add_subparsers(metavar="VERB", required=True, title="verbs")

    def add_verb(
        self, verbs: "argparse._SubParsersAction[CommandParser]", name: str, act: Act, about: str
    ) -> CommandParser:
        """Add a verb that calls ``act``; return the parser of the verb."""
        parser = verbs.add_parser(name, help=about, description=about)
        self.add_common(parser, act)
        return parser

    def add_common(self, parser: CommandParser, act: Act) -> None:
        """Add the options that every command has."""
        parser.set_defaults(act=act)
        parser.add_argument(
            "--json", action="store_true", help="print JSON, in the form of the API"
        )
        parser.add_argument(
            "--as",
            dest="acting_as",
            metavar="USERNAME",
            help=f"act as this user (else the environment's {USER_VARIABLE},"
            " else the first active superuser)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.json: bool = options["json"]
        self.acting_as: str | None = options["acting_as"]
        names = set(options) - _DJANGO_OPTIONS
        try:
            self.user = self.find_user()
            if self.user is not None:
                policy.require(self.user, policy.Action.VIEW)
            options["act"](**{name: options[name] for name in names})
        except InvalidRequest as error:
            raise Refused(_sentences(error)) from error
        except (PermissionDenied, Http404) as error:
            raise Refused(str(error)) from error

    def find_user(self) -> User | None:
        """Return the acting user as the help of ``--as`` says; None without a superuser."""
        name = self.acting_as or os.environ.get(USER_VARIABLE)
        users = User.objects.filter(is_active=True)
        if name:
            user = users.filter(username=name).first()
            if user is None:
                raise Refused(f"There is no active user {name!r}.")
            return user
        return users.filter(is_superuser=True).order_by("pk").first()

    @property
    def actor(self) -> User:
        """The acting user; refused where there is no user, since every write has an author."""
        if self.user is None:
            raise Refused(
                f"No user to act as: name a user by --as or {USER_VARIABLE},"
                " or create a superuser by createsuperuser."
            )
        return self.user

    # ------------------------------------------------------------ output

    def console(self) -> "Console":
        """Return the console that tables are printed to."""
        from rich.console import Console

        wide = None if self.stdout.isatty() else FILE_WIDTH
        return Console(
            file=cast(IO[str], self.stdout), width=wide, markup=False, emoji=False, highlight=False
        )

    def print_json(self, data: Any) -> None:
        from rest_framework.renderers import JSONRenderer

        plain = json.loads(JSONRenderer().render(data))
        self.stdout.write(terminal_json(json.dumps(plain, indent=2, ensure_ascii=False)))

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print numbers and text under headings; None becomes an empty cell."""
        from rich.table import Table

        table = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            table.add_row(
                *(
                    terminal_safe(cell_text(*named_value))
                    for named_value in zip(columns, row, strict=True)
                )
            )
        self.console().print(table)

    def print_facts(self, facts: dict[str, object]) -> None:
        """Print the facts of one object, one fact a line; empty facts are left out."""
        texts = [(name, fact_text(name, value)) for name, value in facts.items()]
        texts = [(name, text) for name, text in texts if text]
        width = max((len(name) for name, _ in texts), default=0)
        for name, text in texts:
            self.say(f"{name:<{width}}  {text}")

    def say(self, text: str = "") -> None:
        """Print a line."""
        self.stdout.write(terminal_safe(text))

    def print_text(self, text: str) -> None:
        """Print text without adding a newline: the text may end in the middle of a line."""
        self.stdout.write(terminal_safe(text), ending="")
        self.stdout.flush()

    def note(self, text: str) -> None:
        """Print a note for people, which no program should read."""
        self.stderr.write(terminal_safe(text), lambda message: message)


_DJANGO_OPTIONS = {
    "act", "acting_as", "json", "verbosity", "settings", "pythonpath", "traceback", "no_color",
    "force_color", "skip_checks", "stdout", "stderr",
}  # fmt: skip


def terminal_safe(text: str) -> str:
    """Return text in a form that is safe for a terminal: any text may hold words of user code.

    All output of a command comes through this function, except JSON, which has a function of its
    own.
    """
    return terminal_text(text)


def _sentences(error: InvalidRequest) -> str:
    return "\n".join(
        f"{field}: {sentence}" if field else sentence
        for field, sentences in error.errors.items()
        for sentence in sentences
    )


def fact_text(name: str, value: object) -> str:
    """Return a value as people read it: long lists shortened, durations in hours and minutes."""
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, dict):
        # The bounds of an estimate are in seconds, the unit in the name of the middle value.
        unit = "_seconds" if name == "estimate" else ""
        inner = (
            (key, fact_text(f"{key}{unit}" if isinstance(item, float) else str(key), item))
            for key, item in value.items()
        )
        return ", ".join(f"{key} {text}" for key, text in inner if text)
    if isinstance(value, list):
        texts = [fact_text(name, item) for item in value[:_LISTED]]
        more = f" and {len(value) - _LISTED:,} more" if len(value) > _LISTED else ""
        return ("; " if isinstance(value[0], dict) else ", ").join(texts) + more
    return cell_text(name, value)


def cell_text(name: str, value: object) -> str:
    """Return a single value as people read it; None gives an empty text.

    A number with ``seconds`` in the name is a duration, a rate (``per``) has three digits, and any
    other float as many digits as a person may have written.
    """
    if value is None:
        return ""
    if "seconds" in name.split("_") and isinstance(value, int | float):
        return duration_text(value)
    if isinstance(value, float):
        return f"{value:.3g}" if "per" in name.split("_") else f"{value:.10g}"
    return str(value)


def duration_text(seconds: float) -> str:
    """Return a duration in the two largest units: ``3 h 5 min``, ``4 min 10 s``, ``0.4 s``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, seconds_left = divmod(round(seconds), 60)
    hours, minutes_left = divmod(round(seconds / 60), 60)
    days, hours_left = divmod(hours, 24)
    if days:
        return f"{days} d {hours_left} h"
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {seconds_left} s"


def json_object(text: str) -> dict[str, Any]:
    """Parse the JSON object of an option, as argparse's ``type=``."""
    try:
        return read_json_object(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def failed_count_text(number: int, total: int) -> str:
    """Return a count of partitions without success: ``1 of 30 partitions was not materialized``."""
    verb = "was" if number == 1 else "were"
    return f"{number:,} of {counted(total, 'partition')} {verb} not materialized"


def partition_text(key: str) -> str:
    """Return a partition key as people read it: ``the whole asset`` for the empty key."""
    return key or "the whole asset"


def error_lines(errors: Iterable[tuple[int, str]]) -> list[str]:
    """Return lines such as ``run 12: ValueError: ...`` for errors, each given with a number of a
    run.

    Only the first line of an error is shown, equal lines once, and five lines at most before a
    count of the rest.
    """
    runs: dict[str, int] = {}
    for run, error in errors:
        runs.setdefault(masked_text(error.partition("\n")[0]), run)
    lines = [f"run {run}: {line}" for line, run in runs.items()]
    hidden_count = len(lines) - _LISTED
    more = (
        [f"and {counted(hidden_count, 'other error')}; see: slicewise runs list"]
        if hidden_count > 0
        else []
    )
    return lines[:_LISTED] + more


def at_least_zero(text: str) -> int:
    """Parse the count of an option, as argparse's ``type=``; 0 means all."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)
