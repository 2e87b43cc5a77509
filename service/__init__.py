"""The online half: answers requests with published models, over HTTP. Never imports torch or training."""

import os

# ONNX Runtime 1.29 and later send telemetry from Linux too, unless this is set before the import.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
