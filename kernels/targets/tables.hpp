#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

// One per file in this folder. Calling a kernel of a table needs a CPU that has the target; asking for it does not.
const kernel_table& scalar_table();
const kernel_table& avx2_table();
const kernel_table& avx512_table();

}  // namespace redline::kernels
