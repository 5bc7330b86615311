"""The loader process: ``python -m slicewise.loading.loader FOLDER --report-fd N``.

Imports the files of one bundle and writes one JSON document to a separate descriptor, so that
output of the files cannot spoil the document.
"""

import argparse
import json
import os
import sys

from slicewise import spark
from slicewise.loading.importing import load_bundle
from slicewise.partitions.limits import Limits
from slicewise.process.hidden_packages import hide_server_packages
from slicewise.process.hiding import hide_from_others
from slicewise.process.python_start import hide_from_started_pythons


def main() -> None:
    """Load the bundle, report, and end without waiting for threads that the files started."""
    # Files of another bundle run as the same user: none may write this loader's report.
    hide_from_others()
    parser = argparse.ArgumentParser(prog="python -m slicewise.loading.loader", description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--report-fd", type=int, required=True)
    parser.add_argument("--only", metavar="FILE", help="load only this file of the folder")
    for limit, default in Limits()._asdict().items():
        parser.add_argument(f"--{limit.replace('_', '-')}", type=int, default=default)
    options = parser.parse_args()
    limits = Limits(*(getattr(options, name) for name in Limits._fields))
    hide_server_packages()
    hide_from_started_pythons()
    spark.use_connect()
    os.set_inheritable(options.report_fd, False)
    declared = load_bundle(options.folder, only=options.only, limits=limits)
    report = json.dumps(declared, allow_nan=False).encode()
    with os.fdopen(options.report_fd, "wb") as file:
        file.write(report)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
