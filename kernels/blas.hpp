#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// The scalar table with gemm from OpenBLAS, for CPUs without AVX2. A row's bits do not depend on its batch here
/// either, but differ from other targets', because OpenBLAS sums in its own order.
const kernel_table& blas_table();

}  // namespace redline::kernels
