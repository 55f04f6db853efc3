#pragma once

namespace lockstep {

/// Whether the processor multiplies bf16 itself, by AVX512_BF16 or AMX. A row of a product of bf16
/// then has other bits beside another number of rows (docs/numerics.md).
inline bool has_native_bf16() { return __builtin_cpu_supports("avx512bf16") != 0; }

}  // namespace lockstep
