"""The versions of the code among which a retry or a re-run chooses: pages ask, commands tell."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from assets_app.models import ProducerVersion, Run

_MOST_NAMES = 5


class CodeChoice(NamedTuple):
    """The original code, and newer code in force.

    ``original`` is the version of all runs, and ``latest`` the newer version of the one function
    with newer code; None where there are several. ``changed_functions`` has the names of all
    functions with newer code.
    """

    original: ProducerVersion | None = None
    latest: ProducerVersion | None = None
    changed_functions: Sequence[str] = ()

    @property
    def note_on_original(self) -> str:
        """A sentence for a person who runs the original code by a command; empty without newer
        code.
        """
        if not self.changed_functions:
            return ""
        names = ", ".join(self.changed_functions[:_MOST_NAMES])
        return f"The original code runs, and {names} has newer code: --code newest runs that code."


def code_choice_of_runs(run_ids: Collection[int]) -> CodeChoice:
    """Return the choice for a retry of these runs: two statements."""
    pairs = Run.objects.filter(pk__in=run_ids).order_by()
    columns = ("producer_version", "asset__producer__current_version")
    return code_choice(pairs.values_list(*columns).distinct())


def code_choice(version_pairs: Iterable[tuple[int, int | None]]) -> CodeChoice:
    """Return the choice for pairs of the original version and the version in force, by id; the
    latter is None where no file declares the function any more. One statement.
    """
    pairs = set(version_pairs)
    original_ids = {original_id for original_id, _ in pairs}
    latest_ids = {
        latest_id
        for original_id, latest_id in pairs
        if latest_id is not None and latest_id != original_id
    }
    rows = ProducerVersion.objects.filter(pk__in=original_ids | latest_ids)
    columns = ("digest", "created_at", "producer__name")
    versions = rows.select_related("producer").only(*columns).in_bulk()
    latest_versions = [versions[pk] for pk in latest_ids if pk in versions]
    return CodeChoice(
        versions[min(original_ids)] if len(original_ids) == 1 else None,
        latest_versions[0] if len(latest_versions) == 1 else None,
        sorted(version.producer.name for version in latest_versions),
    )
