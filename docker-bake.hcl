# The images: `make image` (for this machine) and `make images` (for every architecture; that needs a builder which can
# build for others, and a registry to push to: docker buildx create --use).
variable "REPOSITORY" { default = "semblance" }
variable "VERSION" { default = "0.1.0" }
variable "PYTHON_IMAGE" { default = "python:3.11-slim" }

group "default" { targets = ["image"] }

target "image" {
  context   = "."
  platforms = ["linux/amd64", "linux/arm64"]
  tags      = ["${REPOSITORY}:${VERSION}"]
  args      = { PYTHON_IMAGE = PYTHON_IMAGE }
}

# For amd64 alone, as requirements-gpu.txt is.
target "gpu" {
  inherits  = ["image"]
  platforms = ["linux/amd64"]
  tags      = ["${REPOSITORY}:${VERSION}-gpu"]
  args      = { GPU = "1" }
}
