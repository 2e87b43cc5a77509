"""From a finished run to a model folder: calibration, ONNX export, parity, manifest, card. Imports train and below."""
