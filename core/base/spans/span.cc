#include "core/base/spans/span.h"

#include "core/base/spans/span_recorder.h"

namespace lockstep {

const char* name(SpanKind kind) noexcept {
  constexpr const char* kNames[kSpanKinds] = {"operator",   "backward node", "range",  "step",
                                              "collective", "wait",          "copy",   "data",
                                              "checkpoint", "launch",        "kernel", "memory"};
  return kNames[static_cast<int>(kind)];
}

uint64_t next_launch() noexcept {
  static constinit std::atomic<uint64_t> launches{0};
  return 1 + launches.fetch_add(1, std::memory_order_relaxed);
}

void Span::begin(SpanKind kind, std::string_view name, uint64_t sequence, int64_t bytes,
                 std::string_view details) noexcept {
  buffer_ = SpanBuffer::of_this_thread();
  if (buffer_ == nullptr) return;
  recording_ = buffer_->recording();
  if (SpanRecord* const record = buffer_->begin(kind, name, details)) {
    record->sequence = sequence;
    record->bytes = bytes;
  }
}

void Span::end() noexcept {
  // A newer recording has forgotten this span.
  if (buffer_->recording() == recording_) buffer_->end();
}

}  // namespace lockstep
