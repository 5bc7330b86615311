"""Admins of partition definitions and runtime partitions."""

from django.contrib import admin

from accounts_app.admin import ReadOnlyAdmin
from partitions_app.models import PartitionDefinition, RuntimePartition


@admin.register(PartitionDefinition)
class PartitionDefinitionAdmin(ReadOnlyAdmin[PartitionDefinition]):
    """Partition definitions, created by loading definition files and never changed."""

    list_display = ("id", "kind", "identity", "short_fingerprint")
    list_filter = ("kind",)
    search_fields = ("fingerprint", "identity")

    @admin.display(description="fingerprint", ordering="fingerprint")
    def short_fingerprint(self, definition: PartitionDefinition) -> str:
        return definition.fingerprint[:12]


@admin.register(RuntimePartition)
class RuntimePartitionAdmin(ReadOnlyAdmin[RuntimePartition]):
    """Keys of runtime partitions."""

    list_display = ("key", "label", "definition", "added_by", "added_at", "removed_at")
    search_fields = ("key", "label")
