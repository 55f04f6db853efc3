#include "train/report/run_memory.h"

#include <fmt/format.h>

#include "configs/memory.pb.h"
#include "configs/memory_options.h"
#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/memory/attribution.h"
#include "core/memory/snapshot.h"

namespace lockstep::train {

RunMemory::RunMemory(const config::MemoryConfig& config, Device device,
                     const RunDirectory& directory)
    : allocator_(dynamic_cast<CachingAllocator*>(&allocator(device))),
      directory_(directory),
      options_before_(allocator_ != nullptr ? allocator_->options() : AllocatorOptions{}),
      snapshot_step_(config.snapshot_step()),
      planned_(config.planned()) {
  const AllocatorOptions options = config::allocator_options(config, options_before_);
  if (allocator_ == nullptr) {
    LS_CHECK(options == options_before_ && !planned_ && snapshot_step_ == 0, ConfigError,
             "[memory] these options are of the caching allocator, but the backend of {} brings an "
             "allocator of its own. Leave them out.",
             to_string(device));
    return;
  }
  if (!(options == options_before_)) allocator_->set_options(options);
  if (planned_) allocator_->set_planned(true);
  if (snapshot_step_ > 0) {
    allocator_->record_memory_history(static_cast<size_t>(config.history_entries()),
                                      config.history_stacks());
    recording_ = true;
  }
}

RunMemory::~RunMemory() {
  if (allocator_ == nullptr) return;
  stop_recording();
  if (planned_) allocator_->set_planned(false);
  if (!(allocator_->options() == options_before_)) allocator_->set_options(options_before_);
}

void RunMemory::stop_recording() {
  if (recording_) allocator_->record_memory_history(0);
  recording_ = false;
}

void RunMemory::begin_step(int64_t step) {
  if (allocator_ != nullptr) allocator_->mark_step(current_stream(allocator_->device()));
  if (recording_) allocator_->note(fmt::format("step {}", step));
}

void RunMemory::end_step(int64_t step) {
  if (!recording_ || step < snapshot_step_) return;
  if (step == snapshot_step_) {
    const MemorySnapshot snapshot = allocator_->snapshot();
    const std::vector<BlockInfo> peak = allocator_->blocks_at_peak();
    write_text(
        directory_.memory_text(),
        fmt::format("{}\nHeld at the peak, by operator:\n{}\nby module:\n{}",
                    memory_summary(allocator_->memory_stats(), allocator_->device()),
                    memory_table(memory_by_operator(peak)), memory_table(memory_by_module(peak))));
    write_text(directory_.memory(), to_json(snapshot));
    write_text(directory_.memory_pickle(), to_pickle(snapshot));
  }
  stop_recording();
}

}  // namespace lockstep::train
