// Entry point for libFuzzer, compiled once per target with LOCKSTEP_FUZZ_TARGET naming its
// function. An exception that leaves the target ends the process; libFuzzer reports it with the
// input.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::LOCKSTEP_FUZZ_TARGET({data, size});
  return 0;
}
