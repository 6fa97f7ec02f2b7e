# `make` alone lists the targets. Everything runs in .venv; nothing else on the machine is touched,
# but on Debian as root `make test` installs the system packages that its tests need.
PY := .venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTEST := $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
NIGHTS := $(addprefix tests/night/test_,whole_night.py mixed_sweep.py detached.py recovery.py quirks.py shared_database.py) \
	tests/simulation/test_rehearsal.py
# By themselves: the demo measures, and an emulated board shares no processor well.
ALONE := tests/night/test_demo.py tests/vm

.DEFAULT_GOAL := help
.PHONY: help setup demo test night check format lint types imports deps cover bench clean

help:            ## list the targets
	@grep -hE '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/:/' | column -t -s:

.venv/.user: pyproject.toml constraints.txt
	@test -x $(PY) || python3 -m venv .venv
	$(PY) -m pip install -q -c constraints.txt -e '.[report]'
	@touch $@

.venv/.dev: pyproject.toml constraints.txt
	@test -x $(PY) || python3 -m venv .venv
	$(PY) -m pip install -q -c constraints.txt -e '.[report,postgres,hands-on,notify,dev,bench]'
	@touch .venv/.user $@

setup: .venv/.dev   ## install farm and all developer tools into .venv
demo: .venv/.user   ## a simulated lab, a sweep over it, results and a report
	$(PY) -m farm demo --out demo
test: .venv/.dev    ## the suite; installs system packages on Debian as root
	$(PY) tests/prepare.py
	$(PYTEST) $(or $(ARGS),tests $(NIGHTS:%=--ignore=%) $(ALONE:%=--ignore=%))
night: .venv/.dev   ## the long tests: rehearsed nights, the demo, an emulated board that reboots
	$(PY) tests/prepare.py
	$(PYTEST) $(NIGHTS)
	$(PY) -m pytest $(ALONE)
check: lint types imports deps   ## all static checks
format: .venv/.dev  ## format the code
	.venv/bin/ruff format . && .venv/bin/ruff check --fix .
lint: .venv/.dev    ## ruff
	.venv/bin/ruff format --check . && .venv/bin/ruff check .
types: .venv/.dev   ## mypy, strict
	.venv/bin/mypy
imports: .venv/.dev ## import contracts
	.venv/bin/lint-imports
deps: .venv/.dev    ## declared against used libraries; board side on Python 3.5
	.venv/bin/deptry farm
	.venv/bin/vermin -q --no-tips -t=3.5- --violations farm/boardside payloads
bench: .venv/.dev   ## benchmarks, as ratios within one run
	$(PY) benchmarks/run.py
clean:          ## remove what make made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
