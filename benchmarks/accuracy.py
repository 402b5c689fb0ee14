"""Accuracy on MNIST, and the quality of row_sum="auto"."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from report import Row
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from tnesi import PoissonMixture, SimpletronClassifier
from tnesi.data import few_labels, load_named
from tnesi.paper import OnlineRule, presets
from tnesi.paper.statistics import calibration_error
from tnesi.report import plot_reliability


def accuracy(options: argparse.Namespace) -> list[Row]:
    """Test error with all, 100 and 3,000 labels, which share a first layer per seed."""
    mnist = options.mnist
    errors: dict[int, list[float]] = {0: [], 10: [], 300: []}
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        classifier = SimpletronClassifier(random_state=seed).fit(mnist.X, mnist.y)
        for per_class, found in errors.items():
            if per_class:
                classifier.fit_labels(few_labels(mnist.y, per_class, rng))
            found.append(100 * (1 - classifier.score(mnist.test.X, mnist.test.y)))
    rows = []
    for per_class, reach in ((0, 3.05), (10, 3.95), (300, 3.65)):
        found = errors[per_class]
        name = f"{10 * per_class} labels" if per_class else "all labels"
        note = f"seeds: {', '.join(f'{e:.2f}' for e in found)}"
        rows.append(
            Row(f"MNIST test error, {name}, mean of {options.seeds}", float(np.mean(found)), "%", reach, note=note)
        )
    return rows


def calibration(options: argparse.Namespace) -> list[Row]:
    """Expected calibration error on the test set at 1, 10 and 300 labels per class, and the reliability plot."""
    mnist, rows = options.mnist, []
    drawn: dict[str, tuple[Any, Any]] = {}
    classifiers = [SimpletronClassifier(random_state=seed).fit(mnist.X, mnist.y) for seed in range(options.seeds)]
    for per_class in (1, 10, 300):
        found = []
        for seed, classifier in enumerate(classifiers):
            classifier.fit_labels(few_labels(mnist.y, per_class, np.random.default_rng((seed, per_class))))
            t = classifier.predict_proba(mnist.test.X)
            top, right = t.max(axis=1), classifier.classes_[t.argmax(axis=1)] == mnist.test.y
            found.append(100 * calibration_error(top, right))
            drawn.setdefault(f"{per_class} per class", (top, right))
        note = f"seeds: {', '.join(f'{e:.2f}' for e in found)}"
        rows.append(
            Row(
                f"calibration error, {10 * per_class} labels, mean of {options.seeds}",
                float(np.mean(found)),
                "%",
                1.5,
                note=note,
            )
        )
    picture = options.output.with_name("reliability.png")
    plot_reliability(drawn).savefig(picture, dpi=150)
    print(f"reliability plot of seed 0: {picture.name}", flush=True)
    return rows


def unknown(options: argparse.Namespace) -> list[Row]:
    """Shares of the test rows predicted as unknown, of two classes without labels and of the others."""
    mnist, rows = options.mnist, []
    for per_class in (1, 10):
        found, false, share, wrong = [], [], [], []
        for seed in range(options.seeds):
            rng = np.random.default_rng((seed, per_class))
            missing = rng.choice(10, 2, replace=False)
            y = few_labels(mnist.y, per_class, rng)
            y[np.isin(y, missing)] = -1
            classifier = SimpletronClassifier(unknown_classes=2, random_state=seed).fit(mnist.X, y)
            said, truth = classifier.predict(mnist.test.X), np.isin(mnist.test.y, missing)
            found.append(100 * np.mean(said[truth] == -1))
            false.append(100 * np.mean(said[~truth] == -1))
            wrong.append(100 * np.mean(said[~truth] != mnist.test.y[~truth]))
            share.append(100 * (classifier.unknown_share_ - np.isin(mnist.y, missing).mean()))
        what = f"two classes unlabeled, {per_class} per class:"
        rows += [
            Row(f"{what} found as unknown", float(np.mean(found)), "%", note=f"worst {min(found):.1f}"),
            Row(f"{what} others predicted as unknown", float(np.mean(false)), "%", note=f"worst {max(false):.1f}"),
            Row(f"{what} error on the others", float(np.mean(wrong)), "%", note=f"worst {max(wrong):.1f}"),
            Row(f"{what} unknown share minus truth", float(np.mean(share)), "points"),
        ]
    return rows


def online(options: argparse.Namespace) -> list[Row]:
    """The published online rule, 40 epochs at five times the published rate."""
    mnist = options.mnist
    began = time.perf_counter()
    rule = OnlineRule(max_iter=40, learning_rate=1.0, label_learning_rate=1.0)
    classifier = presets.t_nesi(rule=rule, random_state=0, verbose=1).fit(mnist.X, mnist.y)
    error = 100 * (1 - classifier.score(mnist.test.X, mnist.test.y))
    note = f"{time.perf_counter() - began:.0f} s"
    return [Row("t_nesi, all labels, 40 epochs, rate factor 1.0", error, "%", 3.3, note=note)]


def row_sums(options: argparse.Namespace) -> list[Row]:
    """row_sum="auto" against the best of a grid of fixed values."""
    grid = (30, 60, 90, 120, 170, 240, 340, 480, 680, 960, 1400)
    fashion: Any = load_named("fashion-mnist")
    X, y = load_digits(return_X_y=True)
    splits = [train_test_split(X, y, test_size=0.4, random_state=seed) for seed in range(20)]
    sets = {
        "MNIST": [(options.mnist.X, options.mnist.test.X, options.mnist.y, options.mnist.test.y)],
        "Fashion-MNIST": [(fashion.X, fashion.test.X, fashion.y, fashion.test.y)],
        "digits": splits,
    }
    rows = []
    for name, parts in sets.items():
        n_features = parts[0][0].shape[1]
        found, chosen = {}, 0.0
        for above in ("auto", *grid):
            errors = []
            for train, test, y_train, y_test in parts:
                row_sum: Any = above if above == "auto" else n_features + above
                classifier = SimpletronClassifier(PoissonMixture(row_sum=row_sum), random_state=0)
                classifier.fit(train, y_train)
                errors.append(100 * (1 - classifier.score(test, y_test)))
                if above == "auto":
                    chosen = classifier.mixture_.row_sum_
            found[above] = float(np.mean(errors))
        best = min(grid, key=lambda above: found[above])
        curve = ", ".join(f"{n_features + above}: {found[above]:.2f}" for above in grid)
        note = f"chose {chosen:.0f} ({found['auto']:.2f} %), best {n_features + best} ({found[best]:.2f} %); {curve}"
        rows.append(
            Row(f'row_sum="auto" minus best of grid, {name}', found["auto"] - found[best], "points", 0.3, note=note)
        )
    return rows
