"""The control groups of a worker's runs, by the setting SLICEWISE_RUN_CGROUP or as delegated."""

import logging

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from slicewise.runner.group_folder import (
    CGROUP_SETTING,
    GroupFolder,
    GroupFolderError,
    group_folder,
)
from slicewise.runner.run_groups import RunGroups

log = logging.getLogger(__name__)


def run_groups() -> RunGroups | None:
    """Start the control groups of this worker's runs, and log how runs are limited; None where the
    warm parent checks runs instead.

    Raises ImproperlyConfigured if the setting names a group that cannot be used. A delegated group
    that cannot be used is left alone, with a warning in the log.
    """
    try:
        folder = group_folder(settings.RUN_CGROUP)
    except GroupFolderError as error:
        raise ImproperlyConfigured(str(error)) from error
    groups = _started(folder)
    if groups is not None or folder.path is None:
        log.info("limits of runs", extra={"by": folder.sentence()})
    return groups


def _started(folder: GroupFolder) -> RunGroups | None:
    if folder.path is None:
        return None
    groups = RunGroups(folder.path)
    try:
        groups.start()
    except OSError as error:
        if folder.is_by_setting:
            raise ImproperlyConfigured(
                f"{CGROUP_SETTING} is {folder.path}, and no run can have a group there: {error}."
                " The folder has to be delegated to this worker, on Linux 4.19 or newer."
            ) from error
        log.warning(
            "limits of runs: no run can have a group below the delegated one, so the worker"
            " checks its runs ten times a second",
            extra={"group": str(folder.path), "error": str(error)},
        )
        return None
    return groups
