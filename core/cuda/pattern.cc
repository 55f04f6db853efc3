#include "core/cuda/pattern.h"

#include <algorithm>

#include "core/check.h"
#include "core/cuda/pattern.fatbin.h"
#include "core/cuda/runtime.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 4096;  ///< enough to fill any GPU; threads take several words

void launch(const char* kernel, const Stream& stream, uint64_t words, void** arguments) {
  auto* const runtime = dynamic_cast<Runtime*>(&require_runtime(stream.device));
  LS_CHECK(runtime != nullptr, DeviceError, "[{}] expected a stream of a cuda device, got {}.",
           kernel, to_string(stream));
  const uint64_t blocks = std::clamp<uint64_t>((words + kThreads - 1) / kThreads, 1, kMostBlocks);
  runtime->launch_kernel(stream, runtime->function(stream.device.index, kImage, kernel),
                         static_cast<unsigned>(blocks), kThreads, arguments);
}

uint64_t words_of(const char* kernel, const void* address, size_t bytes) {
  LS_CHECK(reinterpret_cast<uintptr_t>(address) % 8 == 0 && bytes % 8 == 0, DeviceError,
           "[{}] expected an address and a size that are multiples of 8, got {} and {}.", kernel,
           address, bytes);
  return bytes / 8;
}

}  // namespace

void fill_pattern(const Stream& stream, void* address, size_t bytes, uint64_t seed) {
  uint64_t words = words_of("fill_pattern", address, bytes);
  void* arguments[] = {&address, &words, &seed};
  launch("fill_pattern", stream, words, arguments);
}

void count_wrong(const Stream& stream, const void* address, size_t bytes, uint64_t seed,
                 uint64_t* wrong) {
  uint64_t words = words_of("count_wrong", address, bytes);
  void* arguments[] = {&address, &words, &seed, &wrong};
  launch("count_wrong", stream, words, arguments);
}

}  // namespace lockstep::cuda
