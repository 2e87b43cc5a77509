import pytest

from training.corpora.penn import detokenise


@pytest.mark.parametrize(
    ("tokenised", "plain"),
    [
        ("the film -lrb- `` it 's on '' -rrb- , he said .", 'the film ("it\'s on"), he said.'),
        ("they called it '' murder and mayhem '' today", 'they called it "murder and mayhem" today'),
        ("I do n't know , you ca n't !", "I don't know, you can't!"),
        ("we 'll see what they 've done", "we'll see what they've done"),
        ("-LSB- 50 % -RSB- of $ 3", "[50%] of $3"),
        ('He said "yes" and "no".', 'He said "yes" and "no".'),
        ("  two   spaces ", "two spaces"),
        ("rock 's roll 'star", "rock's roll 'star"),
    ],
)
def test_detokenise(tokenised, plain):
    assert detokenise(tokenised) == plain
    assert detokenise(plain) == plain
