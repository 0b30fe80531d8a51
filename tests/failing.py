"""Agents outside the project that fail in one game of every few, for tournaments."""

import os
import random
import sys
import time

import numpy as np

from conquian_env import Views


class Failing:
    """The lowest legal action; but what ``fail`` does if a decision's seed is a multiple of 40."""

    def act(self, views: Views) -> np.ndarray:
        if (views.seeds % np.uint64(40) == 0).any():
            self.fail(views)
        return views.mask.argmax(axis=1)

    def fail(self, views: Views) -> None:
        pass


class Raises(Failing):
    def fail(self, views):
        raise ValueError("no idea")


class Sleeps(Failing):
    def fail(self, views):
        time.sleep(1000)


class Exits(Failing):
    def fail(self, views):
        os._exit(3)


class Eats(Failing):
    def fail(self, views):
        self.eaten = [np.ones(1 << 25) for _ in range(1000)]


class Illegal(Failing):
    def act(self, views):
        actions = super().act(views)
        actions[views.seeds % np.uint64(40) == 0] = 82
        return actions


class Talks(Failing):
    """Which does no harm."""

    def act(self, views):
        print("[1, 2, 3]" * 1000, flush=True)
        print("oh", file=sys.stderr)
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  # the point of the agent
        return super().act(views)
