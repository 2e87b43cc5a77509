"""The online half: answers requests with published models, over HTTP. Never imports torch or training."""
