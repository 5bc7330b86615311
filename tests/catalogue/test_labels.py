"""A changed label of a key class is shown as soon as the class's file is in force."""

import pytest

from assets_app.catalogue.services import sync_bundle
from assets_app.models import Asset
from partitions_app.labels import label_of
from tests.catalogue.conftest import Bundle

pytestmark = pytest.mark.django_db

TEXT = """from slicewise import *

class Shop(PartitionKey):
    town: str
    def __str__(self):
        return "{shown} " + self.town

@asset(partition=PartitionBySequence([Shop("mitte")]))
def takings(): ...
"""


def label() -> str:
    definition = Asset.objects.get(name="takings").definition
    assert definition is not None
    (key,) = definition.keys()
    return label_of(definition, key.text)


def test_a_changed_text_of_a_key_class_is_shown(bundle: Bundle) -> None:
    folder = bundle(a=TEXT.format(shown="shop"))
    sync_bundle("trials", folder)
    before = Asset.objects.get(name="takings").partition_definition_id
    assert label() == "shop mitte"
    (folder / "a.py").write_text(TEXT.format(shown="branch"))
    sync_bundle("trials", folder)
    assert label() == "branch mitte"
    assert Asset.objects.get(name="takings").partition_definition_id == before
