"""Accuracy and speed of ImageEncoder, compared with the target figures.

`python benchmarks/encode_images.py [accuracy] [committee] [arrays] [files] [textures] [--only mnist]` measures:

accuracy  test error of one mixture on encoded pictures, at 1 (8 draws), 10 and 100 labels per class (4 draws), and all
committee test error of three mixtures on MNIST with one label per class (8 draws)
arrays    the time to encode 60,000 pictures of 28 x 28
textures  error on 1,200 pictures of 128 x 128 by size, with 5 labels per class (4 draws): six fine textures; three
          shapes, and a disk with three fine textures
files     the time to encode JPEG files of 640 x 480, in units of the time that Pillow takes to decode them
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from report import Row, best_of, print_table

from tnesi import SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.encoders import ImageEncoder

REACH = {
    "mnist": (1.8, 1.75, 1.65, 1.3),
    "fashion-mnist": (35, 20, 15.5, 10.6),
    "emnist-letters": (46, 34, 30.5, 25.7),
    "digits": (12, 2.8, 2, None),
}
PARTS = ("accuracy", "committee", "arrays", "files", "textures")
LABELS = {1: 8, 10: 4, 100: 4}
"""Draws of labels by the number of labels per class."""


def accuracy(
    name: str, seed: int, *, n_mixtures: int = 1, labels: dict[int, int] = LABELS, reach: Any = None
) -> list[Row]:
    """Test error, with the same mixtures for all draws of labels; of all labels, too, if no `reach` is given."""
    data: Any = load_named(name)
    encoder = ImageEncoder(shape=data.rows.image_shape)
    train = encoder.fit_transform(data.X)
    test = encoder.transform(data.test.X)
    began = time.perf_counter()
    classifier = SimpletronClassifier(n_mixtures=n_mixtures, random_state=seed)
    classifier.fit(train, np.full(len(train), -1))
    fitted = f"{n_mixtures} mixture{'s' if n_mixtures > 1 else ''}, fit {time.perf_counter() - began:.0f} s"

    def error(labels: Any) -> float:
        classifier.fit_labels(labels)
        return 100 * float(np.mean(classifier.predict(test) != data.test.y))

    rows = []
    for (per_class, n_draws), most in zip(labels.items(), reach or REACH[name][:3], strict=True):
        found = [error(few_labels(data.y, per_class, np.random.default_rng((d, per_class)))) for d in range(n_draws)]
        note = f"{fitted}; draws: {', '.join(f'{e:.2f}' for e in found)}"
        rows.append(Row(f"{name}, {per_class} per class", float(np.mean(found)), "%", most, note=note))
        print_table(rows[-1:])
    if reach:
        return rows
    rows.append(Row(f"{name}, all labels", error(data.y), "%", REACH[name][3]))
    print_table(rows[-1:])
    return rows


def arrays() -> list[Row]:
    """Time for 60,000 pictures of 28 x 28, on two threads."""
    rows = []
    for name in ("mnist", "fashion-mnist"):
        images = np.asarray(load_named(name).X).reshape(-1, 28, 28)
        encoder = ImageEncoder(n_jobs=2).fit(images)
        seconds = best_of(5, partial(encoder.transform, images))
        rows.append(Row(f"encode {len(images)} pictures of {name}, two threads", seconds, "s", 1.5))
    return rows


def files(n_files: int) -> list[Row]:
    """Time for JPEG files of 640 x 480, compared with Pillow alone and the same number of threads."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.jpg" for i in range(n_files)]
        different = [_photograph(rng) for _ in range(50)]
        for i, path in enumerate(paths):
            path.write_bytes(different[i % len(different)])
        encoder = ImageEncoder(n_jobs=2).fit(paths)

        def decode(path: Path) -> None:
            with Image.open(path) as image:
                image.convert("RGB").load()

        def decode_small(path: Path) -> None:
            with Image.open(path) as image:
                image.draft("RGB", (64, 48))
                image.convert("RGB").resize((64, 48)).load()

        def decode_all(decode: Any) -> None:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(decode, paths))

        encoding = best_of(3, lambda: encoder.encode_files(paths))
        whole = best_of(3, lambda: decode_all(decode))
        small = best_of(3, lambda: decode_all(decode_small))
    what = f"{n_files} JPEG files of 640 x 480"
    return [
        Row(f"encode {what}", encoding, "s"),
        Row(f"encode {what}, in units of Pillow's decoding", encoding / whole, "times", 1.3),
        Row(f"encode {what}, in units of Pillow's draft mode", encoding / small, "times"),
    ]


def textures() -> list[Row]:
    """Error on fine textures at several sizes, of which "auto" is one."""
    rows = []
    for name, make in (("textures", _textures), ("shapes", _shapes)):
        images, y = make(np.random.default_rng(1), 1200)
        for size in (32, 48, 64, 96, "auto"):
            encoder = ImageEncoder(size=size)
            encoded = encoder.fit_transform(images)
            classifier = SimpletronClassifier(random_state=0).fit(encoded, np.full(len(y), -1))
            found = []
            for draw in range(4):
                classifier.fit_labels(few_labels(y, 5, np.random.default_rng(draw)))
                found.append(100 * float(np.mean(classifier.predict(encoded) != y)))
            note = f"canvas of {encoder.image_shape_[0]} x {encoder.image_shape_[1]}"
            reach = 15 if size == "auto" else None
            rows.append(Row(f"{name}, size {size}", float(np.mean(found)), "%", reach, note=note))
            print_table(rows[-1:])
    return rows


def _textures(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return pictures of waves of 4.5 to 6.5 pixels in four directions, crossed waves, and noise."""
    y, x = np.mgrid[:128, :128].astype(float)
    kinds, found = rng.integers(0, 6, n), []
    for kind in kinds.tolist():
        f, (a, b), turn = 2 * np.pi / rng.uniform(4.5, 6.5), rng.uniform(0, 2 * np.pi, 2), rng.normal(0, 0.05)
        u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
        if kind == 4:
            found.append(1.4 * np.sin(f * u + a) * np.sin(f * v + b))
        elif kind == 5:
            found.append(rng.normal(0, 0.8, x.shape))
        else:
            found.append(np.sin(f * (u, v, (u + v) / 2**0.5, (u - v) / 2**0.5)[kind] + a))
    return _lit(rng, 128 + rng.uniform(20, 60, (n, 1, 1)) * np.array(found)), kinds


def _shapes(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Return pictures of a disk, a square and a triangle, and of disks with three fine textures."""
    y, x = np.mgrid[:128, :128].astype(float)
    kinds, found = rng.integers(0, 6, n), []
    for kind in kinds.tolist():
        (u, v), r, a = np.stack([x, y]) - rng.uniform(51, 77, (2, 1, 1)), rng.uniform(26, 38), rng.uniform(0, 6)
        f = 2 * np.pi / rng.uniform(4.5, 6.5)
        disk, across, down = np.hypot(u, v) < r, np.sin(f * x + a) > 0, np.sin(f * y + a) > 0
        square = (abs(u) < 0.9 * r) & (abs(v) < 0.9 * r)
        triangle = (abs(v) < r) & (abs(u) < (v + r) / 2)
        found.append((disk, square, triangle, disk & across, disk & down, disk & (across ^ down))[kind])
    return _lit(rng, 90 + rng.uniform(60, 110, (n, 1, 1)) * np.array(found)), kinds


def _lit(rng: np.random.Generator, images: Any) -> Any:
    """Add uneven light and noise."""
    y, x = np.mgrid[:128, :128] / 128
    slopes = rng.uniform(-60, 60, (2, len(images), 1, 1))
    light = slopes[0] * x + slopes[1] * y
    return np.clip(images + light + rng.normal(0, 8, images.shape), 0, 255).astype(np.uint8)


def _photograph(rng: np.random.Generator) -> bytes:
    """Return a JPEG file with structure at all scales."""
    layers = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (side * 3, side * 4, 3), np.uint8)).resize((640, 480)))
        for side in (1, 4, 16, 64)
    ]
    packed = io.BytesIO()
    Image.fromarray(np.mean(layers, axis=0).astype(np.uint8)).save(packed, "JPEG", quality=85)
    return packed.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--only", choices=list(REACH), help="accuracy on one data set")
    parser.add_argument("--files", type=int, default=2000, help="number of JPEG files")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    parts = options.parts or PARTS
    if "arrays" in parts:
        print_table(arrays())
    if "files" in parts:
        print_table(files(options.files))
    if "textures" in parts:
        textures()
    if "committee" in parts:
        accuracy("mnist", options.seed, n_mixtures=3, labels={1: 8}, reach=(1.5,))
    if "accuracy" in parts:
        for name in [options.only] if options.only else REACH:
            accuracy(name, options.seed)


if __name__ == "__main__":
    main()
