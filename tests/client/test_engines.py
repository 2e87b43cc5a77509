"""The adapters of engines, each on local workers; skipped, with a line saying so, without its package."""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semblance import scorer

ROOT = Path(__file__).parents[2]
WORDS = "a the man woman dog cat is plays playing guitar flute runs sleeps in park on sofa".split()  # noqa: SIM905

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


PAGE = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    module = pytest.importorskip("ray", reason="no ray: pip install '.[ray]'")
    yield module
    module.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_ray_data(ray: Any, models: Path) -> None:
    from semblance.engines.ray import ScoreBatches

    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ask = scorer(models_dir=models, nulls=True)
    given = [{"id": i, "a": "a man plays guitar", "b": WORDS[i]} for i in range(8)]
    dataset = ray.data.from_items([*given, {"id": 8, "a": None, "b": "a"}])
    found = dataset.map_batches(ScoreBatches, fn_constructor_args=[ask], concurrency=1, batch_size=4).take_all()
    found.sort(key=lambda row: row["id"])
    expected = ask([row["a"] for row in given], [row["b"] for row in given])["score"]
    assert [row["score"] for row in found[:8]] == pytest.approx(expected.tolist(), abs=1e-6)
    assert found[8]["score"] != found[8]["score"]


def test_duckdb(models: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="no duckdb: pip install '.[duckdb]'")
    from semblance.engines.duckdb import register

    with contextlib.closing(duckdb.connect()) as connection:
        register(connection, scorer(models_dir=models, nulls=True), "similarity")
        register(connection, scorer("pair-sick", "entailment", models_dir=models), "entailment")
        register(connection, scorer(None, "embed", models_dir=models), "embed")
        register(connection, scorer(None, "rank", models_dir=models, top_k=1), "ranking")
        connection.execute(
            "CREATE TABLE pairs AS SELECT * FROM (VALUES ('a man', 'a dog'), ('a man', NULL)) AS _(a, b)"
        )
        found = connection.execute("SELECT similarity(a, b).score FROM pairs").fetchall()
        expected = scorer(models_dir=models)(["a man"], ["a dog"])["score"].tolist()
        assert found == [(pytest.approx(expected[0]),), (None,)]
        assert connection.execute("SELECT similarity(a, b) FROM pairs").fetchall()[1] == (None,)
        (label,) = connection.execute("SELECT entailment('a man', 'a dog').label").fetchone()  # type: ignore[misc]
        assert label in ("entailment", "neutral", "contradiction")
        (dim,) = connection.execute("SELECT len(embed('a man').embedding)").fetchone()  # type: ignore[misc]
        assert dim == scorer(None, "embed", models_dir=models)(["a man"])["embedding"].shape[1]
        best = connection.execute("SELECT ranking('a dog', ['a man', 'a dog']).ranking").fetchone()
        assert best == ([1],)
        many = connection.execute(
            "SELECT sum(similarity('a man', 'a dog ' || i).score), count(*) FROM range(5000) _(i)"
        )
        assert many.fetchone()[1] == 5000  # type: ignore[index]


@pytest.mark.filterwarnings("ignore")
def test_spark(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="no pyspark: pip install '.[spark]'")
    if shutil.which("java") is None:
        pytest.skip("no java, which Spark runs on: apt-get install default-jre-headless")
    from semblance.engines.spark import as_column

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    ask = scorer(models_dir=models, nulls=True)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2"}
    builder = sql.SparkSession.builder.master("local[2]").appName("semblance")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        given = [(i, "a man plays guitar", WORDS[i]) for i in range(8)] + [(8, "a man", None)]
        frame = spark.createDataFrame(given, "id int, a string, b string").repartition(2)
        rows = frame.withColumn("answer", as_column(ask)("a", "b")).orderBy("id").select("answer.*").collect()
        expected = ask([a for _, a, _ in given], [b for _, _, b in given])["score"].tolist()
        assert [row.score for row in rows[:8]] == pytest.approx(expected[:8], abs=1e-6)
        assert rows[8].score is None or rows[8].score != rows[8].score
        vectors = frame.select(as_column(scorer(None, "embed", models_dir=models))("a").alias("e")).select(
            "e.embedding"
        )
        dim = scorer(None, "embed", models_dir=models)(["a man"])["embedding"].shape[1]
        assert all(len(row.embedding) == dim for row in vectors.collect())
    finally:
        spark.stop()


EXTRAS = {"pyspark": "spark"}  # where they have another name than the package


@pytest.mark.artifacts
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=["scorer", "ray", "spark", "duckdb"])
def test_an_example_of_the_page_runs(
    code: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = re.findall(r"^(?:from|import) (\w+)", code)[0]
    module = pytest.importorskip(package, reason=f"no {package}: pip install '.[{EXTRAS.get(package, package)}]'")
    if package == "pyspark" and shutil.which("java") is None:
        pytest.skip("no java, which Spark runs on: apt-get install default-jre-headless")
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    left: dict[str, Any] = {}
    try:
        exec(compile(code, "example", "exec"), left)
    finally:
        if package == "ray":
            module.shutdown()
        if "spark" in left:
            left["spark"].stop()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == {"ray": "2", "pyspark": "2", "duckdb": "True"}.get(package, printed.strip())
