"""Admins of accounts and the audit trail, and base classes of all admins, which ask the policy."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from axes.admin import AccessAttemptAdmin, AccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from knox.models import AuthToken

from accounts_app import audit
from accounts_app.models import AuditEntry, User
from accounts_app.page_policy import person_of
from accounts_app.policy import Action, Role, may
from accounts_app.services.sign_in_limits import unlock
from slicewise.texts import masked_json, masked_text
from slicewise_server.web.form_changes import changes_of, values_of

_Row = TypeVar("_Row", bound=Model)
_Parent = TypeVar("_Parent", bound=Model)
_DETAIL = "slicewise.audit_detail"


def masked_column(name: str) -> Callable[[Any, Any], str]:
    """Return a method of an admin that shows a field of the model with its secrets masked."""

    @admin.display(description=name.replace("_", " "), ordering=name)
    def masked(model_admin: Any, row: Any) -> str:
        value = getattr(row, name)
        return masked_text(value if isinstance(value, str) else json.dumps(masked_json(value)))

    return masked


class ReadOnlyAdmin(admin.ModelAdmin[_Row]):
    """Base of admins that show rows and change none; writes belong to services."""

    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.VIEW)

    def has_view_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return may(request.user, Action.VIEW)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return False


class ReadOnlyInline(admin.TabularInline[_Row, _Parent]):
    """Base of inlines that show the rows related to an object, and change none."""

    extra = 0
    can_delete = False
    template = "admin/edit_inline/read_only.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may(request.user, Action.VIEW)


class AdministeredAdmin(admin.ModelAdmin[_Row]):
    """Base of admins for the role admin, with an entry in the audit trail for each change."""

    # The word of the pages and the API, if the name of the model is another word.
    audit_subject_type = ""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.ADMINISTER)

    def has_view_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return may(request.user, Action.ADMINISTER)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request.user, Action.ADMINISTER)

    def has_change_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return may(request.user, Action.ADMINISTER)

    def has_delete_permission(self, request: HttpRequest, obj: _Row | None = None) -> bool:
        return may(request.user, Action.ADMINISTER)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        detail = {"set": values_of(form)} if add else {"changed": changes_of(form)}
        # The methods below write the entry after this call, and are not given the form.
        request.META[_DETAIL] = detail
        return super().construct_change_message(request, form, formsets, add)

    def log_addition(self, request: HttpRequest, obj: _Row, message: Any) -> Any:
        self._record(request, "create", obj, request.META.get(_DETAIL))
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: _Row, message: Any) -> Any:
        self._record(request, "change", obj, request.META.get(_DETAIL))
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            self._record(request, "delete", obj)
        return super().log_deletions(request, queryset)

    def audit_subject(self, obj: _Row) -> str:
        """Return the name of the row in entries of the audit trail."""
        return str(obj)

    def _record(
        self, request: HttpRequest, action: str, obj: _Row, detail: dict[str, Any] | None = None
    ) -> None:
        subject_type = self.audit_subject_type or obj._meta.model_name or ""
        audit.record(person_of(request), action, subject_type, self.audit_subject(obj), detail)


admin.site.unregister([Group, AuthToken, AccessAttempt, AccessLog, AccessFailureLog])


@admin.register(User)
class PeopleAdmin(AdministeredAdmin[User], UserAdmin[User]):
    """Accounts of people, with the roles of each account: groups are roles."""

    list_display = ("username", "email", "roles", "is_active", "is_superuser", "last_login")
    list_filter = ("groups", "is_active", "is_superuser")

    actions = ("unlock",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        # Facts, which nobody states.
        fields = (*super().get_readonly_fields(request, obj), "last_login", "date_joined")
        # The role admin assigns roles, and no more: an admin could become a superuser otherwise.
        escalating = () if _is_superuser(request) else ("is_superuser", "user_permissions")
        return (*fields, *escalating)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_change_account(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_change_account(request, obj)

    @admin.display
    def roles(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all())

    @admin.action(description="Unlock sign-in", permissions=["change"])
    def unlock(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            unlock(user, by=person_of(request))
            messages.success(request, f"{user} can sign in again.")


def _is_superuser(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_superuser


def _may_change_account(request: HttpRequest, user: User | None) -> bool:
    """Return whether the requester may change the account: only superusers change superusers."""
    return _is_superuser(request) or user is None or not user.is_superuser


@admin.register(Group)
class RolesAdmin(AdministeredAdmin[Group], GroupAdmin):
    """Roles and other groups. The group of a role can be neither renamed nor deleted."""

    def get_readonly_fields(
        self, request: HttpRequest, obj: Group | None = None
    ) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        return (*fields, "name") if _is_role(obj) else tuple(fields)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_role(obj)


def _is_role(group: Group | None) -> bool:
    return group is not None and group.name in set(Role)


@admin.register(AccessAttempt)
class AttemptsAdmin(AdministeredAdmin[Any], AccessAttemptAdmin):  # type: ignore[misc]
    """Failed sign-ins that count at present. Deleting a failed sign-in allows new attempts."""

    # Without axes' own action, which deletes attempts without an entry in the audit trail. The
    # site's action that deletes the selected attempts writes an entry.
    actions = ()
    audit_subject_type = "failed sign-in"
    # axes' own fields also show the form, which is not stored.
    fieldsets = None
    fields = readonly_fields = (
        *("username", "path_info", "failures_since_start", "attempt_time"),
        *("ip_address", "user_agent", "http_accept"),
    )

    def audit_subject(self, obj: Any) -> str:
        return f"{obj.username} from {obj.ip_address}"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AccessLog)
class AccessLogsAdmin(AdministeredAdmin[Any], AccessLogAdmin):  # type: ignore[misc]
    """Addresses from which people have signed in; rows cannot be changed."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AuthToken)
class TokenAdmin(AdministeredAdmin[Any]):
    """Tokens of programs, listed with owners. Admins revoke tokens; only the API creates tokens."""

    list_display = ("token_key", "user", "created", "expiry")
    list_select_related = ("user",)
    list_filter = ("created",)
    search_fields = ("user__username", "token_key")
    fields = readonly_fields = ("token_key", "user", "created", "expiry")
    audit_subject_type = "token"

    def audit_subject(self, obj: Any) -> str:
        return f"{obj.token_key} of {obj.user}"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """Audit trail: the actor, action, subject, time and address of each write."""

    list_display = ("at", "actor_name", "action", "subject_type", "subject", "address")
    list_filter = ("action", "subject_type", "at")
    search_fields = ("actor_name", "subject")
    exclude = ("detail",)
    readonly_fields = ("masked_detail",)
    masked_detail = masked_column("detail")
    list_select_related = ("actor",)
