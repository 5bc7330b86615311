"""``sync``: load the definition files and put what they declare in force."""

from django.conf import settings
from django.core.management.base import CommandParser

from accounts_app.management.command import Failed, Refused, SlicewiseCommand
from assets_app.catalogue.services import SyncReport, retire_bundles, sync_bundle


class Command(SlicewiseCommand):
    help = "Load the bundles that changed; a broken file leaves its last good version in force."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser, self.sync)
        parser.add_argument("bundle", metavar="BUNDLE", nargs="*", help="only these")

    def sync(self, bundle: list[str]) -> None:
        unknown = sorted(set(bundle) - set(settings.BUNDLES))
        if unknown:
            known = ", ".join(sorted(settings.BUNDLES)) or "none"
            raise Refused(f"No such bundle: {', '.join(unknown)}. SLICEWISE_BUNDLES has: {known}.")
        # Nobody has to be there yet: the first sync may come before the first account.
        if not bundle:
            retire_bundles(settings.BUNDLES)
        reports = [
            sync_bundle(name, settings.BUNDLES[name], user=self.user)
            for name in bundle or settings.BUNDLES
        ]
        if self.json:
            self.print_json([_as_json(report) for report in reports])
        else:
            for report in reports:
                self._print(report)
        broken = sum(len(report.errors) for report in reports)
        if broken:
            raise Failed(f"{broken} error{'' if broken == 1 else 's'} in what the bundles declare.")

    def _print(self, report: SyncReport) -> None:
        change = "new version" if report.changed else "unchanged"
        self.stdout.write(f"{report.bundle.name}: {change}, {report.assets} assets")
        for error in report.errors:
            line = f":{error['line']}" if error.get("line") else ""
            self.note(f"  {error['path']}{line} {error['message']}")


def _as_json(report: SyncReport) -> dict[str, object]:
    return {
        "bundle": report.bundle.name,
        "version": report.version.digest if report.version else None,
        "changed": report.changed,
        "assets": report.assets,
        "errors": report.errors,
    }
