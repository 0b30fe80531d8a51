"""Learning and measuring: PPO self-play, matches, tournaments, reports."""

import os

# Before torch is loaded: idle threads sleep instead of spinning. On cores shared with other work,
# spinning costs ten times the speed.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
