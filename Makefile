# The front door: `make demo` and `make test` need nothing but Debian 12, apt-get and make.
MODELS := bench/demo_models
JOBS ?= $(shell nproc)

.PHONY: demo build test bench bench-build asan tsan chaos soak slurm-test fuzz format lint packages test-packages bench-packages clean

demo: build
	build/redline demo --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf \
	  bench/demo_files/inventory.py --instruction "$$(cat bench/demo_files/inventory.instruction)"

build: packages
	cmake --preset release
	cmake --build --preset release -j $(JOBS)

test: test-packages
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	ctest --preset dev -j $(JOBS)

# What `redline bench` runs.
bench-build: packages
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target redline-bench

bench: bench-packages
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target redline redline-bench kernel_bench
	build/kernel_bench --benchmark_min_time=0.1
	build/redline bench edit --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf --edits bench/edits.jsonl
	build/redline bench load --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf --edits bench/edits.jsonl --concurrency 1,4,16

asan tsan: test-packages
	cmake --workflow --preset $@

# Accidents under load, and an hour of everything; both want `make build` and npm. KILLS, STREAMS and SEED; MINUTES.
KILLS ?= 100
STREAMS ?= 6
SEED ?= 1
MINUTES ?= 60
chaos: build
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server chaos.mjs $(KILLS) $(STREAMS) $(SEED)

soak: build
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server soak.mjs $(MINUTES)

# deploy/slurm/ under a Slurm of its own on this machine. Needs root, which slurmd needs: sudo make slurm-test
slurm-test: build
	@deploy/install_packages.sh slurm
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) node tests/deploy/slurm.mjs

# Each parser of outside bytes under sanitizers for FUZZ_SECONDS.
FUZZ_SECONDS ?= 60
fuzz: test-packages
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target fuzz
	REDLINE_FUZZ_SECONDS=$(FUZZ_SECONDS) ctest --preset asan -R '^fuzz\.' -j $(JOBS) -V --timeout 86400

format:
	git ls-files '*.hpp' '*.cpp' | xargs clang-format -i

lint: test-packages
	cmake --preset dev
	git ls-files '*.cpp' | grep -v '^kernels/targets/' | xargs clang-tidy -p build-dev --quiet

packages:
	@deploy/install_packages.sh build

test-packages:
	@deploy/install_packages.sh test

bench-packages:
	@deploy/install_packages.sh bench

clean:
	rm -rf build build-dev build-asan build-tsan
