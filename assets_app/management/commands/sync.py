"""``sync``: loads definition files and puts the declarations in force."""

from django.conf import settings
from django.core.management.base import CommandParser

from accounts_app.management.command import Failed, Refused, SlicewiseCommand
from assets_app.catalogue.services import SyncReport, retire_bundles, sync_bundle
from assets_app.queries.counts import StateCounts
from assets_app.queries.orphans import materialized_total, orphan_count
from slicewise.texts import counted, listed, masked_json, masked_text

_MOST_NAMED = 20


class Command(SlicewiseCommand):
    help = "Load the bundles that changed. Assets of a file with errors keep the last good version."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser, self.sync)
        parser.add_argument(
            "bundle", metavar="BUNDLE", nargs="*", help="a bundle; all without names"
        )

    def sync(self, bundle: list[str]) -> None:
        unknown = sorted(set(bundle) - set(settings.BUNDLES))
        if unknown:
            bundle_names = ", ".join(sorted(settings.BUNDLES)) or "none"
            raise Refused(
                f"No such bundle: {', '.join(unknown)}. SLICEWISE_BUNDLES has: {bundle_names}."
            )
        # No account is needed: the first sync may come before the first account.
        if not bundle:
            retire_bundles(settings.BUNDLES)
        reports = [
            sync_bundle(name, settings.BUNDLES[name], user=self.user)
            for name in bundle or settings.BUNDLES
        ]
        orphans = {report.bundle.name: _orphans(report) for report in reports}
        if self.json:
            self.print_json([_as_json(report, orphans[report.bundle.name]) for report in reports])
        else:
            for report in reports:
                self._print(report)
                self._print_orphans(orphans[report.bundle.name])
        broken = sum(len(report.errors) for report in reports)
        if broken:
            raise Failed(f"{counted(broken, 'error')} in the bundles.")

    def _print(self, report: SyncReport) -> None:
        change = "new version" if report.changed else "unchanged"
        self.say(f"{report.bundle.name}: {change}, {report.assets} assets")
        for error in report.errors:
            line = f":{error['line']}" if error.get("line") else ""
            self.note(f"  {error['path']}{line} {masked_text(error['message'])}")
        warned = report.bundle.assets.filter(active=True).exclude(warnings=[]).order_by("name")
        for asset in warned[:_MOST_NAMED]:
            for warning in asset.warnings:
                self.note(f"  asset {asset.name!r}: warning: {warning}")
        if report.kept:
            self.note(f"  At their last good version: {listed(report.kept, _MOST_NAMED)}")

    def _print_orphans(self, orphans: dict[str, int]) -> None:
        for asset, number in list(orphans.items())[:_MOST_NAMED]:
            self.note(
                f"  {asset} has data of {counted(number, 'partition')} that its definition does"
                f" not have: see slicewise partitions orphans {asset}"
            )
        if len(orphans) > _MOST_NAMED:
            self.note(f"  So have {counted(len(orphans) - _MOST_NAMED, 'more asset')}.")


def _orphans(report: SyncReport) -> dict[str, int]:
    """Return the number of orphans with data, by asset; empty for an unchanged bundle."""
    if not report.changed:
        return {}
    rows = report.bundle.assets.filter(active=True).select_related("partition_definition")
    assets = list(rows.annotate(materialized_total=materialized_total()).order_by("name"))
    counts = StateCounts(assets)
    return {
        asset.name: number
        for asset in assets
        if (number := orphan_count(asset, counts.settled(asset).get("materialized", 0)))
    }


def _as_json(report: SyncReport, orphans: dict[str, int]) -> dict[str, object]:
    return {
        "bundle": report.bundle.name,
        "version": report.version.digest if report.version else None,
        "changed": report.changed,
        "assets": report.assets,
        "errors": masked_json(report.errors),
        "kept": report.kept,
        "orphans": orphans,
    }
