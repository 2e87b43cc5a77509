"""Expected content of each corpus file: rows (header not counted) and, where published, rows per label and questions.

Readers compare what they read with this table, so that a truncated, duplicated or different file is detected.
Numbers are those of the publication; a comment marks files that are a known variant of it.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Published:
    """Expected counts of one file. ``groups`` counts distinct `Pair.group` values, i.e. questions."""

    rows: int
    labels: dict[str, int] = field(default_factory=dict)
    groups: int | None = None


def _answers(positive: int, negative: int, questions: int) -> Published:
    return Published(positive + negative, {"0": negative, "1": positive}, questions)


def _nli(entailment: int, neutral: int, contradiction: int) -> Published:
    labels = {"entailment": entailment, "neutral": neutral, "contradiction": contradiction}
    return Published(sum(labels.values()), labels)


_STS = {
    "2012-train": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 734},
    "2012-test": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "OnWN": 750, "SMTnews": 399},
    "2013-test": {"headlines": 750, "OnWN": 561, "FNWN": 189},
    "2014-test": {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "images": 750,
        "OnWN": 750,
        "tweet-news": 750,
    },
    "2015-test": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "2016-test": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
}
_WIKIPEDIA_LINES = (18989, 20085, 19586, 19668, 19929, 19450, 20035, 19717, 19349, 19568, 9048)

PUBLISHED: dict[str, Published] = {
    "sick/SICK_train.txt": _nli(1299, 2536, 665),
    "sick/SICK_trial.txt": _nli(144, 282, 74),
    "sick/SICK_test_annotated.txt": _nli(1414, 2793, 720),
    **{f"sts/{year}/{name}.tsv": Published(rows) for year, sets in _STS.items() for name, rows in sets.items()},
    "stsb/sts-train.tsv": Published(5749),
    "stsb/sts-dev.tsv": Published(1500),
    "msrp/msr_paraphrase_train.txt": Published(4076, {"0": 1323, "1": 2753}),
    "msrp/msr_paraphrase_test.txt": Published(1725, {"0": 578, "1": 1147}),
    "trecqa/train-all.tsv.gz": _answers(6403, 47014, 1229),
    # The literature also counts questions without any candidate (94, 82 and 100 here); those have no rows.
    "trecqa/train.tsv": _answers(348, 4370, 93),
    "trecqa/dev-raw.tsv": _answers(222, 926, 81),
    "trecqa/dev-clean.tsv": _answers(205, 912, 65),
    "trecqa/test-raw.tsv": _answers(284, 1233, 95),
    "trecqa/test-clean.tsv": _answers(248, 1194, 68),
    "wikiqa/WikiQA-train.tsv.gz": _answers(1040, 19320, 2118),
    "wikiqa/WikiQA-train-filtered.tsv": _answers(1040, 7632, 873),
    "wikiqa/WikiQA-dev.tsv": _answers(140, 2593, 296),
    "wikiqa/WikiQA-dev-filtered.tsv": _answers(140, 990, 126),
    "wikiqa/WikiQA-test.tsv": _answers(293, 5872, 633),
    "wikiqa/WikiQA-test-filtered.tsv": _answers(293, 2058, 243),
    "captions/multi30k-flickr30k-captions.tsv.gz": Published(31014),
    "captions/flickr8k-captions.tsv": Published(8092),
    "captions/coco-val2017-captions.tsv": Published(25014),
    "captions/eval-overlap-images.tsv": Published(2352),  # our own list, not a publication's
    # Quora and Twitter-URL: the distinct rows of the published 100,000 / 2,797 / 30,000 and 110,000 / 1,000 / 3,000.
    "quora-paraphrase/train.tsv.gz": Published(71198),
    "quora-paraphrase/val.tsv": Published(2766),
    "quora-paraphrase/test.tsv": Published(26954),
    "twitter-url-paraphrase/train.tsv.gz": Published(87529),
    "twitter-url-paraphrase/val.tsv": Published(994),
    "twitter-url-paraphrase/test.tsv": Published(2983),
    "twitter-url-labelled/train.tsv.gz": Published(42200, {"0": 31033, "1": 11167}),
    "simplification/complex-simple-pairs.tsv.gz": Published(58929),  # a collection of our own from six publications
    "bible-versions/bible-pairs.tsv.gz": Published(93208),
    "snli/snli-dev-tokenised.tsv": _nli(3329, 3235, 3278),
    "snli/snli-test-tokenised.tsv": _nli(3368, 3219, 3237),
    "snli/snli-dev-raw.tsv": Published(9831),  # 11 fewer than published, in every copy found
    "snli/snli_1.0_train.tsv.gz": Published(549367),  # 550,152 less 785 without a gold label
    "snli/snli_1.0_dev.tsv.gz": _nli(3329, 3235, 3278),  # 10,000 less 158
    "snli/snli_1.0_test.tsv.gz": _nli(3368, 3219, 3237),  # 10,000 less 176
    "multinli/multinli-dev.tsv.gz": Published(19647),
    # Parts of larger releases (our own selections), and small releases whole.
    "snli-train-part/snli-train-part.tsv.gz": _nli(43244, 29213, 33822),
    "mnli-train-part/mnli-train-part.tsv.gz": _nli(10423, 10756, 10428),
    "mnli-train-part/mnli-train-part-not-x.tsv.gz": Published(34042),
    "fever-dev/fever-dev.tsv.gz": _nli(2759, 0, 2559),
    "fool-me-twice/fool-me-twice.tsv.gz": _nli(1277, 0, 1272),
    "entailment-bank/entailment-bank.tsv.gz": _nli(3013, 0, 0),
    "argument-keypoint/argkp2021.tsv.gz": Published(24093, {"0": 19095, "1": 4998}),
    "natural-questions-sentences/nq-qed-sentences.tsv.gz": _answers(5026, 16848, 5026),
    "medquad/medquad.tsv.gz": _answers(10230, 16047, 10196),
    "stackexchange-small/stackexchange-small.tsv.gz": _answers(1760, 4628, 1157),
    "intents-banking77/banking77.tsv.gz": Published(9971),
    "intents-clinc150/clinc150.tsv.gz": Published(17946),
    "intents-hwu64/hwu64.tsv.gz": Published(9926),
    "ling-in-the-loop/litl-train.tsv.gz": _nli(14995, 14995, 14993),
    "semi-automatic-nli/san-wiki-train.tsv.gz": _nli(4507, 5237, 5356),
    "wanli-part/wanli-train-part.tsv.gz": _nli(5001, 4996, 5000),
    "fever-nli-part/fever-nli-part.tsv.gz": Published(13939),
    "counterfactual-nli/cad-nli-revised.tsv.gz": Published(8974),
    "breaking-nli/breaking-nli.tsv.gz": _nli(979, 47, 7136),
    "negation-cannot/cannot-sources.tsv.gz": Published(26984),
    "nli-small/scitail-real-dev.tsv": Published(1303),
    "paws-wiki-part/paws-wiki-part.tsv.gz": Published(3649, {"0": 1976, "1": 1673}),
    "qqp-part/qqp-labelled-part.tsv.gz": Published(9598, {"0": 6109, "1": 3489}),
    "parade/parade.tsv.gz": Published(8825),
    "paraphrase-ni/paraphrase-ni.tsv.gz": Published(10508, {"1": 10508}),
    "caption-contrast/caption-contrast.tsv.gz": Published(15075, {"0": 15075}),
    "selqa-part/selqa-dev-test.tsv.gz": Published(28701, {"0": 26014, "1": 2687}),
    "qnli-dev/qnli-dev.tsv.gz": Published(5695, {"0": 2847, "1": 2848}),
    "twitter-pit2015/dev.tsv": Published(4727, {"0": 2672, "1": 1470, "debatable": 585}),
    "twitter-pit2015/test.tsv": Published(972, {"0": 663, "1": 175, "debatable": 134}),
    "sst/sst-binary.train.tsv": Published(6920),
    "sst/sst-binary.dev.tsv": Published(872),
    "sst/sst-binary.test.tsv": Published(1821),
    "sst/sst-fine.train.tsv": Published(8544),
    "sst/sst-fine.dev.tsv": Published(1101),
    "sst/sst-fine.test.tsv": Published(2210),
    "ppdb-lexical/ppdb-1.0-xl-lexical-neighbours.txt.gz": Published(102902),
    "ppdb-lexical/ppdb-1.0-xxxl-lexical-synonym-pairs.tsv.gz": Published(210372),
    "ppdb-lexical/ppdb-2.0-xxl-lexical-equivalence.tsv": Published(50154),
    "ppdb-human-ratings/ppdb-sample.tsv": Published(26456),
    "ppdb-human-ratings/wiki-sample.tsv": Published(13954),
    "malstm-extras/sts-pretraining-pairs.tsv": Published(11219),
    "malstm-extras/synonyms.tsv": Published(1790),
    "vectors/glove840b-sick-vocab-300d.npz": Published(2402),
    # Ours: a sample of articles, one paragraph a line.
    **{f"corpus-wikipedia/enwiki-part{part:02d}.txt.gz": Published(rows) for part, rows in enumerate(_WIKIPEDIA_LINES)},
}
