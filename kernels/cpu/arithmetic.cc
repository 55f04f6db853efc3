#include "kernels/cpu/arithmetic.h"

#include <string>

#include "core/device/arithmetic_facts.h"

namespace lockstep::cpu {

namespace {

[[maybe_unused]] const bool kTold = register_arithmetic_fact("attention of bfloat16", [] {
  return std::string(has_bf16_products() ? "bfloat16 products" : "float32 products");
});

}  // namespace

bool has_bf16_products() {
#if LS_HAVE_WIDE_VECTORS
  static const bool kFound =
      has_wide_vectors() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
  return kFound;
#else
  return false;
#endif
}

}  // namespace lockstep::cpu
