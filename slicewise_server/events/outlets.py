"""The names of all assets that one function makes, for events of the function's runs."""

# Joins a row for each row of `asset`: `detail` has the names if the function makes several assets,
# so that filters find an event of one of them by each of them.
JOIN_OUTLETS = """
LEFT JOIN LATERAL (
    SELECT jsonb_build_object('assets', jsonb_agg(outlet.name ORDER BY outlet.name)) AS detail
    FROM assets_app_asset AS outlet
    WHERE outlet.producer_id = asset.producer_id AND outlet.active HAVING count(*) > 1
) AS together ON true
"""
