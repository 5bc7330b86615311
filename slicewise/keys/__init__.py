"""Partition keys: plain values, intervals, records, products, and their texts and JSON."""

from slicewise.keys.key_json import key_from_json, key_to_json
from slicewise.keys.product_key import SEPARATOR, WHOLE, ProductKey

__all__ = ["SEPARATOR", "WHOLE", "ProductKey", "key_from_json", "key_to_json"]
