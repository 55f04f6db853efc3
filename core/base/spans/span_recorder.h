#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/spans/span.h"
#include "core/base/spans/ticks.h"

namespace lockstep {

/// Sizes of the buffers that spans are recorded in. They are reserved when a recorder is made, and
/// take memory as they fill.
struct SpanLimits {
  uint32_t threads = 64;      ///< that record
  uint32_t spans = 1u << 17;  ///< of each thread
  uint32_t text = 32u << 20;  ///< bytes of names, modules and details of each thread

  friend bool operator==(const SpanLimits&, const SpanLimits&) = default;
};

/// Functions that are told of spans while they are recorded, so that another tool shows them. Both
/// are called by the span's thread, and pair like brackets on each.
struct SpanMirror {
  void (*begin)(const char* name) noexcept = nullptr;
  void (*end)() noexcept = nullptr;
};
/// Has the spans of later recordings shown in `mirror`, which is never destroyed, except moments of
/// memory; null: nowhere. To be called while nothing is recorded.
void set_span_mirror(const SpanMirror* mirror) noexcept;

/// Where one thread records. Only its thread calls `begin` and `end`, which pair like brackets.
class SpanBuffer {
 public:
  /// The calling thread's buffer in the running recording, emptied if it is of an older one. Null
  /// where nothing is recorded or no buffer is left.
  static SpanBuffer* of_this_thread() noexcept;
  /// The buffer that this thread used last, or null.
  static SpanBuffer* last_of_this_thread() noexcept;

  /// Opens a span and returns it, to be filled in further until its end; null where the buffer is
  /// full, which is counted. Takes module and phase from the thread.
  SpanRecord* begin(SpanKind kind, std::string_view name, std::string_view details) noexcept;
  /// Closes the span opened last.
  void end() noexcept;
  /// The span opened last, or null where it was lost.
  SpanRecord* innermost() noexcept {
    return lost_depth_ > 0 || innermost_ == SpanRecord::kNone ? nullptr : &records_[innermost_];
  }
  /// Number of the recording that the buffer's spans are of.
  uint64_t recording() const noexcept { return recording_.load(std::memory_order_relaxed); }

 private:
  friend class detail::SpanArena;
  friend class SpanRecorder;

  void reserve(const SpanLimits& limits);
  void restart(uint64_t recording) noexcept;

  // Of the arena: mapped, and not touched before spans come. Never unmapped.
  SpanRecord* records_ = nullptr;
  char* text_ = nullptr;
  uint32_t most_records_ = 0;
  uint32_t most_text_ = 0;
  uint32_t text_used_ = 0;
  uint32_t innermost_ = SpanRecord::kNone;
  uint32_t lost_depth_ = 0;  ///< open spans that did not fit
  uint64_t thread_ = 0;      ///< the system's number of the thread
  char thread_name_[16] = {};
  std::atomic<uint64_t> recording_{0};
  std::atomic<uint32_t> used_{0};  ///< records that are complete but for their end
  std::atomic<uint64_t> lost_{0};
  std::atomic<bool> taken_{false};  ///< by a thread
};

/// The spans of one thread.
struct ThreadSpans {
  uint64_t thread = 0;
  std::string thread_name;
  std::vector<SpanRecord> spans;  ///< in the order of their beginnings; an open one has end 0
  std::string text;
  uint64_t lost = 0;  ///< spans that did not fit the buffer

  std::string_view name(const SpanRecord& span) const { return part(span.text, span.name_bytes); }
  std::string_view module(const SpanRecord& span) const {
    return part(span.text + span.name_bytes, span.module_bytes);
  }
  std::string_view details(const SpanRecord& span) const {
    return part(span.text + span.name_bytes + span.module_bytes, span.detail_bytes);
  }

 private:
  std::string_view part(size_t at, size_t bytes) const {
    return std::string_view(text).substr(at, bytes);
  }
};

/// What was recorded between two moments.
struct SpanRecording {
  TickClock clock;
  TickClock::Moment begin, end;
  std::vector<ThreadSpans> threads;
  uint64_t threads_without_buffer = 0;  ///< attempts of threads that found none
};

/// Records the spans of all threads of this process in memory reserved before. There is one at a
/// time. In a child made by fork() nothing is recorded. Not thread-safe itself; the spans are.
class SpanRecorder {
 public:
  /// Reserves the buffers; records nothing yet. Throws Error while another recorder exists, and
  /// OutOfMemoryError where there is no address space for them.
  explicit SpanRecorder(const SpanLimits& limits = {});
  ~SpanRecorder();
  SpanRecorder(const SpanRecorder&) = delete;
  SpanRecorder& operator=(const SpanRecorder&) = delete;

  /// Begins a recording, or begins it again: what was recorded before is forgotten.
  void start() noexcept;
  bool is_running() const noexcept { return running_; }
  /// Ends the recording and returns it. Spans that are still open have no end.
  SpanRecording stop();

 private:
  detail::SpanArena* arena_;
  TickClock::Moment begin_;
  bool running_ = false;
};

}  // namespace lockstep
