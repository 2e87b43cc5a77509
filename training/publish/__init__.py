"""From a finished run to a model folder: calibration, ONNX export, parity, figures, manifest, card. Imports train and below."""
