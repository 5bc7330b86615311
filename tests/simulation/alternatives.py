"""Schedules with terms of lateness: plain facts, and the expressions that a definition file has."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Alternative:
    """One alternative of a schedule, which is met if all terms of the alternative hold.

    `after` is the span of a term `After`, in hours, and `fresh` has assets, each with its span in
    hours.
    """

    assets: tuple[str, ...] = ()
    after: int = 0
    remake: bool = False
    fresh: tuple[tuple[str, int], ...] = ()
    cron: str = ""

    @property
    def span(self) -> timedelta:
        """Return the span of the term `After`."""
        return timedelta(hours=self.after)

    def source(self) -> str:
        """Return the expression of the alternative."""
        terms = [
            *self.assets,
            *(f"Fresh({name}, within=timedelta(hours={hours}))" for name, hours in self.fresh),
        ]
        if self.cron:
            terms.append(f"Cron({self.cron!r})")
        if self.after:
            remake = ", remake=True" if self.remake else ""
            terms.append(f"After(timedelta(hours={self.after}){remake})")
        return " & ".join(terms)
