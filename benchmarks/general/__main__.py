"""Quality on text that is like no corpus: FAQs, contrast edits, entailment and its calibration.

    python -m benchmarks.general                                  # six models, some ten minutes on one core
    python -m benchmarks.general minilm pwim-general --only faq   # any others

Needs SEMBLANCE_DATA; `--only faq`, `requests` and `statements` do not. Scores are those of the published models through
their graphs, as the service gives them. All texts (`texts.json`) were written for this and are trained on by no model.
The FAQs, the thirty contrasts and the halves called development are development sets: models
were improved with an eye on them. Choose nothing by the test halves of the requests and statements.
"""

from pathlib import Path

from benchmarks.general.sections import SECTIONS, measure
from benchmarks.general.sets import MOST
from benchmarks.report import ROOT, arguments, command, machine, write
from training.publish.runtime import PublishedModel

MODELS = ("avg-paraphrase", "minilm", "avg-sick", "pwim-sick", "pwim-qa", "minilm-cross")


def main() -> None:
    """Measure, print, and write the dated result, Markdown and JSON."""
    parser = arguments("python -m benchmarks.general", __doc__)
    parser.add_argument("ids", nargs="*", default=MODELS, metavar="MODEL", help="ids of published models")
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="these sections [default: all]")
    parser.add_argument("--most", type=int, default=MOST, help="pairs of a corpus; more are sampled")
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    options = parser.parse_args()
    names = [name for name in SECTIONS if not options.only or name in options.only]
    models = {name: PublishedModel(options.models / name) for name in options.ids}
    lines, found = measure(models, names, options.most)
    called = command(parser)
    about = f"{called}. {machine('onnxruntime', 'numpy', 'scikit-learn')}."
    name = "-".join(["general-text", *(options.only or ())])
    prints = {each: model.manifest.fingerprint for each, model in models.items()}
    result = {"command": called.strip("`"), "models": prints, **found}
    write(options.out, name, "Text that is like no corpus", about, lines, result)


if __name__ == "__main__":
    main()
