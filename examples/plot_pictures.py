"""
Pictures in a folder
====================

Pictures of any size and color, of which two per class are labeled by the folder they are in. ``make_classifier`` adds
an encoder, which describes pictures by the directions of their edges and by their colors.
"""

# %%
# Draw some pictures: shapes of any color, size and angle. Those without a label are at the top of the folder.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

from tnesi import make_classifier
from tnesi.data import open_data

SHAPES = {"triangle": (3, 1.0), "square": (4, 1.0), "disk": (40, 1.0), "star": (10, 0.4)}
rng = np.random.default_rng(0)


def draw(shape: str) -> Image.Image:
    corners, inner = SHAPES[shape]
    size = int(rng.integers(40, 90))
    angles = rng.uniform(0, 0.4) + 2 * np.pi * np.arange(corners) / corners
    radius = rng.uniform(0.3, 0.45) * size * np.where(np.arange(corners) % 2, inner, 1.0)
    outline = np.column_stack([size / 2 + radius * np.cos(angles), size / 2 + radius * np.sin(angles)])
    picture = Image.new("RGB", (size, size), tuple(rng.integers(170, 256, 3).tolist()))
    ImageDraw.Draw(picture).polygon(outline.ravel().tolist(), fill=tuple(rng.integers(0, 130, 3).tolist()))
    return picture


folder = Path(tempfile.mkdtemp())
truth = {}
for i in range(400):
    shape = list(SHAPES)[i % 4]
    path = folder / (shape if i < 8 else "") / f"{i:03}.png"
    path.parent.mkdir(exist_ok=True)
    draw(shape).save(path)
    truth[path.name] = shape

# %%
# ``open_data`` finds the pictures and reads the labels from the names of the folders; the others are ``None``.

data = open_data(folder)
print(f"{len(data.labels)} pictures, {sum(label is not None for label in data.labels)} of them labeled")

# %%
# A classifier of pictures is a scikit-learn pipeline: encoder and classifier. It takes paths, arrays or Pillow images.

clf = make_classifier("images", random_state=0).fit(data.rows.paths, data.labels)
found = clf.predict(data.rows.paths)
correct = np.array([truth[Path(path).name] for path in data.rows.paths])
unlabeled = np.array([label is None for label in data.labels])
print(f"{100 * np.mean(found[unlabeled] != correct[unlabeled]):.1f} % of the unlabeled pictures are wrong")

# %%
# The pictures with the smallest probabilities are those to check first.

certainty = clf.predict_proba(data.rows.paths).max(axis=1)
figure, axes = plt.subplots(2, 6, figsize=(9, 4.2))
for axis, i in zip(axes.flat, [*np.flatnonzero(unlabeled)[:6], *np.argsort(certainty)[:6]], strict=True):
    axis.imshow(Image.open(data.rows.paths[i]))
    axis.set_title(f"{found[i]}, {100 * certainty[i]:.0f} %", fontsize=9)
    axis.axis("off")
figure.suptitle("Some predictions (top), and the most doubtful ones (bottom)")
figure.tight_layout()
