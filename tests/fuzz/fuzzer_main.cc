// Entry points for libFuzzer, compiled once per target with LOCKSTEP_FUZZ_TARGET naming its
// function. An exception that leaves the target ends the process; libFuzzer reports it with the
// input.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/growth.h"
#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::LOCKSTEP_FUZZ_TARGET({data, size});
  return 0;
}

/// One mutation in 64 makes an input deep or long; the others are libFuzzer's.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  constexpr unsigned kOneIn = 64;
  if (seed % kOneIn != 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text = lockstep::fuzz::grown({data, size}, seed / kOneIn, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
