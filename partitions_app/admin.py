"""Admin for the rules that say which partitions exist."""

from django.contrib import admin

from accounts_app.admin import ReadOnlyAdmin
from partitions_app.models import PartitionDefinition, RuntimePartition


@admin.register(PartitionDefinition)
class PartitionDefinitionAdmin(ReadOnlyAdmin[PartitionDefinition]):
    """Made by loading definition files; never changed."""

    list_display = ("id", "kind", "identity", "fingerprint")
    list_filter = ("kind",)
    search_fields = ("fingerprint", "identity")


@admin.register(RuntimePartition)
class RuntimePartitionAdmin(ReadOnlyAdmin[RuntimePartition]):
    """Keys that runs have found."""

    list_display = ("key", "label", "definition", "added_by", "added_at", "removed_at")
    search_fields = ("key", "label")
