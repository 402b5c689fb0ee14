"""Types that all packages share."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
