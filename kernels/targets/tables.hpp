#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

// One table per file in this folder, compiled only for its architecture (CMakeLists.txt). Calling a kernel of a table
// needs a CPU with the target; getting the table does not.
const kernel_table& scalar_table();
const kernel_table& neon_table();
const kernel_table& avx2_table();
const kernel_table& avx512_table();
/// Like avx512_table, with the same bits; integers are multiplied by AVX-512 VNNI.
const kernel_table& avx512vnni_table();
/// avx512vnni_table if the CPU supports it, else avx512_table.
const kernel_table& best_avx512_table();
/// Like avx512_table, but f16 keys are rotated in half precision by complex multiplications (VFMULCPH): the bits differ
/// from the other tables' rotate_keys, with an error of up to two units in the last place instead of half a unit.
const kernel_table& avx512fp16_table();
/// Products on AMX, the rest as in avx512_table.
const kernel_table& amx_table();
/// The same bits as amx_table, computed with AVX-512: for tests of the tile kernels on other machines.
const kernel_table& amx_emulated_table();

// Tables with integer products, all with the same bits.
const kernel_table& scalar_int8_table();
const kernel_table& neon_int8_table();
const kernel_table& neon_dotprod_int8_table();  // SDOT; the rest as in neon_table
const kernel_table& neon_i8mm_int8_table();     // USDOT and USMMLA; the rest as in neon_table
const kernel_table& avx2_int8_table();
const kernel_table& avxvnni_int8_table();  // the rest as in avx2_table
const kernel_table& avx512_int8_table();
const kernel_table& avx512vnni_int8_table();
const kernel_table& amx_int8_table();
const kernel_table& amx_emulated_int8_table();

/// Whether the build has the kernels of AMX, real and emulated; else their tables are empty.
bool amx_is_built();
/// Whether a product of small integers on AMX is exact. Needs the CPU's AMX and the system's permission.
bool amx_multiplies();

}  // namespace redline::kernels
