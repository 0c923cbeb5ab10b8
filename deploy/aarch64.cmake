# Debian's cross compiler for aarch64; what it makes runs here under QEMU. REDLINE_SYSROOT: a folder with Debian's arm64
# libraries (deploy/aarch64_sysroot.sh); without one there is the C++ library only, which suffices for the kernels.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(REDLINE_EMULATED_CPU max CACHE STRING "The CPU that QEMU shows, see qemu-aarch64 -cpu help")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu ${REDLINE_EMULATED_CPU} -L /usr/aarch64-linux-gnu)
