"""The retail calendar, a lookback and point-of-sale URIs for Slicewise."""

from slicewise_retail.calendar import PartitionByRetailCalendar
from slicewise_retail.lookback import Lookback

__all__ = ["Lookback", "PartitionByRetailCalendar"]
