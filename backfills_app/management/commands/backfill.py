"""``backfill``: requests to make partitions of the past."""

import argparse
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    Refused,
    SlicewiseCommand,
    at_least_zero,
    json_object,
)
from accounts_app.management.progress import Standing, wait_until_ended
from assets_app.api.assets import asset_named
from assets_app.api.runs import LARGEST_ID
from backfills_app.api.backfills import backfill_numbered
from backfills_app.models import Backfill, BackfillState, ExistingPolicy
from backfills_app.serializers import (
    BackfillDetailSerializer,
    BackfillPlanSerializer,
    BackfillSerializer,
)
from backfills_app.services import (
    cancel_backfill,
    check_backfill,
    create_backfill,
    request_from_text,
)


class Command(SlicewiseCommand):
    help = "Create, preview, list, show and cancel backfills."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        create = self.add_verb(verbs, "create", self.create, "Make partitions of the past.")
        preview = self.add_verb(verbs, "preview", self.preview, "Say what create would do.")
        for one in (create, preview):
            _add_request(one)
        create.add_argument(
            "--wait", action="store_true", help="wait for the end; exit with 1 if anything failed"
        )
        listed = self.add_verb(verbs, "list", self.list, "List backfills, newest first.")
        listed.add_argument("--asset", metavar="ASSET")
        listed.add_argument("--state", choices=BackfillState.values)
        listed.add_argument(
            "--limit", type=at_least_zero, default=50, help="at most so many; 0 for all"
        )
        show = self.add_verb(verbs, "show", self.show, "Show one backfill.")
        cancel = self.add_verb(verbs, "cancel", self.cancel, "Stop a backfill.")
        for one in (show, cancel):
            one.add_argument("backfill", type=int, metavar="BACKFILL")

    def create(self, wait: bool, asset: str, **fields: Any) -> None:
        backfill = create_backfill(request_from_text(asset, **fields), user=self.actor)
        if not self.json:
            self.stdout.write(f"Backfill {backfill.pk} {backfill.name} of {backfill.logical_dates}")
        if not wait:
            if self.json:
                self._print_json(backfill.pk)
            return
        end = wait_until_ended(backfill.name, lambda: standing_of(backfill.pk))
        if self.json:
            self._print_json(backfill.pk)
        if end.failed or end.state in (BackfillState.FAILED, BackfillState.CANCELED):
            raise Failed(
                f"Backfill {backfill.pk} has ended, {end.state}:"
                f" {end.failed} of {end.total} partitions were not made."
            )

    def preview(self, asset: str, **fields: Any) -> None:
        plan = check_backfill(request_from_text(asset, **fields), user=self.actor)
        data = BackfillPlanSerializer(plan).data
        if self.json:
            self.print_json(data)
        else:
            self.print_facts(data)

    def list(self, asset: str | None, state: str | None, limit: int) -> None:
        backfills = Backfill.objects.listed().order_by("-id")
        if asset:
            backfills = backfills.filter(asset=asset_named(asset))
        if state:
            backfills = backfills.filter(state=state)
        found = BackfillSerializer(backfills[:limit] if limit else backfills, many=True).data
        if self.json:
            self.print_json(found)
            return
        self.print_table(
            ("backfill", "asset", "partitions", "state", "made", "failed", "total", "by"),
            (
                (
                    each["id"],
                    each["asset"],
                    each["logical_dates"],
                    each["state"],
                    each["counts"]["succeeded"],
                    each["counts"]["failed"],
                    each["counts"]["total"],
                    each["submitted_by"],
                )
                for each in found
            ),
        )

    def show(self, backfill: int) -> None:
        detail = BackfillDetailSerializer(_backfill(backfill)).data
        if self.json:
            self.print_json(detail)
            return
        code, assets = detail.pop("origin_code"), detail.pop("assets")
        self.print_facts(detail | {"code": f"{len(code.splitlines())} lines (see --json)"})
        self.stdout.write("")
        names = (
            "asset",
            "total",
            "waiting",
            "active",
            "succeeded",
            "failed",
            "canceled",
            "skipped",
        )
        self.print_table(names, ([each[name] for name in names] for each in assets))

    def cancel(self, backfill: int) -> None:
        canceled = cancel_backfill(_backfill(backfill), user=self.actor)
        if self.json:
            self._print_json(canceled.pk)
        else:
            self.stdout.write(f"Backfill {canceled.pk} is {canceled.state}.")

    def _print_json(self, pk: int) -> None:
        self.print_json(BackfillDetailSerializer(backfill_numbered(pk)).data)


def standing_of(pk: int) -> Standing:
    """How far a backfill is."""
    backfill = backfill_numbered(pk)
    assets = list(backfill.assets.all())
    return Standing(
        total=sum(asset.total for asset in assets),
        done=sum(asset.done for asset in assets),
        # What was skipped was there, or another run made it; the reasons are on its page.
        failed=sum(asset.failed + asset.canceled for asset in assets),
        state=backfill.state,
        ended=backfill.ended,
    )


def _add_request(parser: CommandParser) -> None:
    parser.add_argument("asset", metavar="ASSET")
    parser.add_argument("start", metavar="START", help="key of the first partition: 2013-01-01")
    parser.add_argument("end", metavar="END", help="key of the last one, included: 2013-12-31")
    # What is left out is for the service to fill in.
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("--description", {}),
        ("--max-active-runs", {"metavar": "N", "help": "how many runs may run at once"}),
        ("--strategy", {"help": "partition, range, or how many partitions a run makes at most"}),
        (
            "--existing",
            {"choices": ExistingPolicy.values, "help": "which of the partitions to make"},
        ),
        ("--params", {"type": json_object, "metavar": "JSON"}),
    )
    for name, settings in options:
        parser.add_argument(name, default=argparse.SUPPRESS, **settings)


def _backfill(pk: int) -> Backfill:
    if not 0 < pk <= LARGEST_ID:
        raise Refused(f"There is no backfill {pk}.")
    return backfill_numbered(pk)
