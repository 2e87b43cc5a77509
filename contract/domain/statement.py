"""A statement about one task of a model, as manifests hold it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Task = Literal["similarity", "entailment", "paraphrase", "relevance", "classification"]
Elsewhere = Literal["good", "chance", "unmeasured"]


class TaskDomain(BaseModel):
    """One task of a model: the corpora whose labels taught it, and what it is worth on text of another kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task
    learnt_from: tuple[str, ...] = Field(description="corpora whose labels taught it; none: it learnt without labels")
    elsewhere: Elsewhere = Field(description="on text of other kinds: good, at or near chance, or not measured")
    measured_on: tuple[str, ...] = Field((), description="the corpora, or sets, of other kinds that say so")
