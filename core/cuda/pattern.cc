#include "core/cuda/pattern.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/cuda/launch.h"
#include "core/cuda/pattern.fatbin.h"
#include "core/cuda/pattern_word.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 4096;  ///< enough to fill any GPU; threads take several words

const Kernel kFill(kImage, "fill_pattern");
const Kernel kCount(kImage, "count_wrong");

template <class Parameters>
void launch(Kernel kernel, const Stream& stream, const Parameters& parameters) {
  const uint64_t blocks =
      std::clamp<uint64_t>((parameters.count + kThreads - 1) / kThreads, 1, kMostBlocks);
  launch(stream, kernel, {.blocks = {static_cast<unsigned>(blocks), 1, 1}, .threads = kThreads},
         &parameters);
}

uint64_t checked_words(const char* kernel, const void* address, size_t bytes) {
  LS_CHECK(reinterpret_cast<uintptr_t>(address) % 8 == 0 && bytes % 8 == 0, DeviceError,
           "[{}] expected an address and a size that are multiples of 8, got {} and {}.", kernel,
           address, bytes);
  return bytes / 8;
}

}  // namespace

void fill_pattern(const Stream& stream, void* address, size_t bytes, uint64_t seed) {
  const uint64_t words = checked_words("fill_pattern", address, bytes);
  launch(kFill, stream, Pattern{static_cast<uint64_t*>(address), words, seed});
}

void count_wrong(const Stream& stream, const void* address, size_t bytes, uint64_t seed,
                 uint64_t* wrong) {
  const uint64_t words = checked_words("count_wrong", address, bytes);
  launch(kCount, stream,
         PatternCheck{static_cast<const uint64_t*>(address), words, seed,
                      reinterpret_cast<unsigned long long*>(wrong)});
}

}  // namespace lockstep::cuda
