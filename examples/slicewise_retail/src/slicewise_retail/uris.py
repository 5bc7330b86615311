"""URIs of points of sale: `pos://berlin-mitte/till-3`, a shop and one of its tills."""

from slicewise.uris import UriScheme

POINT_OF_SALE = UriScheme(name="pos", components=1)
