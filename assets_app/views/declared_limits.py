"""The limits of a function's runs in words, as the code declares them.

Workers may set lower limits by settings of their own. The memory and the processor time that a run
takes are not recorded.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from partitions_app.templatetags.slicewise_pages import duration
from slicewise.declaring import ProducerSpec
from slicewise.texts import masked_json


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """The limits in words, with the engine and the settings of Spark."""

    timeout: str
    memory: str
    engine: str
    spark: str


def declared_limits(spec: ProducerSpec) -> DeclaredLimits:
    """Return the limits of a function's runs."""
    return DeclaredLimits(
        timeout=duration(timedelta(seconds=spec.timeout)) if spec.timeout else "none",
        memory=f"{spec.memory // 2**20:,} MiB" if spec.memory else "the worker's limit",
        engine=spec.engine,
        spark=pairs_text(spec.spark_conf),
    )


def pairs_text(values: Any) -> str:
    """Return names and values without secrets, or ``none``."""
    pairs = masked_json(dict(values)).items()
    return ", ".join(f"{name}={value}" for name, value in pairs) or "none"
