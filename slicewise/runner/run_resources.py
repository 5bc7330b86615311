"""The user and the control group that one run has by itself, as far as runs have such."""

import logging
from dataclasses import dataclass

from slicewise.runner.run_groups import RunGroup
from slicewise.runner.slot_users import UserClaim

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunResources:
    """The user and the control group of one run; None where a run has no such."""

    claim: UserClaim | None = None
    group: RunGroup | None = None

    def release(self, *, is_user_gone: bool) -> None:
        """Release the resources after the end of the run. ``is_user_gone`` says that no process of
        the user is left.
        """
        self._remove_group()
        if self.claim is not None:
            try:
                self.claim.release(is_clean=is_user_gone)
            except OSError as error:
                log.warning("home of a run not removed", extra={"error": str(error)})

    def let_go(self) -> None:
        """Release the resources of a run that did not begin."""
        self._remove_group()
        if self.claim is not None:
            self.claim.let_go()

    def _remove_group(self) -> None:
        if self.group is not None:
            self.group.remove()
