#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// The scalar table with OpenBLAS behind `gemm`: for CPUs without AVX2. Its rows are invariant like everyone's, but its
/// bits differ from the other targets': OpenBLAS sums in its own order.
const kernel_table& blas_table();

}  // namespace redline::kernels
