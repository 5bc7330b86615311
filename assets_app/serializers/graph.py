"""Serializers of the graph of assets, in a form that stays small for thousands of assets."""

from typing import Any

from rest_framework import serializers

from assets_app.queries.graph_folds import FoldKind


class GraphAssetSerializer(serializers.Serializer[Any]):
    """One asset of the graph."""

    name = serializers.CharField()
    group = serializers.CharField(allow_blank=True)
    paused = serializers.BooleanField()
    external = serializers.BooleanField(help_text="Whether another program writes the asset.")
    fold = serializers.IntegerField(
        allow_null=True, help_text="Position of the innermost fold with the asset in `folds`."
    )


class RelationSerializer(serializers.Serializer[Any]):
    """The way in which an asset depends on another one."""

    inlet = serializers.BooleanField(
        help_text="Whether the downstream asset reads the upstream asset."
    )
    scheduling = serializers.BooleanField(
        help_text="Whether the schedule of the downstream asset names the upstream asset."
    )
    mapping = serializers.CharField(help_text="The needed partitions, in words.")


class FoldSerializer(serializers.Serializer[Any]):
    """Assets that a picture of the graph shows as one node at first."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in FoldKind])
    outer = serializers.IntegerField(
        allow_null=True, help_text="Position of the fold that holds this fold."
    )
    size = serializers.IntegerField(help_text="Number of the assets.")


class AssetGraphSerializer(serializers.Serializer[Any]):
    """Declared assets, and the edges between the assets."""

    assets = GraphAssetSerializer(many=True)
    edges = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=3, max_length=3),
        help_text="For each edge the position of the upstream asset and of the downstream asset in"
        " `assets`, and of the relation in `relations`.",
    )
    relations = RelationSerializer(many=True)
    folds = FoldSerializer(many=True)


class GraphStatesSerializer(serializers.Serializer[Any]):
    """Numbers of partitions by state."""

    assets = serializers.DictField(
        child=serializers.DictField(child=serializers.IntegerField()),
        help_text="By name of the asset: the numbers of `expected` and `materialized` partitions,"
        " and of partitions that are `failed`, `overdue`, `running`, `queued`, `missing`,"
        " `canceled`, `skipped` or `stale`; without zeros. `overdue`"
        " partitions are also counted by state, `stale` partitions as `materialized`, and"
        " `running` and `queued` partitions as `materialized` or `missing`, if materialized or"
        " missing before. `expected` is left out where only runs know the partitions.",
    )
    not_counted = serializers.ListField(
        child=serializers.CharField(), help_text="States whose count would have taken too long."
    )
