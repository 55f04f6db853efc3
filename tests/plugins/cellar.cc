// A plug-in that is a backend as well: the device "cellar", whose memory is the cpu's and whose
// operators all run on the cpu. Unlike other plug-ins it uses Lockstep's own headers and library.

#include <atomic>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/dispatch/cpu_fallback.h"
#include "core/plugin/plugin_wrapper.h"
#include "core/tensor/allocator.h"
#include "core/tensor/device.h"

namespace {

using namespace lockstep;

constexpr size_t kAlignment = 512;

class CellarAllocator final : public Allocator {
 public:
  Block allocate(size_t bytes, const Stream&) override {
    if (bytes == 0) return {nullptr, 0, nullptr, this};
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) throw OutOfMemoryError("[cellar] no memory left.");
    allocated_ += static_cast<int64_t>(rounded);
    return {memory, rounded, nullptr, this};
  }
  void free(const Block& block) noexcept override {
    std::free(block.data);
    allocated_ -= static_cast<int64_t>(block.bytes);
  }
  void record_stream(const Block&, const Stream&) override {}
  MemoryStats stats() const override { return {allocated_, allocated_, allocated_, 0, 0}; }
  void reset_peak() override {}

 private:
  std::atomic<int64_t> allocated_{0};
};

const Registration kFallback = register_cpu_fallback(Key::kPrivate2);

[[maybe_unused]] const bool kReady = [] {
  set_allocator(DeviceType::kPrivate2, new CellarAllocator());  // leaked: tensors may be left
  name_device_type(DeviceType::kPrivate2, "cellar");
  return true;
}();

}  // namespace

LS_PLUGIN(library) {
  library.define("cellar::same(Tensor self) -> Tensor", "self, by a body.")
      .body([](lockstep::plugin::Tensor self) { return self; });
}
