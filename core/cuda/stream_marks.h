#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "core/cuda/events.h"
#include "core/cuda/kernel.h"
#include "core/cuda/streams.h"

namespace lockstep::cuda {

/// What was queued on a stream: a kernel's number, or one of these.
enum Queued : uint32_t {
  kNothing = 0,
  kCopy = Kernel::kMost,
  kReplay,   ///< of a graph
  kLibrary,  ///< something that another library queues, as cuBLASLt does
  kImageKernel,
};
/// "kernel fill_pattern", "a copy", ...
std::string text_of(Queued what);

/// By which a watch tells whether the work of a device goes on: events at the ends of what is
/// queued on its streams, and which of them were reached. Streams of other libraries have none.
class StreamMarks {
 public:
  struct Look {
    uint64_t reached = 0;      ///< number of marks that were reached so far
    int32_t stream = -1;       ///< of the oldest mark that was not reached; -1: there is none
    Queued before = kNothing;  ///< what was queued last before that mark
    Queued last = kNothing;    ///< what was queued last on its stream
  };

  /// All must outlive it.
  StreamMarks(Context& context, Streams& streams, Events& events)
      : context_(context), streams_(streams), events_(events) {}
  ~StreamMarks();
  StreamMarks(const StreamMarks&) = delete;
  StreamMarks& operator=(const StreamMarks&) = delete;

  // Thread-safe. A count that two threads make at once on one stream may be lost.
  /// Notes what was queued on a stream.
  void note(int32_t stream, Queued what) noexcept {
    std::atomic<uint64_t>& noted = noted_on(stream);
    noted.store((noted.load(std::memory_order_relaxed) / kOnce + 1) * kOnce + what,
                std::memory_order_relaxed);
  }
  /// Notes that something was queued that is not worth a name, as a wait for an event is.
  void note(int32_t stream) noexcept {
    std::atomic<uint64_t>& noted = noted_on(stream);
    noted.store(noted.load(std::memory_order_relaxed) + kOnce, std::memory_order_relaxed);
  }

  // By one thread at a time. These call the driver, and throw DeviceError.
  /// Marks the ends of the streams on which something was queued since their last mark, if that was
  /// reached. Nothing may be captured meanwhile.
  void mark();
  /// Asks which marks were reached.
  Look look();
  /// Forgets all marks.
  void clear() noexcept;

 private:
  // Streams with one owner share slots if there are many of them.
  static constexpr size_t kSlots = 256;
  static constexpr uint64_t kOnce = uint64_t{1} << 32;

  struct Mark {
    EventHandle* event = nullptr;
    uint64_t number = 0;
    Queued before = kNothing;
  };

  std::atomic<uint64_t>& noted_on(int32_t stream) noexcept {
    constexpr auto kPooled = static_cast<size_t>(1 + 2 * kPoolStreams);
    const auto id = static_cast<size_t>(stream);
    return noted_[id < kPooled ? id : kPooled + id % (kSlots - kPooled)];
  }

  Context& context_;
  Streams& streams_;
  Events& events_;
  /// By stream: kOnce times the number of things that were queued, and what was queued last.
  std::array<std::atomic<uint64_t>, kSlots> noted_{};
  std::map<int32_t, uint64_t> marked_;  ///< what was noted at the last mark, by stream
  std::map<int32_t, Mark> marks_;       ///< those that were not reached, by stream
  uint64_t made_ = 0;
  uint64_t reached_ = 0;
};

}  // namespace lockstep::cuda
