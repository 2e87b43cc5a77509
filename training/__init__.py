"""Offline half of Semblance: corpora in, trained and exported models out. The only place torch lives."""

import os

# ONNX Runtime 1.29 and later report to their maker from Linux too, unless told not to before they are imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
