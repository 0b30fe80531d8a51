"""Learning and measuring: PPO self-play, matches, tournaments, reports."""
