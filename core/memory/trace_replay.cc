#include "core/memory/trace_replay.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace lockstep {

namespace {

using Line = AllocationTrace::Line;
using Kind = Line::Kind;

/// The blocks of a trace during its replay.
class Replayed {
 public:
  Replayed(const AllocationTrace& trace, Allocator& allocator, const Stream& stream)
      : allocator_(allocator), stream_(stream), blocks_(static_cast<size_t>(trace.blocks)) {}
  ~Replayed() {
    for (const Block& block : blocks_) {
      if (block.data != nullptr) allocator_.free(block);
    }
  }
  Replayed(const Replayed&) = delete;
  Replayed& operator=(const Replayed&) = delete;

  void run(const Line& line) {
    Block& block = blocks_[static_cast<size_t>(line.number)];
    if (line.kind == Kind::kAllocate) {
      block = allocator_.allocate(line.bytes, stream_);
    } else {
      allocator_.free(block);
      block.data = nullptr;
    }
  }

 private:
  Allocator& allocator_;
  Stream stream_;
  std::vector<Block> blocks_;
};

}  // namespace

ReplayResult replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                    const std::function<void()>& on_mark) {
  ReplayResult result;
  result.peak_live_bytes = trace.peak_live_bytes();
  const int64_t before = allocator.stats().system_calls;
  int64_t first_step_ended = before;
  Replayed blocks(trace, allocator, stream);
  for (const Line& line : trace.lines) {
    if (line.kind == Kind::kMark) {
      if (on_mark) on_mark();
      if (line.number == 1) first_step_ended = allocator.stats().system_calls;
    } else {
      blocks.run(line);
    }
    result.peak_reserved_bytes = std::max(result.peak_reserved_bytes, allocator.stats().reserved);
  }
  const int64_t now = allocator.stats().system_calls;
  result.driver_calls = now - before;
  result.driver_calls_after_first_step = now - first_step_ended;
  return result;
}

double time_replay(const AllocationTrace& trace, Allocator& allocator, const Stream& stream,
                   const std::function<void()>& on_mark) {
  Replayed blocks(trace, allocator, stream);
  const auto start = std::chrono::steady_clock::now();
  for (const Line& line : trace.lines) {
    if (line.kind != Kind::kMark) {
      blocks.run(line);
    } else if (on_mark) {
      on_mark();
    }
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / std::max<double>(trace.blocks, 1);
}

}  // namespace lockstep
