"""Where numbers lie in a drawing, for a page that draws them as SVG."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

ROUND = (1, 2, 5, 10)  # a step is one of these times a power of ten


@dataclass(frozen=True)
class Axis:
    """A scale whose ends are round numbers.

    Attributes:
        ticks: round numbers in equal steps, the first and the last being the ends.
    """

    ticks: tuple[float, ...]

    @classmethod
    def over(cls, low: float, high: float, steps: int = 4) -> Self:
        """The scale that holds ``low`` and ``high`` in about so many steps."""
        step = round_step((high - low) / steps)
        first, last = math.floor(low / step), math.ceil(high / step)
        return cls(tuple(step * number for number in range(first, max(last, first + 1) + 1)))

    def place(self, value: float) -> float:
        """How far along a value lies, 0 to 100; what is beyond an end lies at it."""
        low, high = self.ticks[0], self.ticks[-1]
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)


def round_step(least: float) -> float:
    """The first round number from ``least`` on; 1 for none."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in ROUND if step * power >= least * (1 - 1e-9))


@dataclass(frozen=True)
class Course:
    """How a mean settled while values came.

    Attributes:
        count: int [points], how many values there were.
        mean, low, high: float64 [points], with 95 % intervals of the normal approximation.
    """

    count: NDArray[np.int64]
    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: ArrayLike, points: int = 30) -> Self:
        """The course of values, at least two, at so many points or fewer."""
        values = np.asarray(values, np.float64)
        n = np.unique(np.linspace(max(2, len(values) / points), len(values), points).astype(int))
        mean = np.cumsum(values)[n - 1] / n
        squares = np.cumsum((values - values.mean()) ** 2)[n - 1]
        spread = np.maximum(squares - n * (mean - values.mean()) ** 2, 0.0) / (n - 1)
        half = 1.96 * np.sqrt(spread / n)
        return cls(n, mean, mean - half, mean + half)


@dataclass(frozen=True)
class Frame:
    """A field for courses, in units of its SVG, whose y grows downward."""

    x: Axis
    y: Axis
    width: int = 280
    height: int = 110

    def line(self, course: Course) -> str:
        """The mean, as points of a polyline."""
        return self._points(course.count, course.mean)

    def band(self, course: Course) -> str:
        """The interval, as points of a polygon."""
        there, back = (course.count, course.low), (course.count[::-1], course.high[::-1])
        return f"{self._points(*there)} {self._points(*back)}"

    def _points(self, xs: NDArray[np.int64], ys: Floats) -> str:
        return " ".join(
            f"{self.width * self.x.place(x) / 100:.1f},"
            f"{self.height * (1 - self.y.place(y) / 100):.1f}"
            for x, y in zip(xs.tolist(), ys.tolist(), strict=True)
        )


@dataclass(frozen=True)
class Bar:
    """How many values there are from ``low`` to ``high``, both included."""

    low: int
    high: int
    count: int


def histogram(values: NDArray[np.integer], bars: int = 25) -> list[Bar]:
    """Whole numbers in about so many bars of equal round width."""
    lowest, highest = int(values.min()), int(values.max())
    width = max(1, int(round_step((highest + 1 - lowest) / bars)))
    start = lowest // width * width
    counts = np.bincount((values.ravel().astype(np.int64) - start) // width)
    return [
        Bar(low, low + width - 1, count)
        for low, count in zip(range(start, highest + 1, width), counts.tolist(), strict=True)
    ]
