"""Arguments that people try by mistake, and the replacement of each (AIP-75 asks for the list)."""

import difflib
from collections.abc import Collection, Mapping
from typing import Final

_NO_TEMPLATES = "the function is plain Python and nothing is rendered as a template"
_FRESHNESS = 'write freshness=Freshness(within=...), with alerts=[Alert("overdue", to=...)]'
_ONE_NODE = "every run is started by the server's own workers"
_SCHEDULED_BY_DATA = "schedule= says which assets a run waits for"

REPLACEMENTS: Final[Mapping[str, str]] = {
    # AIP-73's first draft, and slips
    "at": "write uri=...",
    "type": "write kind=...",
    "column": "write columns=[...]",
    "start": "write start_date=... for when writes begin, or"
    " partition=PartitionByInterval(..., start=...) for the first partition",
    "end": "write end_date=... for when writes stop, or"
    " partition=PartitionByInterval(..., end=...) for the last partition",
    # of @dag
    "dag_id": "write name=...",
    "schedule_interval": "write schedule=...",
    "timetable": "write schedule=...",
    "catchup": "activating an asset never makes history due; ask for a backfill",
    "default_args": 'keep shared arguments in a dict and write @asset(**shared, uri="...")',
    "dagrun_timeout": "write timeout=...",
    "dag_display_name": "write name=...; it may have spaces",
    "doc_md": "write description=..., or a docstring",
    "fail_fast": "an asset is one function, so there is nothing else to stop",
    "fail_stop": "an asset is one function, so there is nothing else to stop",
    "is_paused_upon_creation": "write paused=True",
    "max_active_tasks": "write max_active_runs=...",
    "concurrency": "write max_active_runs=...",
    "max_consecutive_failed_dag_runs": "an asset is paused by people, on its page",
    "on_success_callback": "write on_success=...",
    "on_failure_callback": "write on_failure=...",
    "sla_miss_callback": _FRESHNESS,
    "deadline": _FRESHNESS,
    "owner_links": "write owners=[...]",
    "access_control": "the roles of users hold the permissions",
    "template_searchpath": _NO_TEMPLATES,
    "template_undefined": _NO_TEMPLATES,
    "user_defined_macros": _NO_TEMPLATES,
    "user_defined_filters": _NO_TEMPLATES,
    "jinja_environment_kwargs": _NO_TEMPLATES,
    "render_template_as_native_obj": _NO_TEMPLATES,
    "auto_register": "every asset of a bundle is registered",
    "disable_bundle_versioning": "a run always uses one version of its bundle",
    "rerun_with_latest_version": "a run always uses one version of its bundle",
    "allowed_run_types": "the roles of users hold the permissions",
    "default_view": "pages have one view",
    "orientation": "pages have one view",
    # of @task
    "task_id": "write name=...",
    "task_display_name": "write name=...; it may have spaces",
    "python_callable": "decorate the function",
    "owner": "write owners=[...]",
    "email": "write on_failure=...",
    "email_on_retry": "write on_failure=...",
    "email_on_failure": "write on_failure=...",
    "retry_exponential_backoff": "the pause always doubles, up to an hour; write retry_delay=..."
    " for the first",
    "max_retry_delay": "the pause always doubles, up to an hour; write retry_delay=... for the"
    " first",
    "retry_policy": "write retries=... and retry_delay=...",
    "ignore_first_depends_on_past": "a first partition has no past to wait for",
    "wait_for_past_depends_before_skipping": "write depends_on_past=True",
    "wait_for_downstream": _SCHEDULED_BY_DATA,
    "priority_weight": "write priority=...",
    "weight_rule": "write priority=...",
    "queue": _ONE_NODE,
    "executor": _ONE_NODE,
    "executor_config": "write spark_conf={...}",
    "run_as_user": _ONE_NODE,
    "resources": "write spark_conf={...}",
    "pool": "write max_active_runs=..., or ask for a backfill with slots of its own",
    "pool_slots": "write max_active_runs=..., or ask for a backfill with slots of its own",
    "sla": _FRESHNESS,
    "execution_timeout": "write timeout=...",
    "on_execute_callback": "write setup=...",
    "on_retry_callback": "write on_failure=...",
    "on_skipped_callback": "a skipped partition is recorded with the reason and calls nothing",
    "pre_execute": "write setup=..., or inlet_validations={...}",
    "post_execute": "write teardown=..., or outlet_validations=[...]",
    "trigger_rule": _SCHEDULED_BY_DATA,
    "map_index_template": "a run is named after its partition",
    "max_active_tis_per_dag": "write max_active_runs=...",
    "max_active_tis_per_dagrun": "write strategy=..., which says how many partitions a run covers",
    "task_concurrency": "write max_active_runs=...",
    "do_xcom_push": "the returned DataFrame is written to the asset",
    "multiple_outputs": "write @asset.multi(outlets=[...])",
    "show_return_value_in_logs": "the returned DataFrame is written to the asset",
    "outlets": "write @asset.multi(outlets=[...])",
    "op_args": "write params={...}, read from context['params']",
    "op_kwargs": "write params={...}, read from context['params']",
    "templates_dict": _NO_TEMPLATES,
    "templates_exts": _NO_TEMPLATES,
    "task_group": "write group=...",
    "dag": "an asset stands alone",
    "doc": "write description=..., or a docstring",
    "doc_json": "write description=..., or a docstring",
    "doc_yaml": "write description=..., or a docstring",
    "doc_rst": "write description=..., or a docstring",
    "logger_name": "log lines of the function, by any logger, are kept with the run",
    "allow_nested_operators": "an asset is one function",
}
"""The replacement of an argument, or the reason why there is none, by the name that was tried."""

OUTLET_ARGUMENTS: Final = ("name", "uri", "kind", "format", "columns", "outlet_validations")
"""The arguments of `@asset` that `@asset.multi` lacks, since each outlet has its own value."""


def unknown_argument(called: str, name: str, known_names: Collection[str]) -> str:
    """Return the sentence for an argument that does not exist."""
    if name in REPLACEMENTS:
        return f"{called} has no argument {name!r}: {REPLACEMENTS[name]}"
    return (
        f"{called} has no argument {name!r}; {name_hint(name, known_names, most=len(known_names))}"
    )


def spelling_hint(name: str, known_names: Collection[str]) -> str:
    """Return `` (did you mean 'x'?)`` if a known name is spelled alike, else the empty text."""
    matches = difflib.get_close_matches(name, known_names, n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def name_hint(
    name: str, known_names: Collection[str], *, otherwise: str = "no name is known", most: int = 30
) -> str:
    """Return ``did you mean 'x'?`` if a known name is spelled alike, else a list of known names.

    ``most`` is the greatest number of listed names; ``otherwise`` is the text for no known names.
    """
    matches = difflib.get_close_matches(name, known_names, n=1)
    if matches:
        return f"did you mean {matches[0]!r}?"
    shown = ", ".join(sorted(known_names)[:most])
    return f"use one of {shown}" if shown else otherwise
