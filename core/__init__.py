"""What training and service both use: model folders, graphs, tokenizer, scoring.

Both halves import the modules of this package; it imports neither, and needs only numpy and pydantic. A model is a
folder whose `manifest.json` lists what is in it. Every name, dtype and rule of a model folder is stated here once.
"""
