#include "train/report/allocation_recorder.h"

#include "core/base/files/atomic_file.h"

namespace lockstep::train {

namespace {

constexpr size_t kMostEntries = 20'000'000;

}  // namespace

AllocationRecorder::AllocationRecorder(CachingAllocator& allocator) : allocator_(allocator) {
  allocator_.record_memory_history(kMostEntries, /*stacks=*/false);
}

AllocationRecorder::~AllocationRecorder() { allocator_.record_memory_history(0); }

void AllocationRecorder::drain() {
  const MemorySnapshot snapshot = allocator_.snapshot();
  // Restarting clears the history, whose entries have just been read.
  allocator_.record_memory_history(kMostEntries, /*stacks=*/false);
  builder_.add(snapshot.trace);
}

void AllocationRecorder::mark_step(int64_t step) {
  drain();
  if (!builder_.is_full()) builder_.mark("step" + std::to_string(step));
}

AllocationTrace AllocationRecorder::take() {
  drain();
  return builder_.take();
}

void AllocationRecorder::write(const std::filesystem::path& file, const std::string& name) {
  write_text(file, to_string(take(), name));
}

}  // namespace lockstep::train
