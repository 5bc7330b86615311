"""The queue of runs: claims of partitions, waiting, dispatch, settlement and withdrawal."""
