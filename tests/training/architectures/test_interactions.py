"""One battery for the networks that read both sentences: company and padding move nothing, every weight learns."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from tests.harness import toys
from training.architectures import InteractionConfig, MGIMConfig, PWIMConfig
from training.objectives.parts.losses import kl_to_target, sparse_target

MGIM, PWIM = MGIMConfig(hidden=5), PWIMConfig(hidden=5, maps=(8, 8), grid=8)
DEPARTED = replace(MGIM, comparison=True, first_word=True, copied_start=True, dropout=0.3)
VARIANTS: tuple[InteractionConfig, ...] = (
    MGIM,
    DEPARTED,
    replace(MGIM, conditional=False, projected=True),
    replace(MGIM, attention=False),
    replace(MGIM, attention=False, conditional=False, comparison=True, first_word=True),
    PWIM,
    replace(PWIM, grid=1),
    replace(PWIM, grid=32),
    replace(PWIM, focus="none"),
    replace(PWIM, focus="dropout", word_scale=2.0),
    replace(PWIM, context=False, same_words=True),
)


def label(config: InteractionConfig) -> str:
    base: InteractionConfig = MGIM if isinstance(config, MGIMConfig) else PWIM
    return f"{config.name}-{toys.changed(config, base)}"


every_network = pytest.mark.parametrize("config", VARIANTS, ids=label)
PAIRS = toys.id_pairs()


@every_network
@torch.no_grad()
def test_neither_padding_nor_batch_mates_move_an_answer_or_a_matrix(config: InteractionConfig) -> None:
    net = toys.network(config)

    def run(arguments: toys.Inputs) -> Tensor:
        output: Tensor = net(*arguments)
        if isinstance(config, MGIMConfig) and not config.attention:
            return output
        matrices: Tensor = net.matrices(*arguments)  # type: ignore[operator]
        room = nn.functional.pad(matrices, (0, 50 - matrices.shape[3], 0, 50 - matrices.shape[2]))
        return torch.cat([output, room.flatten(1)], dim=1)

    alone = torch.cat([run(toys.pair_tensors([pair])) for pair in PAIRS])
    for arguments in ((PAIRS,), (PAIRS, 9, 4), (PAIRS, 0, 30, 7)):
        torch.testing.assert_close(run(toys.pair_tensors(*arguments)), alone, atol=1e-5, rtol=1e-5)
    backwards = run(toys.pair_tensors(PAIRS[::-1])).flip(0)
    torch.testing.assert_close(backwards, alone, atol=1e-5, rtol=1e-5)


@every_network
def test_every_parameter_gets_a_gradient(config: InteractionConfig) -> None:
    net, rated = toys.network(config).train(), PAIRS[: len(toys.RATED)]
    target = sparse_target(torch.tensor([pair.target for pair in toys.RATED]), toys.CLASSES)
    kl_to_target(net(*toys.pair_tensors(rated)), target).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    # Never the padding, never a word that was not there.
    words = net.get_parameter("embedding.weight").grad
    assert words is not None
    assert set(words.abs().sum(1).nonzero().flatten().tolist()) == {
        i for a, b in rated for side in (a, b) for i in side
    }
