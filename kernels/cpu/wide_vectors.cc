#include "kernels/cpu/wide_vectors.h"

#include <string>

#include "core/base/environment_flag.h"
#include "core/device/arithmetic_facts.h"

namespace lockstep::cpu {

namespace {

bool detect() {
#if LS_HAVE_WIDE_VECTORS
  if (environment_choice("LOCKSTEP_CPU_CAPABILITY", {"avx2", "avx512"}) == "avx2") return false;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

[[maybe_unused]] const bool kRegistered = register_arithmetic_fact(
    "kernels", [] { return std::string(has_wide_vectors() ? "avx512" : "avx2"); });

}  // namespace

bool has_wide_vectors() {
  static const bool kFound = detect();
  return kFound;
}

}  // namespace lockstep::cpu
