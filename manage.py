#!/usr/bin/env python
"""Django's command line; `slicewise` is the same with the running stack's settings."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
