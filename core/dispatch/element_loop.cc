#include "core/dispatch/element_loop.h"

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
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot].buffer != -1 && last_read[slot] == i &&
          steps[i].result != static_cast<int32_t>(slot)) {
        unused.push_back(slots[slot].buffer);
      }
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
