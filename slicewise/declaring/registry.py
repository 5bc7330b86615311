"""The declarations of definition files, collected while the files are loaded."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from slicewise.declaring.declared_asset import Asset
from slicewise.declaring.decorator import ProducedAsset
from slicewise.declaring.multi_asset import MultiAsset


@dataclass
class Registry:
    """The assets that the files below ``folder`` declare, by name."""

    folder: Path
    assets: dict[str, Asset] = field(default_factory=dict)
    multis: dict[str, MultiAsset] = field(default_factory=dict)
    """The functions that materialize several assets; assets and functions share one namespace."""
    references: set[str] = field(default_factory=set)
    """The names in ``Asset.ref(...)``, which another bundle may declare."""

    def add(self, asset: Asset) -> None:
        """Add an asset. Raises AssetDefinitionError if another asset has the name already."""
        self._check_free(asset)
        self.assets[asset.name] = asset

    def add_multi(self, producer: MultiAsset) -> None:
        """Add a multi-asset. Raises AssetDefinitionError if an asset or an outlet has the name."""
        self._check_free(producer)
        self.multis[producer.name] = producer

    def producers(self) -> list[ProducedAsset | MultiAsset]:
        """Return the assets and multi-assets that have a function, by file and line."""
        single_assets = [asset for asset in self.assets.values() if asset.made_by is asset]
        return sorted(
            [*cast("list[ProducedAsset]", single_assets), *self.multis.values()], key=_order
        )

    def external(self) -> list[Asset]:
        """Return the assets that another program writes, by file and line."""
        return sorted((a for a in self.assets.values() if a.made_by is None), key=_order)

    def drop_files(self, files: set[str]) -> None:
        """Forget the declarations of these files, because loading the files ended with an error."""
        for name in [name for name, asset in self.assets.items() if asset.site.file in files]:
            del self.assets[name]
        for name in [name for name, producer in self.multis.items() if producer.site.file in files]:
            # Outlets may be declared in another file, which is loaded only once.
            for outlet in self.multis.pop(name).outlets:
                outlet.made_by = None

    def _check_free(self, asset: Asset | MultiAsset) -> None:
        namesake = self.assets.get(asset.name, self.multis.get(asset.name))
        if namesake is not None:
            raise asset.refused(
                f"declared twice, here and at {namesake.site}; every asset needs a name of its own"
            )

    def relative(self, path: str) -> str | None:
        """Return the path of a file inside the bundle, or None for a file outside the bundle."""
        try:
            return Path(path).relative_to(self.folder).as_posix()
        except ValueError:
            return None


def _order(declared: Asset | MultiAsset) -> tuple[str, int, str]:
    return declared.site.file, declared.site.line, declared.name
