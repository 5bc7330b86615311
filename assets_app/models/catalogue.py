"""Declarations: bundles and bundle versions, producers, assets, and dependencies between assets."""

from collections.abc import Collection
from typing import Any

from django.db import models

import slicewise
from partitions_app.models import PartitionDefinition
from slicewise.declaring import ProducerSpec, outlet_names
from slicewise.uris import checked_location


class Bundle(models.Model):
    """A folder of definition files."""

    name = models.CharField(max_length=200, unique=True)
    path = models.TextField()
    current_version = models.ForeignKey(
        "BundleVersion", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The error that kept the folder as a whole from being loaded; errors of single files are in the
    # version.
    error = models.TextField(blank=True)
    checked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class BundleVersion(models.Model):
    """An immutable snapshot of a bundle, named by the digest of its content."""

    bundle = models.ForeignKey(Bundle, on_delete=models.CASCADE, related_name="versions")
    digest = models.CharField(max_length=64)
    archive = models.BinaryField()
    # [{"path", "message", "traceback", "line", "asset"}]: files that could not be loaded; with
    # "asset_only" the rest of the file is in force.
    import_errors = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("bundle", "digest"), name="bundle_version_digest"),
        )

    def __str__(self) -> str:
        return f"{self.bundle_id} {self.digest[:12]}"


class Producer(models.Model):
    """One function that materializes one asset, or several."""

    name = models.CharField(max_length=250, unique=True)
    bundle = models.ForeignKey(Bundle, on_delete=models.CASCADE, related_name="producers")
    current_version = models.ForeignKey(
        "ProducerVersion", null=True, on_delete=models.SET_NULL, related_name="+"
    )

    def __str__(self) -> str:
        return self.name

    @property
    def outlet_names(self) -> Collection[str]:
        """Names of the assets that the version in force materializes."""
        version = self.current_version
        return [] if version is None else outlet_names(version.definition)


class ProducerVersion(models.Model):
    """A producer as one bundle version declares it; ``definition`` is the report of the loader."""

    producer = models.ForeignKey(Producer, on_delete=models.CASCADE, related_name="versions")
    bundle_version = models.ForeignKey(BundleVersion, on_delete=models.PROTECT, related_name="+")
    # Digest of the definition with its source: an unchanged version is not stored twice in a row.
    digest = models.CharField(max_length=64)
    definition = models.JSONField()
    source = models.TextField()
    file = models.CharField(max_length=1000)
    created_at = models.DateTimeField(auto_now_add=True)

    # The JSON that was read, and its value.
    _spec: tuple[Any, ProducerSpec] | None = None

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.producer_id} {self.digest[:12]}"

    @property
    def spec(self) -> ProducerSpec:
        """The declaration, read once from ``definition``."""
        if self._spec is None or self._spec[0] is not self.definition:
            self._spec = self.definition, ProducerSpec.from_json(self.definition)
        return self._spec[1]

    def definition_of(self, asset: str) -> slicewise.PartitionDefinition | None:
        """Return the partition definition of an outlet, with its present runtime keys; None without
        partitions.
        """
        return PartitionDefinition.rule_of(self.spec.partition_of(asset))

    @property
    def outlets(self) -> dict[str, str]:
        """URIs of the outlets by asset name, in order; empty for an outlet without a URI."""
        return {outlet.name: outlet.uri or "" for outlet in self.spec.outlets}

    @property
    def canonical_uris(self) -> dict[str, str]:
        """Canonical locations of the outlets by asset name; empty for an outlet without a URI."""
        return {name: checked_location(uri)[0] if uri else "" for name, uri in self.outlets.items()}


class AssetQuerySet(models.QuerySet["Asset"]):
    """Assets, with the related rows that lists and pages show."""

    def declared(self) -> "AssetQuerySet":
        """Select assets that a loaded file declares, with definition, producer and schedule."""
        rows = self.filter(active=True)
        return rows.select_related("partition_definition", "producer__schedule")


class Asset(models.Model):
    """A named collection of data. An asset without a producer is written by another program."""

    name = models.CharField(max_length=250, unique=True, db_collation="C")
    bundle = models.ForeignKey(Bundle, on_delete=models.CASCADE, related_name="assets")
    producer = models.ForeignKey(
        Producer, null=True, on_delete=models.SET_NULL, related_name="assets"
    )
    partition_definition = models.ForeignKey(
        PartitionDefinition, null=True, on_delete=models.PROTECT, related_name="assets"
    )
    uri = models.TextField(blank=True)
    canonical_uri = models.TextField(blank=True, db_index=True)
    kind = models.CharField(max_length=100, blank=True)
    # The format of the files, where Slicewise reads and writes the files.
    format = models.CharField(max_length=20, blank=True)
    group = models.CharField(max_length=200, blank=True)
    owners = models.JSONField(default=list)
    tags = models.JSONField(default=list)
    # [{"kinds", "to", "gather_seconds"}]: the alerts that the definition file declares.
    alerts = models.JSONField(default=list)
    columns = models.JSONField(null=True)
    # Validations of the written data, as the loader reported them.
    outlet_validations = models.JSONField(default=list)
    description = models.TextField(blank=True)
    schedule = models.JSONField(null=True)
    # The declaring file in the bundle, and the warnings of the loader about the declaration.
    file = models.CharField(max_length=1000, blank=True)
    warnings = models.JSONField(default=list)
    paused = models.BooleanField(default=False)
    # False when no loaded file declares the asset any more; its history stays.
    active = models.BooleanField(default=True)
    activated_at = models.DateTimeField(auto_now_add=True)

    objects = AssetQuerySet.as_manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def definition(self) -> slicewise.PartitionDefinition | None:
        """The partition definition as a value of the SDK; None without partitions. Runtime keys
        are the keys that were known when the row was read.
        """
        row = self.partition_definition
        return None if row is None else row.definition

    @property
    def identity(self) -> str:
        """The identity under which partitions are kept; ``"whole"`` for an asset without
        partitions.
        """
        row = self.partition_definition
        return "whole" if row is None else row.identity

    @property
    def finds_partitions(self) -> bool:
        """Whether the partitions of the asset are found at run time."""
        row = self.partition_definition
        return row is not None and row.kind == slicewise.PartitionAtRuntime.kind

    @property
    def materialized_with(self) -> list[str]:
        """Names of the other assets that the function of this asset materializes: a run
        materializes all of these assets, and holds all of them meanwhile.
        """
        version = self.producer.current_version if self.producer else None
        names = [] if version is None else version.spec.outlet_names
        return [name for name in names if name != self.name]


class AssetDependency(models.Model):
    """A downstream asset that reads an upstream asset, is scheduled by it, or needs it fresh."""

    upstream = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="downstream_edges")
    downstream = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="upstream_edges")
    inlet = models.BooleanField(default=False)
    scheduling = models.BooleanField(default=False)
    # The schedule asks that the upstream asset be fresh.
    fresh = models.BooleanField(default=False, db_default=False)
    mapping = models.JSONField(null=True)

    class Meta:
        verbose_name_plural = "asset dependencies"
        constraints = (
            models.UniqueConstraint(fields=("upstream", "downstream"), name="dependency_once"),
        )

    def __str__(self) -> str:
        return f"{self.upstream_id} -> {self.downstream_id}"
