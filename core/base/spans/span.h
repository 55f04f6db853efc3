#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// What a span of a profile is.
enum class SpanKind : uint8_t {
  kOperator,    ///< a call of an operator
  kNode,        ///< a node of autograd's graph, as backward runs it
  kRange,       ///< a region that the user named
  kStep,        ///< a training step
  kCollective,  ///< a collective operation, from its launch to its end
  kWait,        ///< a thread waits: for a device, or for other ranks
  kCopy,        ///< a copy that no one asked for, or one between devices
  kData,        ///< a batch is waited for, or made
  kCheckpoint,  ///< state is copied or written
  kLaunch,      ///< work is queued on a device; a kernel of the same sequence number runs it
  kKernel,      ///< a device runs what was queued
  kMemory,      ///< a moment: an allocation, or a free with its bytes negative
};
inline constexpr int kSpanKinds = 12;
/// Short text for tables and files: "operator", "backward node", ...
const char* name(SpanKind kind) noexcept;

/// One span as its thread recorded it. Texts lie in the thread's buffer
/// (core/base/spans/span_recorder.h).
struct SpanRecord {
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint64_t begin = 0;       ///< ticks
  uint64_t end = 0;         ///< ticks; 0 while the span is open
  uint64_t sequence = 0;    ///< ties spans together: forward to backward, launch to kernel; 0: none
  int64_t flops = 0;        ///< additions and multiplications
  int64_t bytes = 0;        ///< read and written, or sent
  uint32_t parent = kNone;  ///< the span of the same thread that it is inside
  uint32_t text = 0;        ///< place of its texts: name, module, details
  uint16_t name_bytes = 0;
  uint16_t module_bytes = 0;
  uint16_t detail_bytes = 0;
  SpanKind kind = SpanKind::kRange;
  uint8_t phase = 0;  ///< Phase of the thread
  uint8_t dtype = 0;  ///< of the result, of an operator
};

class SpanBuffer;

namespace detail {
class SpanArena;
/// Where threads record, or null: nothing is recorded.
inline constinit std::atomic<SpanArena*> active_spans{nullptr};
}  // namespace detail

/// Name of the spans, of kind kWait, in which a thread waits for other ranks.
inline constexpr std::string_view kWaitForRanks = "wait for ranks";

/// Whether spans are being recorded in this process. Costs one load.
inline bool is_recording_spans() noexcept {
  return detail::active_spans.load(std::memory_order_relaxed) != nullptr;
}

/// Records from its constructor to its destructor what the thread does, as a span of a profile,
/// while a recorder runs (core/base/spans/span_recorder.h); else it does nothing. Takes no lock and
/// calls no heap. Spans nest like scopes and must end on the thread that began them.
class Span {
 public:
  /// `name` and `details` are copied; beyond 255 and 65,535 bytes they are cut.
  explicit Span(SpanKind kind, std::string_view name, uint64_t sequence = 0, int64_t bytes = 0,
                std::string_view details = {}) noexcept {
    if (is_recording_spans()) [[unlikely]]
      begin(kind, name, sequence, bytes, details);
  }
  ~Span() {
    if (buffer_ != nullptr) [[unlikely]]
      end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// Whether it is recorded.
  explicit operator bool() const noexcept { return buffer_ != nullptr; }

 private:
  void begin(SpanKind kind, std::string_view name, uint64_t sequence, int64_t bytes,
             std::string_view details) noexcept;
  void end() noexcept;

  SpanBuffer* buffer_ = nullptr;
  uint64_t recording_ = 0;
};

/// Records a moment of a profile: a span that ends as it begins.
inline void record_moment(SpanKind kind, std::string_view name, uint64_t sequence = 0,
                          int64_t bytes = 0, std::string_view details = {}) noexcept {
  const Span moment(kind, name, sequence, bytes, details);
}

/// Returns a number for `Span::sequence` that ties a launch to the kernel that runs it.
uint64_t next_launch() noexcept;

/// A region of a program that profiles show under `name`:
///     const Range range("augment");
/// Ranges nest. One costs less than a nanosecond where nothing is recorded.
class Range {
 public:
  explicit Range(std::string_view name) noexcept : span_(SpanKind::kRange, name) {}

 private:
  Span span_;
};

}  // namespace lockstep
