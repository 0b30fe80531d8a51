"""``python -m conquian_env``."""

import sys

from conquian_env.cli import main

sys.exit(main())
