"""Write slow.txt: the tests that are too slow for `make test-quick`, by what they take on this machine.

    python -m pytest -n2 -q -m "not slow" --durations=0 --durations-min=0.05 >> build/durations.txt
    python tests/slowest.py build/durations.txt

Tests of the kernels always stay in the quick suite. To measure all tests again, empty slow.txt first.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = Path(__file__).with_name("slow.txt")
SECONDS = 0.55
"""A test function is slow if all its cases take longer than this together."""


def main() -> None:
    seconds: dict[str, float] = defaultdict(float)
    for line in Path(sys.argv[1]).read_text().splitlines():
        if found := re.match(r"([\d.]+)s (?:call|setup|teardown) +(\S+?)(?:\[|$)", line):
            seconds[found[2]] += float(found[1])
    slow = {name for name, total in seconds.items() if total > SECONDS and not name.startswith("tests/kernels/")}
    known = set(SLOW.read_text().splitlines()) if SLOW.exists() else set()
    SLOW.write_text("".join(f"{name}\n" for name in sorted(slow | known)))
    print(f"{len(slow - known)} more, {len(slow | known)} tests in {SLOW}")


if __name__ == "__main__":
    main()
