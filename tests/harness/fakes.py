"""Tiny published models, built in the tests: a few words, a few dimensions, every kind of graph."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from core.answers import EntailmentLabel
from core.golden import GoldenPair, GoldenPairs
from core.graph import CLASSIFIER, ENCODER, EXPLANATION, HEAD, OPSET, PAIR, TOKENS, GraphSpec
from core.labels import classification, classify, entailment
from core.manifest import (
    MANIFEST_NAME,
    SHARED_NAME,
    BiEncoder,
    ClassificationTask,
    EntailmentTask,
    ExplanationGraph,
    Figure,
    FileEntry,
    Limits,
    Manifest,
    Matrix,
    ProbabilityTask,
    Provenance,
    SimilarityTask,
    TaskDomain,
    TrainingData,
    describe_file,
)
from core.scoring import CentredIsotonic, Logistic, Run, compare, raw_scores, read_similarity, similarity
from core.sequences import WordFeeds, pad
from core.tokenizer import Tokenizer

WORDS = "a the man woman dog cat is plays playing guitar flute runs sleeps in park on sofa . , not".split()  # noqa: SIM905
PIECES = ["m", "##o", "##w", "##s", "run", "##ning"]
BUCKETS = 4
DIM = 8
MAX_TOKENS = 12
GOLDEN = [
    ("a man plays the guitar", "the man is playing a guitar ."),
    ("a dog runs in the park", "a cat sleeps on the sofa"),
    ("running", "\u732b"),  # one word of pieces, one that only a bucket takes
]
REPEATS = "flute"  # no golden pair has it
OUTSIDE = "words.npy"  # what holds the table of an interaction model, which its graphs leave outside
EXPLAINED = ExplanationGraph(
    graph="explanation.onnx",
    matrices=(
        Matrix(name="cosine", description="of the two words' rows", range=(-1.0, 1.0)),
        Matrix(name="alike", description="whether the cosine is above 0", range=(0.0, 1.0)),
    ),
)
RELATEDNESS = SimilarityTask(
    graph="relatedness.onnx",
    classes=(1.0, 2.0, 3.0, 4.0, 5.0),
    raw_range=(1.0, 5.0),
    label_scale=(1.0, 5.0),
    symmetric=True,
)
COSINE = SimilarityTask(comparison="cosine", raw_range=(-1.0, 1.0), symmetric=True)
_DTYPES = {"int64": TensorProto.INT64, "float32": TensorProto.FLOAT}


def tokenizer() -> Tokenizer:
    return Tokenizer(WORDS, PIECES, BUCKETS)


def table(seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The embedding table [rows, DIM] of a seed."""
    return np.random.default_rng(seed).normal(size=(len(tokenizer()), DIM)).astype(np.float32)


def encoder_graph(
    path: Path, *, seed: int = 0, rows: np.ndarray | None = None, squared: bool = False, outside: str | None = None
) -> None:
    """ENCODER: the mean of the words' rows, or its squares; the weights named `outside` lie outside."""
    nodes = [
        *mean_of_rows("input_ids", "lengths", "mean"),
        helper.make_node("Mul", ["mean", "mean"], ["sentence_embedding"])
        if squared
        else helper.make_node("Identity", ["mean"], ["sentence_embedding"]),
    ]
    save_graph(path, ENCODER, nodes, {"table": table(seed) if rows is None else rows}, {"dim": DIM}, outside)


def repeating_encoder(path: Path, times: int) -> None:
    """ENCODER: as `encoder_graph`, but for each `REPEATS` among the words a loop copies the mean so many times."""
    vector = helper.make_tensor_value_info("kept", TensorProto.FLOAT, None)
    copied = helper.make_tensor_value_info("copied", TensorProto.FLOAT, None)
    number = helper.make_tensor_value_info("number", TensorProto.INT64, [])
    goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
    still = helper.make_tensor_value_info("still", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Identity", ["goes_on"], ["still"]), helper.make_node("Identity", ["kept"], ["copied"])],
        "body", [number, goes_on, vector], [still, copied],
    )  # fmt: skip
    nodes = [
        *mean_of_rows("input_ids", "lengths", "mean"),
        helper.make_node("Equal", ["input_ids", "repeats"], ["found"]),
        helper.make_node("Cast", ["found"], ["each"], to=TensorProto.INT64),
        helper.make_node("ReduceSum", ["each"], ["count"], keepdims=0),
        helper.make_node("Mul", ["count", "times"], ["rounds"]),
        helper.make_node("Loop", ["rounds", "", "mean"], ["sentence_embedding"], body=body),
    ]
    (word,) = tokenizer().encode(REPEATS, 1).ids
    weights = {"table": table(), "repeats": np.int64([word]), "times": np.array(times, np.int64)}
    save_graph(path, ENCODER, nodes, weights, {"dim": DIM})


def token_graph(path: Path, *, scale: float = 1.0) -> None:
    """TOKENS: each word's row, of which `encoder_graph` is the mean."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("Mul", ["rows", "scale"], ["token_embeddings"]),
    ]
    save_graph(path, TOKENS, nodes, {"table": table(), "scale": np.float32([scale])}, {"dim": DIM})


def head_graph(path: Path, *, outputs: int, seed: int = 0) -> None:
    """HEAD: log-softmax of a linear map of |a - b| and a * b."""
    random = np.random.default_rng(seed + 100)
    weights = {
        "w_difference": random.normal(size=(DIM, outputs)).astype(np.float32),
        "w_product": random.normal(size=(DIM, outputs)).astype(np.float32),
    }
    save_graph(path, HEAD, _comparison("embedding_a", "embedding_b"), weights, {"dim": DIM, "outputs": outputs})


def classifier_graph(path: Path, *, outputs: int, seed: int = 0) -> None:
    """CLASSIFIER: log-softmax of a linear map of the embedding."""
    weight = np.random.default_rng(seed + 300).normal(size=(DIM, outputs))
    nodes = [
        helper.make_node("MatMul", ["sentence_embedding", "weight"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["raw_output"], axis=-1),
    ]
    save_graph(path, CLASSIFIER, nodes, {"weight": weight.astype(np.float32)}, {"dim": DIM, "outputs": outputs})


def pair_graph(path: Path, *, outputs: int, seed: int = 0) -> None:
    """PAIR: both sentences' means, then the head, in one graph; the table lies outside."""
    random = np.random.default_rng(seed + 200)
    weights = {
        "table": table(),
        "w_difference": random.normal(size=(DIM, outputs)).astype(np.float32),
        "w_product": random.normal(size=(DIM, outputs)).astype(np.float32),
    }
    nodes = [
        *mean_of_rows("input_ids_a", "lengths_a", "mean_a"),
        *mean_of_rows("input_ids_b", "lengths_b", "mean_b"),
        *_comparison("mean_a", "mean_b"),
    ]
    save_graph(path, PAIR, nodes, weights, {"outputs": outputs}, outside="table")


def explanation_graph(path: Path) -> None:
    """EXPLANATION: the cosine of each pair of words' rows, and whether it is positive; the table lies outside."""
    nodes = [
        *_directions("input_ids_a", "a"),
        *_directions("input_ids_b", "b"),
        helper.make_node("Transpose", ["b_directions"], ["b_turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a_directions", "b_turned"], ["cosine"]),
        helper.make_node("Greater", ["cosine", "nothing"], ["positive"]),
        helper.make_node("Cast", ["positive"], ["alike"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["cosine", "axis_1"], ["cosine_1"]),
        helper.make_node("Unsqueeze", ["alike", "axis_1"], ["alike_1"]),
        helper.make_node("Concat", ["cosine_1", "alike_1"], ["matrices"], axis=1),
    ]
    weights = {"table": table(), "nothing": np.array(0, np.float32)}
    save_graph(path, EXPLANATION, nodes, weights, {"matrices": 2}, outside="table")


def cosine_model(
    folder: Path, name: str = "avg-paraphrase", *, seed: int = 0, rows: np.ndarray | None = None
) -> Manifest:
    """A siamese model with the cosine of two means and nothing else."""
    folder.mkdir(parents=True)
    encoder_graph(folder / "encoder.onnx", seed=seed, rows=rows)
    task = COSINE.model_copy(update={"calibration": CentredIsotonic(x=(-1.0, 0.0, 1.0), y=(0.0, 0.2, 1.0))})
    return publish(folder, name, encoder="encoder.onnx", similarity=task, additive=True)


def graded_model(folder: Path, name: str = "avg-sick", *, seed: int = 1) -> Manifest:
    """A siamese model with ratings of 1..5 and entailment, each from its own head."""
    folder.mkdir(parents=True)
    encoder_graph(folder / "encoder.onnx", seed=seed)
    head_graph(folder / "relatedness.onnx", outputs=5, seed=seed)
    head_graph(folder / "entailment.onnx", outputs=3, seed=seed + 1)
    return publish(
        folder,
        name,
        encoder="encoder.onnx",
        similarity=RELATEDNESS,
        entailment=EntailmentTask(graph="entailment.onnx", labels=("neutral", "contradiction", "entailment")),
    )


def labelling_model(
    folder: Path, name: str = "sentiment", *, seed: int = 3, labels: tuple[str, ...] = ("negative", "positive")
) -> Manifest:
    """A siamese model with labels of single sentences and nothing else, tempered."""
    folder.mkdir(parents=True)
    encoder_graph(folder / "encoder.onnx", seed=seed)
    classifier_graph(folder / "labels.onnx", outputs=len(labels), seed=seed)
    task = ClassificationTask(graph="labels.onnx", labels=labels, temperature=1.5)
    return publish(folder, name, encoder="encoder.onnx", labelling=task)


def interaction_model(
    folder: Path,
    name: str = "pair-sick",
    *,
    seed: int = 2,
    max_tokens: int = MAX_TOKENS,
    labels: tuple[EntailmentLabel, ...] = ("entailment", "neutral", "contradiction"),
) -> Manifest:
    """An interaction model with both tasks and an explanation, its table and tokenizer among the shared files."""
    folder.mkdir(parents=True)
    pair_graph(folder / "relatedness.onnx", outputs=5, seed=seed)
    pair_graph(folder / "entailment.onnx", outputs=len(labels), seed=seed + 1)
    explanation_graph(folder / "explanation.onnx")
    np.save(folder / OUTSIDE, table())
    return publish(
        folder,
        name,
        similarity=RELATEDNESS,
        entailment=EntailmentTask(graph="entailment.onnx", labels=labels),
        explanation=EXPLAINED,
        tensors={"table": OUTSIDE},
        shared=(OUTSIDE, "tokenizer.json"),
        max_tokens=max_tokens,
    )


def tasks_model(folder: Path, name: str = "both") -> Manifest:
    """`interaction_model` with two more tasks of the five outputs of its graph: relevance and paraphrase."""
    manifest = interaction_model(folder, name)
    assert manifest.similarity is not None
    graph = manifest.similarity.graph
    relevance = ProbabilityTask(
        graph=graph, columns=(0, 1), calibration=Logistic(slope=2.0, intercept=1.0), symmetric=False
    )
    paraphrase = ProbabilityTask(graph=graph, columns=(2, 4), classes=(0, 1), symmetric=False)
    return sign(folder, relevance=relevance, paraphrase=paraphrase)


def blended_model(folder: Path, name: str = "blended") -> Manifest:
    """`interaction_model` with a relevance of half of an output and three times the cosine of two means."""
    manifest = interaction_model(folder, name)
    assert manifest.similarity is not None
    encoder_graph(folder / "encoder.onnx", outside="table")
    relevance = ProbabilityTask(
        graph=manifest.similarity.graph or "", columns=(0, 1), blend=(0.5, 3.0), calibration=Logistic(slope=1.0),
        symmetric=False,
    )  # fmt: skip
    bi_encoder = BiEncoder(graph="encoder.onnx", dim=DIM)
    return sign(folder, "encoder.onnx", relevance=relevance, bi_encoder=bi_encoder)


def sign(folder: Path, *written: str, **changes: object) -> Manifest:
    """Have the manifest vouch for the folder's files of these names as they are now, and say something else."""
    old = Manifest.load(folder)
    files = old.files | {name: describe_file(folder / name) for name in written}
    new = old.model_copy(update={"files": files, **changes})
    new = new.model_copy(update={"fingerprint": new.expected_fingerprint()})
    new.save(folder)
    return new


def misstate(folder: Path, task: str = "score", by: float = 0.01) -> None:
    """Have a golden pair say something else than the model does; `probabilities` is one of them."""
    path = folder / "golden.json"
    content = json.loads(path.read_text())
    said = content["pairs"][1]
    if task == "probabilities":
        said, task = said[task], "neutral"
    said[task] += by
    path.write_text(json.dumps(content))
    sign(folder, path.name)


def golden_of(folder: Path, a: str, b: str) -> None:
    """Have a model's one golden pair be of these texts, said to be alike."""
    GoldenPairs(pairs=(GoldenPair(a=a, b=b, raw_score=1.0, score=1.0),)).save(folder / "golden.json")
    sign(folder, "golden.json")


def publish(
    folder: Path,
    name: str,
    *,
    encoder: str | None = None,
    similarity: SimilarityTask | None = None,
    entailment: EntailmentTask | None = None,
    labelling: ClassificationTask | None = None,
    golden: Sequence[GoldenPair] | None = None,
    additive: bool = False,
    explanation: ExplanationGraph | None = None,
    tensors: dict[str, str] | None = None,
    shared: Sequence[str] = (),
    max_tokens: int = MAX_TOKENS,
) -> Manifest:
    """Write tokenizer, golden pairs and manifest beside the graphs that lie in the folder; move what is shared."""
    tokenizer().save(folder / "tokenizer.json")
    tasks = (similarity, entailment, labelling)
    graphs = [n for n in (encoder, *(task.graph for task in tasks if task)) if n]
    outside = {name: np.load(folder / file) for name, file in (tensors or {}).items()}
    runs = {graph: session(folder / graph, outside) for graph in graphs}
    if golden is None:
        golden = [answer(a, b, runs, encoder, similarity, entailment, max_tokens, labelling) for a, b in GOLDEN]
    GoldenPairs(pairs=tuple(golden)).save(folder / "golden.json")
    draft = Manifest(
        id=name,
        title=f"{name}, made up for tests",
        architecture="word_averaging",
        family="siamese" if encoder else "interaction",
        dim=DIM if encoder else None,
        encoder=encoder,
        tokenizer="tokenizer.json",
        golden="golden.json",
        files={
            path.name: share(path) if path.name in shared else describe_file(path)
            for path in sorted(folder.iterdir())
            if path.name != MANIFEST_NAME
        },
        fingerprint="0" * 64,
        limits=Limits(max_tokens=max_tokens),
        similarity=similarity,
        entailment=entailment,
        classification=labelling,
        additive=additive,
        explanation=explanation,
        tensors=tensors or {},
        training_data=(TrainingData(name="none", use="none", rows=0, licence="CC0-1.0", source="made up"),),
        domain=similarity and (TaskDomain(task="similarity", learnt_from=(), elsewhere="good", measured_on=("none",)),),
        languages=("en",),
        figures=(Figure(task="similarity", corpus="none", split="test", metric="pearson", value=0.5, rows=2),),
        provenance=Provenance(created=date(2025, 1, 2), recipe={}, commands=("none",), seed=0, environment={}),
    )
    manifest = draft.model_copy(update={"fingerprint": draft.expected_fingerprint()})
    manifest.save(folder)
    return manifest


def share(path: Path) -> FileEntry:
    """Move a file of a model to where shared ones lie; its entry in the manifest."""
    entry = describe_file(path).model_copy(update={"shared": True})
    folder = path.parent.parent / SHARED_NAME
    folder.mkdir(exist_ok=True)
    path.rename(folder / f"{entry.sha256}{path.suffix}")
    return entry


def runs_of(folder: Path) -> dict[str, Run]:
    """All graphs of a published model, opened without the service."""
    manifest = Manifest.load(folder)
    outside = {name: np.load(manifest.path_of(folder, file)) for name, file in manifest.tensors.items()}
    return {graph: session(folder / graph, outside) for graph in manifest.graphs}


def session(path: Path, outside: dict[str, np.ndarray] | None = None) -> Run:
    """A graph file, opened without the service."""
    options = ort.SessionOptions()
    if outside:
        options.add_external_initializers(
            list(outside), [ort.OrtValue.ortvalue_from_numpy(v) for v in outside.values()]
        )
    opened = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda feeds: opened.run(None, dict(feeds))[0]


def answer(
    a: str,
    b: str,
    runs: dict[str, Run],
    encoder: str | None,
    scored: SimilarityTask | None,
    labelled: EntailmentTask | None,
    max_tokens: int = MAX_TOKENS,
    labelling: ClassificationTask | None = None,
) -> GoldenPair:
    """What a model says of two sentences, computed by the contract alone."""
    ids_a, ids_b = ([tokenizer().encode(text, max_tokens).ids] for text in (a, b))
    if encoder:
        rows_a, rows_b = (WordFeeds().rows(runs[encoder], [ids]) for ids in (ids_a, ids_b))

    def output(graph: str) -> np.ndarray:
        if encoder:
            return compare(runs[graph], rows_a, rows_b)
        (input_a, lengths_a), (input_b, lengths_b) = pad(ids_a), pad(ids_b)
        return runs[graph](
            {"input_ids_a": input_a, "lengths_a": lengths_a, "input_ids_b": input_b, "lengths_b": lengths_b}
        )

    found: dict[str, Any] = {}
    if scored:
        if encoder:
            similarities = similarity(scored, runs[scored.graph] if scored.graph else None, rows_a, rows_b)
        else:
            similarities = read_similarity(scored, raw_scores(scored, output(scored.graph or "")))
        found |= {"raw_score": similarities.raw_score[0], "score": similarities.score[0]}
    if labelled:
        found["probabilities"] = entailment(labelled, output(labelled.graph))[0]
    if labelling:
        sides = (classify(runs[labelling.graph], rows) for rows in (rows_a, rows_b))
        found["classes"] = tuple(classification(labelling, side)[0] for side in sides)
    return GoldenPair(a=a, b=b, **found)


def mean_of_rows(
    ids: str, lengths: str, output: str, positions: Sequence[onnx.NodeProto] | None = None
) -> list[onnx.NodeProto]:
    """Mean of the table's rows over the real tokens: [batch, tokens] -> [batch, DIM]; `positions`: other nodes that
    number the tokens."""
    p = output
    counted = [
        helper.make_node("Shape", [ids], [f"{p}_tokens"], start=1, end=2),
        helper.make_node("Squeeze", [f"{p}_tokens"], [f"{p}_count"]),
        helper.make_node("Range", ["zero", f"{p}_count", "one"], [f"{p}_positions"]),
    ]
    return [
        *(counted if positions is None else positions),
        helper.make_node("Gather", ["table", ids], [f"{p}_rows"]),
        helper.make_node("Unsqueeze", [lengths, "axis_1"], [f"{p}_lengths"]),
        helper.make_node("Less", [f"{p}_positions", f"{p}_lengths"], [f"{p}_real"]),
        helper.make_node("Cast", [f"{p}_real"], [f"{p}_mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", [f"{p}_mask", "axis_2"], [f"{p}_mask3"]),
        helper.make_node("Mul", [f"{p}_rows", f"{p}_mask3"], [f"{p}_kept"]),
        helper.make_node("ReduceSum", [f"{p}_kept", "axis_1"], [f"{p}_sum"], keepdims=0),
        helper.make_node("Cast", [f"{p}_lengths"], [f"{p}_divisor"], to=TensorProto.FLOAT),
        helper.make_node("Div", [f"{p}_sum", f"{p}_divisor"], [output]),
    ]


def _directions(ids: str, p: str) -> list[onnx.NodeProto]:
    """The table's rows at length 1: [batch, tokens] -> [batch, tokens, DIM]."""
    return [
        helper.make_node("Gather", ["table", ids], [f"{p}_rows"]),
        helper.make_node("LpNormalization", [f"{p}_rows"], [f"{p}_directions"], axis=-1, p=2),
    ]


def _comparison(a: str, b: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Sub", [a, b], ["difference"]),
        helper.make_node("Abs", ["difference"], ["distance"]),
        helper.make_node("Mul", [a, b], ["product"]),
        helper.make_node("MatMul", ["distance", "w_difference"], ["from_difference"]),
        helper.make_node("MatMul", ["product", "w_product"], ["from_product"]),
        helper.make_node("Add", ["from_difference", "from_product"], ["logits"]),
        helper.make_node("LogSoftmax", ["logits"], ["raw_output"], axis=-1),
    ]


def save_graph(
    path: Path,
    spec: GraphSpec,
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    sizes: dict[str, int],
    outside: str | None = None,
) -> None:
    """A graph of these nodes, with the signature of its kind; the weights named `outside` lie outside."""
    constants = {
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "axis_1": np.array([1], np.int64),
        "axis_2": np.array([2], np.int64),
    }
    sides = [
        [
            helper.make_tensor_value_info(name, _DTYPES[t.dtype], [sizes.get(axis, axis) for axis in t.axes])
            for name, t in tensors.items()
        ]
        for tensors in (spec.inputs, spec.outputs)
    ]
    used = {name for node in nodes for name in node.input}
    initialisers = [
        numpy_helper.from_array(value, name) for name, value in (constants | weights).items() if name in used
    ]
    for tensor in initialisers:
        if tensor.name == outside:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", OUTSIDE
    graph = helper.make_graph(nodes, "tiny", *sides, initializer=initialisers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 10
    if outside is None:  # the checker would look for the file
        onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
