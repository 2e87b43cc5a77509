"""Every corpus the project can use: description, files, licence and official source."""

import functools
from dataclasses import dataclass

from training.corpora.files import CorpusError
from training.corpora.readers import (
    answers,
    captions,
    intents,
    labelled_pairs,
    malstm,
    msrp,
    nli,
    paraphrase,
    pit2015,
    sick,
    sst,
    sts,
    stsb,
    wikipedia,
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus. ``source`` is the official page or, where there is none, the publication."""

    id: str
    what: str
    files: tuple[str, ...]
    licence: str
    source: str


def find(identity: str) -> Corpus:
    """The corpus of that id; raises `CorpusError` naming those there are."""
    for corpus in CATALOGUE:
        if corpus.id == identity:
            return corpus
    raise CorpusError(f"unknown corpus {identity!r}; known: {', '.join(corpus.id for corpus in CATALOGUE)}")


_sts_licence = "mixed: Microsoft Research terms, CC BY-SA 3.0 (StackExchange), others unstated"
_sts = functools.partial(Corpus, licence=_sts_licence)

CATALOGUE: tuple[Corpus, ...] = (
    Corpus(
        "sick",
        "relatedness 1..5 and entailment, SemEval-2014 task 1",
        tuple(sick.FILES.values()),
        "CC BY-NC-SA 3.0",
        "https://alt.qcri.org/semeval2014/task1/",
    ),
    *(
        _sts(
            f"sts-{year}",
            f"similarity 0..5, SemEval STS {year}" + (" (SMT left out: LDC text)" if year == "2013" else ""),
            tuple(sts.path_of(part, name) for part, names in sts.SETS.items() if part[:4] == year for name in names),
            source=page,
        )
        for year, page in {
            "2012": "https://www.cs.york.ac.uk/semeval-2012/task6/",
            "2013": "https://ixa2.si.ehu.eus/sts/",
            "2014": "https://alt.qcri.org/semeval2014/task10/",
            "2015": "https://alt.qcri.org/semeval2015/task2/",
            "2016": "https://alt.qcri.org/semeval2016/task1/",
        }.items()
    ),
    Corpus(
        "stsb",
        "STS Benchmark, a selection of STS 2012-2017",
        (stsb.FILES["train"], stsb.FILES["dev"]),
        "as STS",
        "https://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark",
    ),
    Corpus(
        "msrp",
        "Microsoft Research Paraphrase Corpus",
        tuple(msrp.FILES.values()),
        "Microsoft Research licence",
        "https://www.microsoft.com/en-us/download/details.aspx?id=52398",
    ),
    Corpus(
        "trecqa",
        "answer sentence selection, TREC questions",
        tuple(answers.TRECQA.values()),
        "unstated (TREC/AQUAINT text, research use)",
        "https://aclanthology.org/D07-1003 (Wang et al. 2007)",
    ),
    Corpus(
        "wikiqa",
        "answer sentence selection, Bing questions",
        tuple(answers.WIKIQA.values()),
        "Microsoft Research Data License Agreement",
        "https://www.microsoft.com/en-us/download/details.aspx?id=52419",
    ),
    Corpus(
        "multi30k",
        "Flickr30k captions, five an image",
        (captions.SOURCES["multi30k"],),
        "Flickr30k terms, non-commercial",
        "https://github.com/multi30k/dataset",
    ),
    Corpus(
        "flickr8k",
        "Flickr8k captions, five an image",
        (captions.SOURCES["flickr8k"],),
        "research use",
        "https://doi.org/10.1613/jair.3994 (Hodosh et al. 2013)",
    ),
    Corpus(
        "coco",
        "MS COCO val2017 captions",
        (captions.SOURCES["coco"],),
        "CC BY 4.0",
        "https://cocodataset.org",
    ),
    Corpus(
        "caption-overlap",
        "images whose captions are SICK or STS sentences",
        (captions.OVERLAP_FILE,),
        "derived list of ids, no text",
        "made from the caption corpora, SICK and STS",
    ),
    Corpus(
        "quora",
        "duplicate questions, positives only",
        tuple(paraphrase.QUORA_FILES.values()),
        "Quora terms, non-commercial",
        "Quora Question Pairs, first dataset release (2017)",
    ),
    Corpus(
        "twitter-url",
        "tweets sharing a URL, automatic positives",
        tuple(paraphrase.TWITTER_URL_FILES.values()),
        "unstated (Twitter text, research)",
        "https://aclanthology.org/D17-1126 (Lan et al. 2017)",
    ),
    Corpus(
        "twitter-labelled",
        "tweets sharing a URL, labelled by people",
        (paraphrase.TWITTER_LABELLED_FILE,),
        "unstated (research, on request)",
        "https://github.com/lanwuwei/Twitter-URL-Corpus",
    ),
    Corpus(
        "simplification",
        "complex and simple sentences of six corpora",
        (paraphrase.SIMPLIFICATION_FILE,),
        "GPL-3 (TurkCorpus), CC BY-NC 4.0 (ASSET), CC BY-SA (others)",
        "TurkCorpus, ASSET, WikiSplit, WikiLarge, WikiSmall",
    ),
    Corpus(
        "bible",
        "verses in two translations each",
        (paraphrase.BIBLE_FILE,),
        "public domain",
        "https://github.com/keithecarlson/StyleTransferBibleData",
    ),
    Corpus(
        "snli",
        "inference, dev and test as redistributed",
        (*nli.SNLI_FILES["tokenised"].values(), *nli.SNLI_FILES["raw"].values()),
        "CC BY-SA 4.0",
        "https://nlp.stanford.edu/projects/snli/",
    ),
    Corpus(
        "snli-1.0",
        "inference, the official release with train",
        tuple(nli.SNLI_FILES["official"].values()),
        "CC BY-SA 4.0",
        "https://nlp.stanford.edu/projects/snli/",
    ),
    Corpus(
        "multinli",
        "inference, dev matched and mismatched",
        (nli.MULTINLI_FILE,),
        "OANC licence, CC BY(-SA) 3.0 for fiction",
        "https://cims.nyu.edu/~sbowman/multinli/",
    ),
    *(
        Corpus(f"intents-{name}", what, (intents.FILES[name],), licence, source)
        for name, (what, licence, source) in {
            "banking77": (
                "what customers ask a bank, by intent",
                "CC BY 4.0",
                "https://arxiv.org/abs/2003.04807 (Casanueva et al. 2020)",
            ),
            "clinc150": (
                "what people ask an assistant, by intent: ten domains",
                "CC BY 3.0",
                "https://aclanthology.org/D19-1131 (Larson et al. 2019)",
            ),
            "hwu64": (
                "what people ask an assistant at home, by intent",
                "CC BY 4.0",
                "https://github.com/xliuhw/NLU-Evaluation-Data",
            ),
        }.items()
    ),
    *(
        Corpus(name, what, (labelled_pairs.FILES[name].file,), licence, source)
        for name, (what, licence, source) in {
            "mnli-not": (
                "MultiNLI pairs known only not to be entailment",
                "C-UDA; MultiNLI: OANC and others",
                "https://github.com/microsoft/TaxiNLI and natural-instructions",
            ),
            "fever-dev": (
                "claims and evidence from Wikipedia, FEVER's development claims",
                "CC BY-SA 3.0",
                "https://fever.ai/dataset/fever.html",
            ),
            "fool-me-twice": (
                "claims written to deceive, and evidence from Wikipedia",
                "CC BY-SA 3.0; Apache-2.0",
                "https://github.com/google-research/fool-me-twice",
            ),
            "entailment-bank": (
                "steps of proofs of science facts, entailments only",
                "Apache-2.0",
                "https://github.com/allenai/entailment_bank",
            ),
            "argument-keypoint": (
                "arguments and the key points that they match, labelled by people",
                "CDLA-Sharing 1.0",
                "https://github.com/IBM/KPA_2021_shared_task",
            ),
            "nq-sentences": (
                "real search questions and the sentences of a paragraph, one of which holds the answer",
                "CC BY-SA 3.0",
                "https://github.com/google-research-datasets/QED",
            ),
            "medquad": (
                "health questions and answers of nine institutes; wrong answers chosen by us",
                "CC BY 4.0",
                "https://github.com/abachaa/MedQuAD",
            ),
            "stackexchange": (
                "questions and answers about beer, coffee and teaching mathematics; wrong answers chosen by us",
                "CC BY-SA 3.0",
                "https://archive.org/details/stackexchange",
            ),
            "snli-train": (
                "SNLI: a fifth of the training pairs",
                "CC BY-SA 4.0",
                "https://nlp.stanford.edu/projects/snli/",
            ),
            "mnli-train": (
                "MultiNLI: a part of the training pairs, all genres",
                "OANC and others",
                "https://cims.nyu.edu/~sbowman/multinli/",
            ),
            "litl": (
                "entailment pairs written with a linguist in the loop",
                "unstated (research release)",
                "https://arxiv.org/abs/2104.07179 (Parrish et al. 2021)",
            ),
            "san-wiki": (
                "entailment pairs from Wikipedia, labelled by people",
                "CC BY-SA 3.0",
                "https://aclanthology.org/2022.coling-1.0 (semi-automatic NLI)",
            ),
            "wanli": (
                "entailment pairs revised by people, a part",
                "CC BY 4.0",
                "https://huggingface.co/datasets/alisawuffles/WANLI",
            ),
            "fever-nli": (
                "claims and evidence from Wikipedia",
                "MIT, BSD-3-Clause; Wikipedia text CC BY-SA",
                "https://github.com/TalSchuster/FeverSymmetric",
            ),
            "cad-nli": (
                "SNLI pairs that people edited until the label changed",
                "Apache-2.0; SNLI CC BY-SA 4.0",
                "https://github.com/acmi-lab/counterfactually-augmented-data",
            ),
            "breaking-nli": (
                "SNLI premises with one word replaced",
                "CC BY-SA 4.0",
                "https://github.com/BIU-NLP/Breaking_NLI",
            ),
            "cannot": (
                "negated and antonym pairs",
                "CC BY-SA 4.0",
                "https://github.com/dmlls/cannot-dataset",
            ),
            "scitail-dev": (
                "science questions: does a sentence support the answer",
                "see the corpus' own folder",
                "https://allenai.org/data/scitail",
            ),
            "paws-wiki": (
                "pairs with the same words in another order, a part",
                "free for any purpose",
                "https://github.com/google-research-datasets/paws",
            ),
            "qqp-labelled": (
                "Quora question pairs with labels, a part",
                "Quora terms, non-commercial",
                "https://quoradata.quora.com/First-Quora-Dataset-Release-Question-Pairs",
            ),
            "parade": (
                "definitions from computer science, paraphrase or not",
                "unstated",
                "https://github.com/heyunh2015/PARADE_dataset",
            ),
            "paraphrase-ni": (
                "paraphrases by translation there and back (ParaNMT), and questions with one answer (ComQA)",
                "unstated",
                "https://github.com/kuntalkumarpal/natural-instructions-expansion",
            ),
            "caption-contrast": (
                "captions with one thing changed",
                "MIT, CC BY 4.0",
                "https://github.com/RAIVNLab/sugar-crepe and https://github.com/Heidelberg-NLP/VALSE",
            ),
            "selqa": (
                "answer sentences from Wikipedia",
                "Apache-2.0",
                "https://github.com/emorynlp/selqa",
            ),
            "qnli-dev": (
                "does the sentence answer the question: SQuAD development part",
                "CC BY-SA 4.0",
                "https://rajpurkar.github.io/SQuAD-explorer/",
            ),
        }.items()
    ),
    Corpus(
        "pit2015",
        "Twitter paraphrase and similarity, SemEval-2015 task 1",
        tuple(pit2015.FILES.values()),
        "unstated",
        "https://github.com/cocoxu/SemEval-PIT2015",
    ),
    Corpus(
        "sst",
        "sentiment of film reviews, sentences",
        tuple(sst.path_of(task, split) for task in sst.LABELS for split in sst.SPLITS),
        "unstated",
        "https://nlp.stanford.edu/sentiment/",
    ),
    Corpus(
        "ppdb",
        "paraphrase database, words",
        (
            "ppdb-lexical/ppdb-1.0-xl-lexical-neighbours.txt.gz",
            "ppdb-lexical/ppdb-1.0-xxxl-lexical-synonym-pairs.tsv.gz",
            "ppdb-lexical/ppdb-2.0-xxl-lexical-equivalence.tsv",
        ),
        "CC BY 3.0",
        "http://paraphrase.org",
    ),
    Corpus(
        "ppdb-ratings",
        "phrase pairs rated 1..5 by people",
        ("ppdb-human-ratings/ppdb-sample.tsv", "ppdb-human-ratings/wiki-sample.tsv"),
        "unstated (distributed with PPDB 2.0)",
        "https://aclanthology.org/P15-2070 (Pavlick et al. 2015)",
    ),
    Corpus(
        "malstm-extras",
        "released pre-training pairs and synonyms of MaLSTM",
        (malstm.PAIRS_FILE, "malstm-extras/synonyms.tsv"),
        "unstated",
        "https://github.com/aditya1503/Siamese-LSTM",
    ),
    Corpus(
        "wikipedia",
        "plain English Wikipedia paragraphs",
        wikipedia.PARTS,
        "CC BY-SA",
        "https://dumps.wikimedia.org",
    ),
    Corpus(
        "glove-sick",
        "GloVe 840B (Common Crawl) vectors of the SICK vocabulary, 300 values",
        ("vectors/glove840b-sick-vocab-300d.npz",),
        "PDDL 1.0",
        "https://nlp.stanford.edu/projects/glove/",
    ),
)
