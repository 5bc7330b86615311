"""Refusals of requests that would run nothing."""

from backfills_app.services.request.nothing_to_run import Obstacle, ObstacleKind, refusal_of


def test_two_obstacles_of_one_field_are_both_told() -> None:
    refusal = refusal_of(
        [
            Obstacle(ObstacleKind.UPSTREAM, "2 partitions need missing upstream", "Include these."),
            Obstacle(ObstacleKind.UPSTREAM, "1 partition needs nonexistent ones", "Correct this."),
            Obstacle(ObstacleKind.IN_PROGRESS, "1 partition is in progress", "Wait."),
        ]
    )
    assert refusal.errors == {
        "upstream": [
            "Nothing to run: 2 partitions need missing upstream. Include these.",
            "Nothing to run: 1 partition needs nonexistent ones. Correct this.",
        ],
        "": ["Nothing to run: 1 partition is in progress. Wait."],
    }
