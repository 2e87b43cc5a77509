"""Offline half of Semblance: trains models on corpora and exports them. Only this package imports torch."""

import os

# ONNX Runtime 1.29 and later send telemetry from Linux too, unless this is set before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
