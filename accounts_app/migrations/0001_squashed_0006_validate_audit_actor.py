"""The tables of users, grants, answered requests and the audit trail."""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts_app.migrations import _audit_trail

_REPLACED = (
    "0001_initial",
    "0002_grants",
    "0003_sign_in_generation",
    "0004_audit_trail_stays",
    "0005_no_form_data",
    "0006_validate_audit_actor",
)
_ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    replaces = [("accounts_app", name) for name in _REPLACED]
    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", _ID),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="date joined"
                    ),
                ),
                (
                    "sign_in_generation",
                    models.PositiveIntegerField(db_default=0, default=0, editable=False),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={"verbose_name": "user", "verbose_name_plural": "users", "abstract": False},
            managers=[("objects", django.contrib.auth.models.UserManager())],
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", _ID),
                (
                    "permission",
                    models.CharField(
                        choices=[("backfill", "Backfill")],
                        db_collation="C",
                        default="backfill",
                        max_length=20,
                    ),
                ),
                (
                    "asset",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="Either the name of one asset,",
                        max_length=250,
                    ),
                ),
                (
                    "asset_group",
                    models.CharField(
                        blank=True,
                        db_collation="C",
                        help_text="or a group of assets, with all that are in it now or later.",
                        max_length=200,
                    ),
                ),
                (
                    "people",
                    models.ForeignKey(
                        blank=True,
                        help_text="or all who are in this group.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="auth.group",
                        verbose_name="group of people",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        help_text="Either one person,",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="grants",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("asset_group", "asset", "id"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("person__isnull", True), ("people__isnull", True), _connector="XOR"
                        ),
                        name="grant_to_one",
                        violation_error_message="Name one person or one group of people.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("asset", ""), ("asset_group", ""), _connector="XOR"),
                        name="grant_on_one",
                        violation_error_message="Name one asset or one group of assets.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("permission__in", ("backfill",))),
                        name="grant_permission_known",
                    ),
                    models.UniqueConstraint(
                        fields=("permission", "person", "people", "asset", "asset_group"),
                        name="grant_once",
                        nulls_distinct=False,
                        violation_error_message="This is granted already.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotentRequest",
            fields=[
                ("id", _ID),
                ("key", models.CharField(db_collation="C", max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.JSONField(null=True)),
                ("location", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="idempotent_request_age")],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="idempotent_request_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", _ID),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor_name", models.CharField(max_length=150)),
                ("action", models.CharField(max_length=40)),
                ("subject_type", models.CharField(max_length=40)),
                ("subject", models.CharField(max_length=300)),
                ("detail", models.JSONField(default=dict)),
                ("address", models.GenericIPAddressField(null=True)),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(
                        fields=["subject_type", "subject", "-id"],
                        name="accounts_ap_subject_074934_idx",
                    )
                ],
            },
        ),
        # Not with the table: the constraint of such a field is made at the end of the migration, and
        # the statement below needs the constraint.
        migrations.AddField(
            model_name="auditentry",
            name="actor",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="audit_entries",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(_audit_trail.SET_NULL_WITH_ACCOUNT, migrations.RunSQL.noop),
        migrations.RunSQL(_audit_trail.CREATE_TRIGGERS, _audit_trail.DROP_TRIGGERS),
    ]
