"""The text of asset handles for readers of a run's error."""

import pytest

from slicewise import spark
from slicewise.io import Writer
from slicewise.running.written_handles import OwnAssetHandle


def test_that_an_asset_cannot_be_written_is_said_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark, "is_frame", lambda value: True)
    writer = Writer(run_id=1, attempt="1")
    handle = OwnAssetHandle(
        "kept", uri="x-mine://u:s3cret@h/t", definition=None, keys=[], session=None, writer=writer
    )
    with pytest.raises(ValueError, match=r"x-mine://u:\*\*\*@h/t") as refused:
        handle.write(object())
    assert "s3cret" not in str(refused.value)
