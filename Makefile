# The entry points: `make demo` and `make test` need nothing but Debian 12, apt-get and make.
MODELS := bench/demo_models
KERNELS ?= all
JOBS ?= $(shell nproc)

.PHONY: demo build install deb deb-test sbom oci oci-test test arm-test arm-build arm-packages bench bench-build asan tsan chaos soak hostile clients conformance vscode-test slurm-test systemd-test netns-test fuzz docs docs-reference format lint packages all-packages test-packages bench-packages clean

demo: KERNELS := native
demo: build
	build/redline demo --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf \
	  bench/demo_files/library.py --instruction "$$(cat bench/demo_files/library.instruction)"

build: packages
	cmake --preset release -DREDLINE_KERNELS=$(KERNELS)
	cmake --build --preset release -j $(JOBS)

# Installs the program, manual pages, completions, systemd units and the license. Run `make build` first, then this, as root
# if PREFIX requires it.
PREFIX ?= /usr/local
install:
	cmake --install build --prefix $(PREFIX)

# L=fast: only the tests that take seconds together, and none for aarch64. L=product, L=studies: only those.
L ?=
test: $(if $(L),test-packages,all-packages arm-test)
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS) $(if $(filter fast,$(L)),--target fast_tests)
	ctest --preset dev -j $(JOBS) $(if $(L),-L '$(L)')

# The kernels for aarch64 under QEMU, which must give the bits of x86 with NEON and without it. ARM_TESTS=. runs all of
# their tests, which takes half an hour.
ARM_TESTS ?= exact/targets|dispatch|gemm_int8.*(scalar|neon)
arm-test: arm-packages
	cmake --preset aarch64-kernels
	cmake --build --preset aarch64-kernels -j $(JOBS)
	ctest --preset aarch64-kernels -j $(JOBS) -R '$(ARM_TESTS)'

# The whole program for aarch64, with Debian's arm64 libraries: build-aarch64/redline.
arm-build: arm-packages
	deploy/aarch64_sysroot.sh $(CURDIR)/build-aarch64-sysroot
	cmake --preset aarch64
	cmake --build --preset aarch64 -j $(JOBS) --target redline

# redline-bench, which `redline bench` runs.
bench-build: packages
	cmake --preset release -DREDLINE_KERNELS=$(KERNELS)
	cmake --build --preset release -j $(JOBS) --target redline-bench

bench: bench-packages
	cmake --preset release -DREDLINE_KERNELS=$(KERNELS)
	cmake --build --preset release -j $(JOBS) --target redline redline-bench kernel_bench
	build/kernel_bench --benchmark_min_time=0.1
	build/redline bench edit --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf --edits bench/edits.jsonl
	build/redline bench load --model $(MODELS)/demo-target.gguf --draft $(MODELS)/demo-draft.gguf --edits bench/edits.jsonl --concurrency 1,4,16

# Debian packages, in build/packages/: redline, and redline-demo-models. deb-test installs and purges them in a separate
# Debian 12 and needs root: sudo make deb-test
deb: build
	@deploy/install_packages.sh deb
	cd build && cpack
	deploy/sbom.py build build/packages/redline.cdx.json

# An image for every role, made without a daemon, in build/oci/. Both targets need root: sudo make oci-test
oci: deb
	@deploy/install_packages.sh oci
	deploy/oci/build.sh build/packages build/oci

oci-test: oci
	tests/deploy/oci.sh build/oci

# A bill of materials of build/redline, as CycloneDX: Debian packages, linked or used by their headers, and npm packages in
# the studio.
sbom: build
	@deploy/install_packages.sh deb
	deploy/sbom.py build build/redline.cdx.json

deb-test: deb
	tests/deploy/deb.sh build/packages

asan tsan: test-packages
	cmake --workflow --preset $@

# chaos: accidents under load of a split server, then of a pool; soak: every feature for MINUTES. Both need npm. Options of
# chaos: KILLS, STREAMS and SEED; POOL=1 runs the pool only, MIXED=1 a pool of all kernel targets of this CPU, in Q8_0,
# HYBRID=1 one whose model keeps states.
KILLS ?= 100
SEED ?= 1
MINUTES ?= 60
chaos: build
	[ -n "$(POOL)" ] || REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server chaos.mjs $(KILLS) $(or $(STREAMS),6) $(SEED)
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server pool_chaos.mjs $(KILLS) $(or $(STREAMS),16) $(SEED) $(if $(MIXED),mixed,$(if $(HYBRID),hybrid))

# How much longer a tenant waits between two tokens while another sends hostile requests, SECONDS_EACH for each kind.
SECONDS_EACH ?= 8
hostile: build
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server hostile_gaps.mjs $(SECONDS_EACH)

soak: build
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server soak.mjs $(MINUTES)

# External clients, then coding agents that edit a file with their own tools, at pinned versions from npm (1.6 GiB for the
# agents). Needs Node.js 20. AGENTS=opencode,codex selects some agents.
clients: build
	REDLINE_CHECKS=clients REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server/clients
	REDLINE_CHECKS=agents REDLINE_AGENTS=$(AGENTS) REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server/agents

# Runs the public suites in DIR (JSON schemas, chat templates, other servers' tests; tests/conformance/README.md lists them)
# and prints tables. ARGS goes to tests/conformance/conformance.py.
conformance:
	@deploy/install_packages.sh conformance
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS) --target redline conformance_probe
	tests/conformance/run.sh build-dev "$(DIR)" $(ARGS)

# Tests the language server in VS Code, with the extension of docs/editors/vscode.md, in Chromium; 320 MB on disk from npm.
vscode-test: build
	REDLINE_CHECKS=vscode REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/server/run.sh build/tests/server/vscode

# Runs deploy/slurm/ under a separate Slurm on this machine. slurmd needs root: sudo make slurm-test
slurm-test: build
	@deploy/install_packages.sh slurm
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) node tests/deploy/slurm.mjs

# Runs deploy/systemd/ under a systemd booted in a container over this machine's files. Needs root: sudo make systemd-test
systemd-test: build
	@deploy/install_packages.sh systemd
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) tests/deploy/systemd.sh

# Runs a pool and load agents on hosts that are network namespaces of this machine. Needs root: sudo make netns-test
netns-test: build bench-build
	@deploy/install_packages.sh netns
	REDLINE_BIN=$(CURDIR)/build/redline REDLINE_MODELS=$(CURDIR)/$(MODELS) node tests/deploy/netns.mjs

# Fuzzes each parser of external bytes under sanitizers, guided by coverage, for FUZZ_SECONDS. Inputs that reached something
# new stay in build-asan/corpus/, where the next run begins.
FUZZ_SECONDS ?= 60
fuzz: test-packages
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target fuzz
	REDLINE_FUZZ_SECONDS=$(FUZZ_SECONDS) ctest --preset asan -R '^fuzz\.' -j $(JOBS) -V --timeout 86400

# docs makes the documents into a site that works from files, build/site/index.html; needs Node.js and npm. docs-reference
# writes docs/reference/ again from the output of build/redline.
docs:
	docs/site/run.sh build/site-tools build/site

docs-reference: build
	node docs/site/reference.mjs build/redline $(MODELS)/demo-target.gguf .

format:
	git ls-files '*.hpp' '*.cpp' | xargs clang-format -i

lint: test-packages
	cmake --preset dev -B build-lint -DREDLINE_UNITY=OFF
	git ls-files '*.cpp' | grep -v '^kernels/targets/' | xargs clang-tidy -p build-lint --quiet

packages:
	@deploy/install_packages.sh build

test-packages:
	@deploy/install_packages.sh test

# In one call, because each reads the lists of packages again.
all-packages:
	@deploy/install_packages.sh test arm

arm-packages:
	@deploy/install_packages.sh arm

bench-packages:
	@deploy/install_packages.sh bench

clean:
	rm -rf build build-dev build-lint build-aarch64-kernels build-aarch64 build-aarch64-sysroot build-asan build-tsan
