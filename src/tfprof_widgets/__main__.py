"""``python -m tfprof_widgets`` is the command ``tfprof-widgets``."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
