#include "core/dispatch/element_loop.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.h"

namespace lockstep {

namespace {

std::array<LoopBackend, kDeviceTypes>& backends() {
  static std::array<LoopBackend, kDeviceTypes> backends{};
  return backends;
}

}  // namespace

LoopCapture::LoopCapture() {
  LS_ASSERT(detail::loop_capture == nullptr);
  detail::loop_capture = this;
}

LoopCapture::~LoopCapture() { detail::loop_capture = nullptr; }

void LoopCapture::take(Taken taken) {
  ++calls_;
  taken_ = std::move(taken);
}

std::optional<LoopCapture::Taken> LoopCapture::taken() const {
  return calls_ == 1 && taken_->loop ? taken_ : std::nullopt;
}

void LoopProgram::assign_buffers() {
  std::vector<size_t> last_read(slots.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const int32_t slot : steps[i].operands) last_read[static_cast<size_t>(slot)] = i;
  }
  std::vector<int32_t> unused;
  buffers = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    // The result's comes first: operands are still read while it is written.
    Slot& result = slots[static_cast<size_t>(steps[i].result)];
    if (unused.empty()) {
      result.buffer = buffers++;
    } else {
      result.buffer = unused.back();
      unused.pop_back();
    }
    std::vector<int32_t> read = steps[i].operands;
    std::ranges::sort(read);
    const auto repeated = std::ranges::unique(read);
    read.erase(repeated.begin(), repeated.end());
    for (const int32_t slot : read) {
      const int32_t buffer = slots[static_cast<size_t>(slot)].buffer;
      if (buffer != -1 && last_read[static_cast<size_t>(slot)] == i) unused.push_back(buffer);
    }
  }
}

void register_loop_backend(DeviceType type, const LoopBackend& backend) {
  backends()[static_cast<size_t>(type)] = backend;
}

const LoopBackend* loop_backend(DeviceType type) {
  const LoopBackend& backend = backends()[static_cast<size_t>(type)];
  return backend.run != nullptr ? &backend : nullptr;
}

}  // namespace lockstep
