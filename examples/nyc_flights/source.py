"""Reads the source's CSV files with their types.

Missing values are written NA, about which Spark 4 is strict.
"""

import os
import zipfile

from places import LAKE, SOURCE

FLIGHTS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT,
    arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
    origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT,
    time_hour TIMESTAMP
"""
WEATHER = """
    origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE,
    wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE,
    visib DOUBLE, time_hour TIMESTAMP
"""
AIRLINES = "carrier STRING, name STRING"


def only(frame, rows, *names):
    """The rows of a frame that have one of these values in these columns."""
    wanted = frame.sparkSession.createDataFrame(rows, list(names))
    return frame.join(wanted, list(names), "left_semi")


def read_csv(spark, path, schema):
    return spark.read.csv(str(path), schema=schema, header=True, nullValue="NA")


def flights(spark):
    return read_csv(spark, _unpacked("flights.csv"), FLIGHTS)


def weather(spark):
    return read_csv(spark, SOURCE / "weather.csv", WEATHER)


def airlines(spark):
    return read_csv(spark, SOURCE / "airlines.csv", AIRLINES)


def _unpacked(name):
    """The file out of its archive, unpacked once; several runs may come here at the same time."""
    target = LAKE / "source" / name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(SOURCE / f"{name}.zip") as archive:
            unfinished.write_bytes(archive.read(name))
        unfinished.rename(target)
    return target
