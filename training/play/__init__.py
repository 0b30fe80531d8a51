"""A person against an agent, in the terminal or in a browser: ``python -m training.play``.

``session`` is the game, ``words`` what it says; ``terminal`` and ``web`` show it.
"""
