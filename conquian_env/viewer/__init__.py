"""Games in a browser: a replay in one HTML file, and the table that other pages draw too."""

from conquian_env.svg import sprite
from conquian_env.viewer.page import Perspective, Replay, to_html
from conquian_env.viewer.table import action_names, asset, picture

__all__ = ["Perspective", "Replay", "action_names", "asset", "picture", "sprite", "to_html"]
