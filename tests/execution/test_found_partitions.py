"""Runs that find partitions: held keys, added keys, and readers of the keys (AIP-76)."""

from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.intending import DiscoveredKeysHeld
from assets_app.execution.attempt.keys import sent_keys
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.attempt.past_partitions import PastPartitions
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize, selected_rows
from assets_app.models import Asset, AssetPartition, Gateway, Materialization, Run
from partitions_app.models import PartitionDefinition, RuntimePartition
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.factories import asset, definition_of, outlet_of, together
from tests.partition_records import counts_agree_with_partitions
from tests.runtime_keys import CUSTOMERS, Position, discover, discovering, found, known

pytestmark = pytest.mark.django_db


def states(of: Asset) -> dict[str, tuple[str, int]]:
    rows = AssetPartition.objects.filter(asset=of, identity=of.identity).order_by("key")
    return {row.key: (row.state, row.version) for row in rows}


@pytest.fixture
def models(db: None) -> Asset:
    return asset("energy_consumption_model", CUSTOMERS)


def test_a_run_without_a_key_covers_no_partition(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = discovering(models, alice, gateway)
    assert (attempt.is_discovering, attempt.keys) == (True, [])
    assert states(models) == {}
    assert (attempt.run.selection, attempt.run.partition_count) == ("", 0)


def test_two_runs_of_an_asset_never_find_partitions_at_once(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discovering(models, alice, gateway)
    with pytest.raises(
        ConflictingRequest, match="Another run is materializing energy_consumption_model"
    ):
        materialize(MaterializeRequest(asset=models), user=alice)


def test_keys_are_partitions_once_the_run_has_succeeded(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = discovering(models, alice, gateway)
    assert attempts.intend_to_publish(attempt.row, [], found("globex", "acme"))
    assert known(models) == []
    assert ending.succeed(attempt.row)
    assert known(models) == ["acme", "globex"]
    assert states(models) == {"acme": ("materialized", 1), "globex": ("materialized", 1)}
    added = RuntimePartition.objects.get(key="acme")
    assert (added.added_by, added.label, added.content) == (attempt.run.pk, "acme", "acme")
    run = Run.objects.get()
    # In the order in which they were found.
    assert (run.partition_count, run.selection) == (2, "globex … acme (2 partitions)")
    assert counts_agree_with_partitions()


def test_a_failed_run_adds_none(models: Asset, alice: User, gateway: Gateway) -> None:
    attempt = discovering(models, alice, gateway)
    assert ending.fail(attempt.row, Failure(error="ValueError: no"))
    assert known(models) == []
    assert states(models) == {}
    discover(models, alice, gateway, "acme")
    assert known(models) == ["acme"]


def test_of_a_publication_that_fails_those_are_added_of_which_data_is_in_place(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = discovering(models, alice, gateway)
    staged = [{"key": key, "path": key, "rows": 1, "bytes": 1} for key in ("acme", "globex")]
    outlet = outlet_of(attempt, staged)
    assert attempts.intend_to_publish(attempt.row, [outlet], found("acme", "globex"))
    in_place = {models.pk: ["acme"]}
    assert ending.fail_publishing(attempt.row, Failure(error="in the way"), in_place)
    assert known(models) == ["acme"]
    assert states(models) == {"acme": ("materialized", 1), "globex": ("failed", 0)}
    assert counts_agree_with_partitions()


def test_data_that_a_run_has_written_is_recorded_with_its_key(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme", "globex", written=["acme"])
    rows = dict(AssetPartition.objects.filter(identity=models.identity).values_list("key", "rows"))
    assert rows == {"acme": 3, "globex": None}


def test_a_key_that_is_found_again_is_recorded_again(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme")
    discover(models, alice, gateway, "acme", "globex")
    assert states(models) == {"acme": ("materialized", 2), "globex": ("materialized", 1)}
    assert RuntimePartition.objects.count() == 2
    materializations = Materialization.objects.filter(partition__identity=models.identity)
    assert materializations.count() == 3


def test_all_assets_of_a_set_know_its_keys(models: Asset, alice: User, gateway: Gateway) -> None:
    prediction = asset("energy_prediction", CUSTOMERS)
    asset("elsewhere", slicewise.PartitionAtRuntime(name="other_customers"))
    discover(models, alice, gateway, "acme", "apex", "globex")
    prediction = Asset.objects.get(pk=prediction.pk)
    now = timezone.now()
    assert [row.key for row in selected_rows(prediction, "a*", now=now)] == ["acme", "apex"]
    assert len(selected_rows(prediction, "*", now=now)) == 3
    assert known(Asset.objects.get(name="elsewhere")) == []
    with pytest.raises(InvalidRequest, match="initech"):
        selected_rows(prediction, "initech", now=now)


def test_a_key_is_made_by_itself_once_it_is_known(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme", 7)
    models = Asset.objects.get(pk=models.pk)
    group = materialize(MaterializeRequest(asset=models, selection="7"), user=alice)
    dispatch()
    attempt = attempts.begin(group.runs.get().pk, gateway)
    assert attempt is not None
    assert (attempt.keys, attempt.is_discovering) == (["7"], False)
    # A number, not its text.
    assert sent_keys(models.definition, attempt.keys) == [{"key": 7}]
    question = {"type": "ask", "question": "past_partitions"}
    assert PastPartitions(attempt).answer(question)["keys"] == [{"key": "acme"}]


def test_a_key_of_ones_own_class_is_shown_by_its_label(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, Position(1, 2))
    assert RuntimePartition.objects.get().label == "1 right, 2 up"
    assert definition_of(Asset.objects.get(pk=models.pk)).keys()[0] == Position(1, 2)


def test_a_discovery_run_does_not_write_partitions_held_by_another_run(
    models: Asset, alice: User, gateway: Gateway
) -> None:
    discover(models, alice, gateway, "acme")
    models = Asset.objects.get(pk=models.pk)
    materialize(MaterializeRequest(asset=models, selection="acme"), user=alice)
    attempt = discovering(models, alice, gateway)
    staged = [{"key": "acme", "path": "acme", "rows": 1, "bytes": 1}]
    with pytest.raises(DiscoveredKeysHeld, match="acme"):
        attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged)], found("acme", "apex"))
    assert Run.objects.get(pk=attempt.run.pk).state == "running"
    # Without data it is left to the run that makes it.
    assert attempts.intend_to_publish(attempt.row, [], found("acme", "apex"))
    assert ending.succeed(attempt.row)
    assert states(models)["acme"] == ("materialized", 1)
    assert known(models) == ["acme", "apex"]


def test_assets_that_are_made_together_find_partitions_together(
    alice: User, gateway: Gateway
) -> None:
    first, second = together("split", ["one", "two"], CUSTOMERS)
    attempt = discovering(first, alice, gateway)
    with pytest.raises(ConflictingRequest):
        materialize(MaterializeRequest(asset=second), user=alice)
    assert attempts.intend_to_publish(attempt.row, [], found("acme"))
    assert ending.succeed(attempt.row)
    assert states(first) == states(second) == {"acme": ("materialized", 1)}


def test_any_run_may_add_keys_to_a_set(models: Asset, alice: User, gateway: Gateway) -> None:
    attempt = discovering(asset("whole"), alice, gateway)
    staged = [{"key": "", "path": ".", "rows": 1, "bytes": 1}]
    outlet = outlet_of(attempt, staged)
    assert attempts.intend_to_publish(attempt.row, [outlet], found("acme"))
    assert ending.succeed(attempt.row)
    assert known(models) == ["acme"]
    assert states(models) == {}


@pytest.mark.parametrize("key", [{"interval": ["2024-01-01", "2024-01-02", "UTC"]}, {"x": 1}, ""])
def test_invalid_keys_are_refused(
    models: Asset, alice: User, gateway: Gateway, key: object
) -> None:
    attempt = discovering(models, alice, gateway)
    output = Output(attempt.run, attempt.row, None)
    with pytest.raises(ValueError, match=r"key|partition"):
        output.take_found({"set": "active_customers", "keys": [key]})


def test_keys_of_one_text_are_not_mixed_up(models: Asset, alice: User, gateway: Gateway) -> None:
    discover(models, alice, gateway, 1)
    attempt = discovering(models, alice, gateway)
    output = Output(attempt.run, attempt.row, None)
    output.take_found({"set": "active_customers", "keys": [1]})
    with pytest.raises(ValueError, match="1 and '1' would be one partition of 'active_customers'"):
        output.take_found({"set": "active_customers", "keys": ["1"]})


def test_known_keys_are_read_once(
    models: Asset, alice: User, gateway: Gateway, django_assert_num_queries: Any
) -> None:
    discover(models, alice, gateway, "acme")
    assert known(models) == ["acme"]
    again = Asset.objects.select_related("partition_definition").get(pk=models.pk)
    with django_assert_num_queries(0):
        assert len(definition_of(again).keys()) == 1


def test_rolled_back_keys_are_unknown(models: Asset, alice: User, gateway: Gateway) -> None:
    row = PartitionDefinition.objects.get(assets=models)

    def add_in_vain() -> None:
        with transaction.atomic():
            row.add_keys([(slicewise.PartitionKey.of("acme"), "acme")], run_id=1)
            assert known(models) == ["acme"]
            raise LookupError

    with pytest.raises(LookupError):
        add_in_vain()
    assert known(models) == []
