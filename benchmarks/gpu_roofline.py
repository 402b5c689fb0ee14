"""Estimated time of an iteration of EM on some GPUs, by a roofline model; not measured.

``python benchmarks/gpu_roofline.py`` prints the table of docs/gpu.md. Every step takes the longer of two times: its
arithmetic at the peak rate, and its memory traffic at the peak bandwidth. The steps are those of
:mod:`tnesi.kernels.tensors`, where each operation on tensors reads its arguments and writes its result once. This is a
lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """Peak figures of the makers' data sheets.

    Attributes
    ----------
    single, double : float
        TFLOPS, without tensor cores: products must be exact to float32.
    memory, link : float
        GB/s of the memory, and of the PCIe connection in one direction.
    """

    name: str
    single: float
    double: float
    memory: float
    link: float


GPUS = (
    Gpu("NVIDIA T4", 8.1, 0.25, 320, 16),
    Gpu("NVIDIA RTX 4090", 82.6, 1.29, 1008, 32),
    Gpu("NVIDIA A100 SXM 40 GB", 19.5, 9.7, 1555, 32),
    Gpu("NVIDIA H100 SXM", 67, 34, 3350, 64),
)
SIZES = {
    "MNIST, 10,000 fields": (60_000, 784, 10_000),
    "600,000 x 784, 10,000 fields": (600_000, 784, 10_000),
    "60,000 x 784, 1,000 fields": (60_000, 784, 1_000),
}
TRUNCATION = 15
TOP_PASSES = 5
"""Times that choosing the best C' reads the inputs: a radix select of 32 bits, 8 at a time, and collecting them."""
PAGEABLE = 0.5
"""Share of the link's rate that copies from ordinary memory reach."""


@dataclass(frozen=True)
class Cost:
    """Work of a step.

    Attributes
    ----------
    single, double : float
        Operations.
    memory, link : float
        Bytes.
    """

    single: float = 0
    double: float = 0
    memory: float = 0
    link: float = 0

    def seconds(self, gpu: Gpu) -> float:
        arithmetic = self.single / (gpu.single * 1e12) + self.double / (gpu.double * 1e12)
        return max(arithmetic, self.memory / (gpu.memory * 1e9)) + self.link / (PAGEABLE * gpu.link * 1e9)


def steps(n: int, d: int, c: int) -> dict[str, Cost]:
    """Return the work of the steps of an iteration for N rows of bytes, D features and C fields."""
    k = TRUNCATION
    return {
        # bytes to floats, scaled: 1 + 4 and 4 + 4 bytes per value; the product reads them and writes the inputs
        "inputs": Cost(single=2 * n * c * d, memory=(13 + 4) * n * d + 4 * n * c),
        # the sums of log W are added in place; then the best are chosen
        "best fields": Cost(single=n * c, memory=(8 + 4 * TOP_PASSES) * n * c),
        # for each place: share times row (8 read, 8 written), added up (8 read; 8 read and 8 written)
        "statistics": Cost(double=2 * n * k * d, memory=40 * n * k * d + 17 * n * d + 48 * c * d),
        # sums in double to W and log W
        "fields": Cost(double=20 * c * d, memory=60 * c * d),
        # W and log W in both directions
        "copies": Cost(link=16 * c * d),
    }


def table() -> str:
    """Return a Markdown table: milliseconds of each step and of an iteration."""
    names = list(steps(1, 1, 1))
    lines = [f"| rows and fields | GPU | {' | '.join(names)} | iteration |", "|---|---|" + "---:|" * (len(names) + 1)]
    for size, shape in SIZES.items():
        for gpu in GPUS:
            each = [1000 * cost.seconds(gpu) for cost in steps(*shape).values()]
            cells = " | ".join(f"{value:.1f}" for value in each)
            lines.append(f"| {size} | {gpu.name} | {cells} | {sum(each):,.0f} ms |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
