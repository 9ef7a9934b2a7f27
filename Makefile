# Turnfold: `make help` lists what there is. Every target sets up the environments that it needs.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# Targets share environments and ports; what can run in parallel does so inside (pytest -n).
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

export SAM_CLI_TELEMETRY := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTHON := .venv/bin/python
SAM := .venv-sam/bin/sam
TEMPLATES := template.yaml infra/observability.yaml
# Of the functions and of the native wheels in the deps layer: x86_64 or arm64.
ARCHITECTURE ?= x86_64
# The emulator that `run`, `demo` and the tests start.
STACK := TURNFOLD_MINISTACK="$(CURDIR)/.venv-ministack/bin/ministack"
# For `make build` and `make deploy`: Name=Value ... of the template's parameters.
PARAMETERS ?=
# A pytest selection for `make test TESTS=tests/unit`, in place of the default suites.
TESTS ?=
# Suites that keep to themselves run on two processes; the others start servers of their own.
FAST_SUITES := tests/unit tests/application tests/template
SERVER_SUITES := tests/contract tests/integration tests/chaos/test_kill_burst.py

# ------------------------------------------------------------------------------------- for people

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: venv venv-ministack vocabulary ## start everything on this machine, at http://127.0.0.1:8787 (PORT)
	@$(STACK) exec $(PYTHON) -m infra.local

.PHONY: demo
demo: venv venv-ministack vocabulary ## a conversation of 30 turns against `make run`, drawn turn by turn
	@$(STACK) exec $(PYTHON) -m infra.local.demo

.PHONY: test
ifeq ($(TESTS),)
test: check tests acceptance e2e ## check, then all suites (TESTS=path: only that one)
else
test: check tests
endif

.PHONY: check
check: style types imports template ## ruff, mypy, import-linter, cfn-lint, checkov, sam validate

.PHONY: evaluate
evaluate: venv vocabulary ## recall, and answers that survive, on conversations, as one JSON (DATA=folder)
	@test -d "$(DATA)" || { echo "say which folder: make evaluate DATA=path" >&2; exit 2; }
	@$(PYTHON) tests/load/evaluate.py "$(DATA)"

.PHONY: format
format: venv ## let ruff format and repair what it can
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

.PHONY: build
build: venv-sam ## sam build, for ARCHITECTURE=x86_64 or arm64; needs Python 3.13
	@# The layers' own makefiles run inside: this make's flags and job slots are not theirs. The
	@# cache knows the sources but not the architecture, so each has its own.
	@python=$$(infra/find_python.sh 3.13) && \
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u GNUMAKEFLAGS \
		PATH="$${python%/*}:$$PATH" ARCHITECTURE="$(ARCHITECTURE)" \
		$(SAM) build --cached --cache-dir ".aws-sam/cache-$(ARCHITECTURE)" --parallel \
		--parameter-overrides Architecture=$(ARCHITECTURE) && \
	"$$python" infra/release_digest.py --stamp .aws-sam/build/template.yaml $(PARAMETERS)
	@du -sh .aws-sam/build/*/ | sed 's,\.aws-sam/build/,,; s,/$$,,'

.PHONY: deploy
deploy: build ## build, then sam deploy (GUIDED=1 asks for everything; PARAMETERS="Name=Value ...")
	$(SAM) deploy $(if $(GUIDED),--guided) $(if $(PARAMETERS),--parameter-overrides $(PARAMETERS))

.PHONY: deploy-local
deploy-local: build venv-ministack ## the deployed form in MiniStack on this machine; prints its address and a key
	@$(STACK) exec $(PYTHON) -m infra.deployed $(PARAMETERS)

.PHONY: e2e
e2e: venv venv-ministack venv-sam venv-lambda vocabulary ## build, deploy into MiniStack, use over HTTP, change, delete; containers
	$(STACK) $(PYTHON) -m pytest tests/e2e

.PHONY: acceptance-deployed
acceptance-deployed: build venv venv-ministack ## the acceptance suite against the deployed form
	@$(STACK) infra/acceptance.sh deployed -m spine

.PHONY: plot
plot: venv vocabulary ## draw docs/policies.png anew, from a conversation: DATA=conversations.jsonl
	@test -n "$(DATA)" || { echo "make plot DATA=<conversations.jsonl>"; exit 2; }
	@infra/venv.sh .venv-docs infra/requirements/docs.txt
	$(PYTHON) tests/load/policy_figures.py "$(DATA)" > .venv-docs/figures.json
	.venv-docs/bin/python infra/plot_policies.py .venv-docs/figures.json

.PHONY: lock
lock: venv-lock ## write the hashed requirement files anew from the .in files (UPGRADE=1: newest versions)
	infra/lock.sh $(if $(UPGRADE),--upgrade)

.PHONY: clean
clean: ## remove environments, builds and caches; keeps .turnfold, the local stack's data
	rm -rf .venv .venv-* .venv*.lock .aws-sam build dist layers/vocab/vocabulary \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ------------------------------------------------------------------------------- parts of the above

.PHONY: style
style: venv
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .

.PHONY: types
types: venv
	.venv/bin/mypy

.PHONY: imports
imports: venv
	.venv/bin/lint-imports

.PHONY: template
template: venv-sam venv-checkov
	.venv-sam/bin/cfn-lint $(TEMPLATES)
	$(SAM) validate --lint --region us-east-1
	@# Without a log level, it warns of a file of its own.
	LOG_LEVEL=ERROR .venv-checkov/bin/checkov --config-file infra/checkov.yaml -f $(TEMPLATES)

.PHONY: tests
tests: venv venv-ministack vocabulary
ifneq ($(TESTS),)
	$(STACK) $(PYTHON) -m pytest $(TESTS)
else
	$(STACK) $(PYTHON) -m pytest -n 2 $(wildcard $(FAST_SUITES))
	$(STACK) $(PYTHON) -m pytest $(wildcard $(SERVER_SUITES))
endif

# The black-box suite over HTTP, against a stack of its own; lies outside of this repository, so it
# runs only where there is one (the script says so if not).
.PHONY: acceptance
acceptance: venv venv-ministack vocabulary
	@$(STACK) infra/acceptance.sh local

.PHONY: vocabulary
vocabulary: venv
	@$(PYTHON) layers/vocab/unpack.py

# Environments, each exactly as its requirements file says; done in a moment if they are already.
.PHONY: venv venv-ministack venv-sam venv-checkov venv-lambda venv-lock
venv:
	@infra/venv.sh .venv infra/requirements/dev.txt layers/core functions
venv-ministack:
	@infra/venv.sh .venv-ministack infra/requirements/ministack.txt
venv-sam:
	@infra/venv.sh .venv-sam infra/requirements/sam.txt
venv-checkov:
	@infra/venv.sh .venv-checkov infra/requirements/checkov.txt
venv-lambda:
	@infra/venv.sh .venv-lambda infra/requirements/lambda.txt
venv-lock:
	@infra/venv.sh .venv-lock infra/requirements/lock.txt
