"""What a network does with two sentences, found by running it: its steps, their shapes, and which feeds which.

Each step is a part of the module, or one of its functions, that a picture names. While the network runs, every tensor
knows the steps it comes from (a mode of torch sees each operation), so the arrows are those of the computation, not of
a drawing by hand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree


@dataclass(frozen=True)
class Step:
    """A step to watch.

    Attributes:
        owner: what has the function: a module, or a file's module for its functions.
        function: its name; `forward` of a module.
        title: what it does, in a few words.
        words: what it does, in one or two lines.
        holds: modules whose weights it uses; of a module's `forward`, that module.
        each: weights of one word, where the table of words is only as large as a picture needs.
    """

    owner: Any
    function: str
    title: str
    words: str
    holds: tuple[nn.Module, ...] = ()
    each: int = 0

    @property
    def weights(self) -> int:
        """Numbers that training can change."""
        whole = (self.owner,) if self.function == "forward" else ()
        return sum(weight.numel() for part in self.holds or whole for weight in part.parameters())


@dataclass
class Box:
    """A step as it happened.

    Attributes:
        step: None: an input.
        title: of the step, or of the input.
        shape: of what it gives, without axes of one.
        sources: numbers of the boxes whose values its own comes from.
        again: it ran before, with the same weights.
    """

    step: Step | None
    title: str
    shape: tuple[int, ...]
    sources: frozenset[int] = frozenset()
    again: bool = False


@dataclass
class Trace:
    """All boxes, inputs first, each after those it reads."""

    boxes: list[Box] = field(default_factory=list)


class _Provenance(TorchFunctionMode):
    """Passes the boxes that tensors come from on to whatever is computed of them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, frozenset[int]] = {}
        self.kept: list[Tensor] = []  # so that no other tensor gets the number of one that is gone

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if sources := self.of((args, kwargs)):
            self.mark(result, sources)
        return result

    def of(self, values: Any) -> frozenset[int]:
        """The boxes behind all tensors of some arguments."""
        return frozenset[int]().union(*(self.found.get(id(each), frozenset()) for each in _tensors(values)))

    def mark(self, values: Any, sources: frozenset[int]) -> None:
        for each in _tensors(values):
            self.found[id(each)] = sources
            self.kept.append(each)


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in _pytree.tree_leaves(values) if isinstance(each, Tensor)]


def _shape(values: Any) -> tuple[int, ...]:
    return tuple(size for size in _tensors(values)[0].shape if size > 1)


def traced(run: Callable[[], Any], steps: Sequence[Step], inputs: Mapping[str, Tensor]) -> Trace:
    """The boxes of one run.

    Args:
        run: computes the answer from the inputs.
        steps: what to watch; what happens inside of one step is not shown.
        inputs: title of each input, and its tensor [1, T].

    Raises:
        ValueError: a step never ran.
    """
    trace, flow = Trace(), _Provenance()
    for title, tensor in inputs.items():
        flow.mark(tensor, frozenset({len(trace.boxes)}))
        trace.boxes.append(Box(None, title, _shape(tensor)))
    everything = frozenset(range(len(trace.boxes)))
    inside = [0]

    def watched(step: Step, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            inside[0] += 1
            try:
                result = original(*args, **kwargs)
            finally:
                inside[0] -= 1
            if not inside[0]:
                again = any(box.step is step for box in trace.boxes)
                # A network that takes its ids apart as numbers leaves no trace of them: it reads the inputs.
                sources = flow.of(result) or everything
                trace.boxes.append(Box(step, step.title, _shape(result), sources, again))
                flow.mark(result, frozenset({len(trace.boxes) - 1}))
            return result

        return call

    with ExitStack() as stack, torch.no_grad():
        for step in steps:
            stack.enter_context(_replaced(step.owner, step.function, watched(step, getattr(step.owner, step.function))))
        stack.enter_context(flow)
        run()
    if never := [step.title for step in steps if all(box.step is not step for box in trace.boxes)]:
        raise ValueError(f"these steps never ran: {', '.join(never)}")
    return trace


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    own = vars(owner)
    before = {name: own[name]} if name in own else {}
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before:
            setattr(owner, name, before[name])
        else:
            delattr(owner, name)
