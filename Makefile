# Everything runs in $(VENV), which is made when missing. A stamp a set of packages: a set is
# installed again only when pyproject.toml or constraints.txt change.
#
#   make demo                          budget, then checks (each stage says what it downloads)
#   make test lint wheel docs status   PYTEST='-k budget' narrows the tests, JOBS=4 widens them
#   TORCH_INDEX=URL                    also look for torch on this index, such as one of CPU wheels:
#                                      its 2.13.0+cpu is preferred to a plain 2.13.0
#   PYTHON=python3.12                  interpreter of the environment, 3.11 or newer

VENV ?= .venv
JOBS ?= 2
PYTEST ?=
TORCH_INDEX ?=
PYTHON ?= $(shell for p in python3 python python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# The file is named here, not on each line, so that pip also obeys it when it builds a package.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -q
PINS := pyproject.toml constraints.txt
ANNOUNCE := $(PY) -m ascendkit.doctor.downloads
TORCH := torch==$(shell sed -n 's/^torch==//p' constraints.txt)
PEERS := tile-kernels==$(shell sed -n 's/^tile-kernels==\([^;]*\).*/\1/p' constraints.txt)

.PHONY: demo demo-budget demo-check demo-lower environment test lint lint-rules lint-format lint-types \
  lint-cpp wheel docs status startup clean
.DELETE_ON_ERROR:

demo: demo-budget
	@$(MAKE) --no-print-directory demo-check
	@$(MAKE) --no-print-directory demo-lower

demo-budget: $(VENV)/.base
	@echo; echo "== 1/3  what one step costs (no torch needed) =="
	$(PY) -m ascendkit.budget model=v3 phase=train hardware=h800
	$(PY) -m ascendkit.budget model=v4_1_flash phase=decode 'hardware=[ascend_950dt,h200,b200]' \
	  batch=64 context=65536 ep=64

demo-check: $(VENV)/.torch
	@echo; echo "== 2/3  is topk_gate right? (reference platform, judged by an independent oracle) =="
	$(PY) -m ascendkit.check component=tilekernels op=topk_gate platform=reference level=smoke

demo-lower: $(VENV)/.emu
	@echo; echo "== 3/3  from TileLang to the Ascend 950, on this CPU =="
	$(PY) examples/ascend_scale.py
	$(PY) examples/ascend_missing_wait.py

environment: $(VENV)/.dev $(VENV)/.npu $(VENV)/.peers

test: environment
	$(PY) -m pytest -n $(JOBS) --dist loadgroup $(PYTEST)

# `make -k lint` goes on after the first that finds something.
lint: lint-rules lint-format lint-types lint-cpp

lint-rules: $(VENV)/.dev
	$(PY) -m ruff check .

lint-format: $(VENV)/.dev
	$(PY) -m ruff format --check .

lint-types: $(VENV)/.dev
	$(PY) -m mypy

lint-cpp: $(VENV)/.dev
	git ls-files '*.h' '*.hpp' '*.cpp' '*.cc' '*.cu' '*.cuh' | \
	  xargs -r $(VENV)/bin/clang-format --dry-run -Werror

wheel: $(VENV)/.dev
	$(PY) -m build --wheel --no-isolation

docs: $(VENV)/.docs status
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

status: $(VENV)/.base
	$(PY) -m ascendkit status output=markdown > $(VENV)/status.md
	mv $(VENV)/status.md docs/status.md

startup: $(VENV)/.base
	$(PY) -m ascendkit.doctor.startup

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .ledger.json

$(VENV)/.base: $(PINS)
	@test -n "$(PYTHON)" || { echo "no Python >= 3.11 on PATH; name one: make PYTHON=..." >&2; exit 2; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 2; }
	@echo "installing the base set into $(VENV) (about 20 MB to download, no torch)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.torch: $(VENV)/.base
	@$(ANNOUNCE) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(TORCH)
	@$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(TORCH)
	@touch $@

$(VENV)/.emu: $(VENV)/.torch
	@$(ANNOUNCE) -e '.[emu]'
	@$(PIP) -e '.[emu]'
	@touch $@

$(VENV)/.dev: $(VENV)/.emu
	@$(ANNOUNCE) -e '.[emu,mpi,dev]'
	@$(PIP) -e '.[emu,mpi,dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	@$(PIP) -e '.[docs]'
	@touch $@

# A peer whose kernels the emulator runs. It asks for a newer Python and torch than it needs.
$(VENV)/.peers: $(VENV)/.dev
	@$(ANNOUNCE) --no-deps --ignore-requires-python $(PEERS)
	@$(PIP) --no-deps --ignore-requires-python $(PEERS) 2>/dev/null \
	  || echo "no tile-kernels to be had: its tests will say so"
	@touch $@

# Beside the environment, not in it: with this wheel and without CANN, a plain "import torch" fails.
$(VENV)/.npu: $(VENV)/.torch
	@$(ANNOUNCE) --no-deps --target $(VENV)/npu torch-npu
	@$(PIP) --no-deps --target $(VENV)/npu --upgrade torch-npu 2>/dev/null \
	  || echo "no torch-npu wheel for this machine: its tests will say so"
	@touch $@
