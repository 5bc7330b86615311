"""Backfills: requests to materialize partitions of the past (the backfill table of the source
design), with a row for each asset and a row for each partition.
"""

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Prefetch, Q

from assets_app.models import (
    Asset,
    BundleVersion,
    ProducerVersion,
    RunGroup,
)
from backfills_app.models.states import (
    ENDED_STATES,
    FAILED_STATES,
    AssetRole,
    BackfillOrder,
    BackfillState,
    ExistingPolicy,
    a_run_for_each,
)
from backfills_app.queries.chosen import chosen_text


class BackfillQuerySet(models.QuerySet["Backfill"]):
    """A queryset of backfills with the related rows that lists and pages show."""

    def listed(self) -> "BackfillQuerySet":
        """Select backfills that are not deleted, with the related rows of a line in a list: two
        queries.
        """
        return self.recorded().filter(deleted=False)

    def recorded(self) -> "BackfillQuerySet":
        """Select all backfills, deleted ones too, with their assets and counts: two queries."""
        return (
            self.select_related("asset__partition_definition", "submitted_by", "group")
            .defer("asset__partition_definition__spec")
            .prefetch_related("assets__asset")
        )

    def of_submission(self, submission: str) -> "Backfill | None":
        """Return the backfill that a submission of a form has created; None if there is none."""
        return self.filter(submission=submission).first()

    def choosing(self, name: str) -> "BackfillQuerySet":
        """Select backfills for which the asset was chosen, alone or among several."""
        chosen = self.model.objects.filter(assets__asset__name=name, assets__role="chosen")
        return self.filter(pk__in=chosen.values("pk"))

    def with_code_versions(self) -> "BackfillQuerySet":
        """Select backfills with their assets, counts and versions of the code: three queries."""
        version = Prefetch(
            "assets__producer_version", ProducerVersion.objects.only("digest", "producer")
        )
        rows = self.recorded().select_related("code_version").prefetch_related(version)
        return rows.defer("asset__partition_definition__spec", "code_version__archive")


class Backfill(models.Model):
    """A person's request to materialize a range of partitions.

    Column names are the names of the source design where the source design has the column.
    """

    name = models.CharField(max_length=250, unique=True)
    # The first chosen asset with time, or the first one if none has time; BackfillAsset has all
    # assets.
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="backfills")
    state = models.CharField(
        max_length=16, choices=BackfillState, default=BackfillState.CREATING, db_collation="C"
    )
    description = models.CharField(max_length=1000, blank=True)
    # Half-open hull of the requested windows.
    start_date = models.DateTimeField()
    end_date = models.DateTimeField()
    # The partitions, as text of the selection grammar.
    logical_dates = models.TextField()
    # How assets and partitions were chosen, by the names of the request's fields. Empty for
    # partitions of one asset; set for several assets, a group, a tag, and for a request with
    # upstream assets.
    chosen_by = models.JSONField(default=dict)
    # Digest of the form that was submitted: the same form sent twice creates one backfill. Null for
    # requests of programs, which have the header Idempotency-Key.
    submission = models.CharField(
        max_length=64, null=True, blank=True, unique=True, editable=False, db_collation="C"
    )
    params = models.JSONField(default=dict)
    max_active_runs = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    # The asset's strategy at submission, or the strategy of the request: "partition", "range" or a
    # number.
    strategy = models.JSONField()
    order = models.CharField(
        max_length=10, choices=BackfillOrder, default=BackfillOrder.OLDEST, db_default="oldest"
    )
    # Whether a run of several partitions may reach over partitions that the run does not
    # materialize.
    allow_holes = models.BooleanField(default=False, db_default=False)
    existing = models.CharField(
        max_length=20, choices=ExistingPolicy, default=ExistingPolicy.MISSING_AND_FAILED
    )
    # The time from which runs may start; null for at once.
    scheduled_date = models.DateTimeField(null=True)
    delete_date = models.DateTimeField(null=True)
    relative_fileloc = models.CharField(max_length=1000, blank=True)
    # Source text as frozen at submission; runs use the version in BackfillAsset.
    origin_code = models.TextField(blank=True)
    # The bundle version that the code was frozen from.
    code_version = models.ForeignKey(
        BundleVersion, null=True, on_delete=models.PROTECT, related_name="+"
    )
    submitted_at = models.DateTimeField()
    submitted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="backfills"
    )
    updated_at = models.DateTimeField(auto_now=True)
    deleted = models.BooleanField(default=False)
    run_start_date = models.DateTimeField(null=True)
    run_end_date = models.DateTimeField(null=True)
    group = models.OneToOneField(RunGroup, on_delete=models.PROTECT, related_name="backfill")
    error = models.TextField(blank=True)
    # The reason why the backfill does not advance, and the time of the next try; in the end the
    # backfill may be given up.
    stalled_since = models.DateTimeField(null=True)
    stalled_error = models.TextField(blank=True, default="", db_default="")
    try_again_at = models.DateTimeField(null=True)

    objects = BackfillQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=BackfillState.values), name="backfill_state_known"
            ),
            models.CheckConstraint(condition=Q(max_active_runs__gt=0), name="backfill_active_runs"),
            models.CheckConstraint(
                condition=Q(order__in=BackfillOrder.values), name="backfill_order_known"
            ),
            models.CheckConstraint(
                condition=Q(start_date__lt=models.F("end_date")), name="backfill_range_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ENDED_STATES, run_end_date__isnull=False)
                | (~Q(state__in=ENDED_STATES) & Q(run_end_date__isnull=True)),
                name="backfill_ended_when_terminal",
            ),
        )
        indexes = (
            models.Index(
                fields=("id",), condition=~Q(state__in=ENDED_STATES), name="backfill_unfinished"
            ),
            models.Index(
                fields=("-run_end_date",),
                condition=Q(deleted=False, state__in=FAILED_STATES),
                name="backfill_failed",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        """The chosen assets in words, as the person chose the assets: ``group flights``."""
        return chosen_text(self.chosen_by, self.asset.name)

    @property
    def is_of_one(self) -> bool:
        """Whether one asset was chosen by its name."""
        return self.title == self.asset.name

    @property
    def paused(self) -> bool:
        """Whether a person has paused the backfill. A cancellation pauses the group too, and does
        not count.
        """
        return self.group.paused and self.state != BackfillState.CANCELING

    @property
    def ended(self) -> bool:
        """Whether the backfill has ended, so that nothing more happens without a request."""
        return self.state in ENDED_STATES


class BackfillAsset(models.Model):
    """One asset of a backfill, at the version frozen at submission, with the counts of its
    partitions.

    Each transition of partitions changes the counts in the same transaction; the check makes counts
    of more partitions than there are rows impossible.
    """

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="assets")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="+")
    producer_version = models.ForeignKey(
        ProducerVersion, on_delete=models.PROTECT, related_name="+"
    )
    # Upstream before downstream.
    position = models.PositiveIntegerField(default=0)
    role = models.CharField(
        max_length=10, choices=AssetRole, default=AssetRole.CHOSEN, db_default="chosen"
    )
    # The partitions, as text of the selection grammar (in the order of the request where the order
    # is "listed"); the split into runs; the params of the function.
    selection = models.TextField(blank=True, default="")
    strategy = models.JSONField(default=a_run_for_each)
    params = models.JSONField(default=dict)
    # The partition definition when the request was accepted, as JSON, empty for an asset without
    # partitions: rows are numbered by it, and positions must not move. Null in rows from before
    # this column: the definition of the version.
    partition = models.JSONField(null=True)
    # The mapping of the edge by which the asset follows; null for overlap, and if it does not
    # follow.
    mapping = models.JSONField(null=True)
    # The number of partitions that the request names, and the number of rows written by now.
    total = models.PositiveIntegerField(default=0)
    expanded = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    active = models.PositiveIntegerField(default=0)
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    canceled = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(fields=("backfill", "asset"), name="backfill_asset_once"),
            models.CheckConstraint(
                condition=Q(role__in=AssetRole.values), name="backfill_asset_role_known"
            ),
            models.CheckConstraint(
                condition=Q(
                    expanded=models.F("waiting")
                    + models.F("active")
                    + models.F("succeeded")
                    + models.F("failed")
                    + models.F("canceled")
                    + models.F("skipped")
                ),
                name="backfill_counts_add_up",
            ),
            models.CheckConstraint(
                condition=Q(expanded__lte=models.F("total")), name="backfill_expanded_within_total"
            ),
        )

    def __str__(self) -> str:
        return self.asset.name
