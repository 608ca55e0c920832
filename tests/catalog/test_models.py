"""Models: dimensions against published parameter counts, and names as tables spell them."""

import csv
from pathlib import Path
from typing import Any

import pytest

from s11.catalog import KNOWN_MODELS, MODELS, Model, model_of_measured

# Parameters that the model card on Hugging Face states (the sum over the safetensors files), but
# for InternLM-20B and LLaMA-13B: "20B" on its card, and 13.0B in table 2 of the LLaMA paper.
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "qwen3-32b": 32_762_123_264,
    "qwen-72b": 72_287_920_128,
    "codellama-34b": 33_743_970_304,
    "yi-34b": 34_388_917_248,
    "internlm-20b": 20_000_000_000,
    "phi-2": 2_779_683_840,
    "llama-13b": 13_000_000_000,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.3-70b": 70_553_706_496,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "internlm2-20b": 19_861_149_696,
}
ROUNDED = {"internlm-20b", "llama-13b"}

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "Small",
    "layers": 2,
    "hidden": 8,
    "ffn": 20,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 3,
    "gated": True,
    "vocab": 100,
    "tied_embeddings": False,
    "max_positions": 50,
}


def small(**changes: Any) -> Model:
    return Model(**(SMALL | changes))


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_parameters_are_those_that_the_authors_publish(name: str) -> None:
    # The exact counts hold biases and norms inside a head, which are left out here.
    tolerance = 0.005 if name in ROUNDED else 0.0005
    assert KNOWN_MODELS[name].parameters() == pytest.approx(PUBLISHED[name], rel=tolerance)


def test_parameters_worked_by_hand() -> None:
    # q 8x12, k and v 8x6 each, out 12x8; gate, up, down 8x20 each; two norms of 8.
    layer = 96 + 48 + 48 + 96 + 3 * 160
    assert small().layer_linear_parameters() == layer == 768
    assert small().parameters() == 2 * (layer + 16) + 8 + 2 * 800 == 3176


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [
        ({"gated": False}, 3176 - 2 * 160),
        ({"tied_embeddings": True}, 3176 - 800),
        ({"parallel_attention": True}, 3176 - 2 * 8),
        ({"learned_positions": True}, 3176 + 50 * 8),
    ],
)
def test_what_a_switch_adds_or_takes(changes: dict[str, bool], parameters: int) -> None:
    assert small(**changes).parameters() == parameters


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("llama-2-7b", 2 * 32 * 32 * 128 * 2),  # 524,288
        ("llama-3.1-8b", 131_072),
        ("llama-2-70b", 2 * 80 * 8 * 128 * 2),  # 327,680
        ("qwen-72b", 2 * 80 * 64 * 128 * 2),  # 2,621,440: no grouped queries yet
        ("phi-2", 2 * 32 * 32 * 80 * 2),
    ],
)
def test_bytes_of_a_tokens_kv(name: str, kv_bytes: int) -> None:
    assert MODELS[name].kv_bytes_per_token() == kv_bytes


def test_the_catalog_lists_the_thirteen_and_knows_more() -> None:
    assert list(MODELS) == list(PUBLISHED)[:13]
    assert KNOWN_MODELS.keys() == PUBLISHED.keys()
    assert MODELS.items() <= KNOWN_MODELS.items()


def test_every_model_names_its_repository() -> None:
    for model in KNOWN_MODELS.values():
        (source,) = model.sources
        assert source.address.startswith("https://huggingface.co/"), model.name
        assert {"layers", "hidden", "ffn", "vocab", "gated"} <= set(source.fields)


def test_qwen3s_heads_are_wider_than_its_stream() -> None:
    model = MODELS["qwen3-32b"]
    assert (model.q_width, model.kv_width, model.hidden) == (8192, 1024, 5120)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("Llama-2-70b-hf", "llama-2-70b"),
        ("Llama-2-13b-hf", "llama-2-13b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("Meta-Llama-3-8B", "llama-3-8b"),
        ("Meta-Llama-3-70B", "llama-3-70b"),
        ("Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("LLAMA3.1_70B", "llama-3.1-70b"),
        ("LLAMA2_7B", "llama-2-7b"),
        ("CodeLlama-34b-Instruct-hf", "codellama-34b"),
        ("Qwen3-32B", "qwen3-32b"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("QWEN3_32B", "qwen3-32b"),
        ("Qwen-72B", "qwen-72b"),
        ("Qwen2-72B", "qwen2-72b"),
        ("Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("internlm-20b", "internlm-20b"),
        ("internlm/internlm2-20b", "internlm2-20b"),
        ("phi-2", "phi-2"),
        ("microsoft/phi-2", "phi-2"),
        ("Yi-34B", "yi-34b"),
        ("Mistral-7B-v0.1", "mistral-7b"),
        ("Mistral-7B-Instruct-v0.2", "mistral-7b"),
        ("huggyllama/llama-13b", "llama-13b"),
        ("LLaMA-13B", "llama-13b"),
    ],
)
def test_measured_tables_spell_models_their_own_way(spelled: str, name: str) -> None:
    assert model_of_measured(spelled).name == name


@pytest.mark.parametrize(
    "spelled", ["", "gpt-5", "Llama-2", "Mixtral-8x7B", "Qwen3-30B-A3B", None, 7, "x" * 10_000]
)
def test_a_model_that_is_not_known_is_refused(spelled: object) -> None:
    with pytest.raises(ValueError, match=r"^model: .* is not known \(allowed: llama-2-7b, "):
        model_of_measured(spelled)  # type: ignore[arg-type]


def test_measured_layers_have_the_catalogs_dimensions(shared_dir: Path) -> None:
    path = shared_dir / "measured" / "layer_linear.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        model = model_of_measured(row["model"])
        for dimension in ("hidden", "ffn", "heads", "kv_heads"):
            assert getattr(model, dimension) == int(row[dimension]), row["model"]
        assert str(model.gated) == row["gated"], row["model"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", 0),
        ("layers", 1_001),
        ("hidden", -1),
        ("hidden", 131_073),
        ("ffn", 1.5),
        ("heads", True),
        ("kv_heads", 0),
        ("head_dim", 4_097),
        ("vocab", 4_194_305),
        ("max_positions", 0),
        ("gated", 1),
        ("tied_embeddings", "yes"),
        ("parallel_attention", None),
        ("learned_positions", 0),
        ("kv_heads", 3),
        ("name", ""),
        ("name", "n" * 81),
        ("title", None),
    ],
)
def test_a_dimension_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        small(**{field: value})


def test_models_are_told_apart_by_what_counts() -> None:
    assert small() == small(title="Another title")
    assert hash(small()) == hash(small(title="Another title"))
    assert small() != small(layers=3)
