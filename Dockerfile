# The service alone: core, service, the client's few files, the published models. No torch, no compiler, no pip, no root.
# Another build of the base, or one pinned by digest, is chosen with --build-arg PYTHON_IMAGE=... (docs/operating.md);
# --build-arg GPU=1 installs ONNX Runtime for CUDA, with CUDA's libraries (docs/how-to/gpu.md).
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
RUN python -m venv /opt/build && python -m venv --without-pip /opt/venv
# Dependencies first: this layer is made anew only when a lock changes. What nothing here imports goes at once: tests,
# ONNX Runtime's tools for making models, and its second library, which is for programs in C.
ARG GPU=0
COPY requirements.txt requirements-gpu.txt requirements-build.txt ./
RUN /opt/build/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements-build.txt \
    && if [ "$GPU" = 1 ]; then lock=requirements-gpu.txt; else lock=requirements.txt; fi \
    && /opt/build/bin/python -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --require-hashes -r "$lock" \
    && find /opt/venv \( -path '*/onnxruntime/capi/libonnxruntime.so.*' -o -path '*/onnxruntime/transformers' \
        -o -path '*/onnxruntime/quantization' -o -path '*/onnxruntime/tools' -o -type d -name tests \) \
        -prune -exec rm -rf {} +
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY service service
COPY semblance semblance
RUN /opt/build/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/wheel . \
    && /opt/build/bin/python -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps /opt/wheel/*.whl

# The image's Python packages as CycloneDX: make sbom.
FROM build AS inventory
COPY constraints.txt ./
RUN /opt/build/bin/python -m pip install --no-cache-dir -c constraints.txt cyclonedx-bom \
    && /opt/build/bin/cyclonedx-py environment --output-reproducible --output-file /sbom.cdx.json /opt/venv/bin/python
FROM scratch AS sbom
COPY --from=inventory /sbom.cdx.json /

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 semblance \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin semblance
WORKDIR /app
COPY --from=build /opt/venv /opt/venv
COPY models models
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    OPENBLAS_NUM_THREADS=1 \
    SEMBLANCE_HOST=0.0.0.0 \
    SEMBLANCE_PORT=8000 \
    SEMBLANCE_MODELS_DIR=/app/models:/app/own-models
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['SEMBLANCE_PORT'] + '/health/ready', timeout=2)"]
CMD ["python", "-m", "service"]
