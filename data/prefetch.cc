#include "data/prefetch.h"

#include <chrono>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "core/base/spans/span.h"

namespace lockstep::train {

Prefetcher::Prefetcher(const TokenSource& source, int64_t length, int64_t first, int64_t count,
                       int64_t first_step, int depth)
    : source_(source),
      length_(length),
      first_(first),
      count_(count),
      slots_(static_cast<size_t>(depth) + 1),
      wanted_(first_step),
      prepared_(first_step) {
  LS_ASSERT(length > 0 && first >= 0 && count > 0 && first_step >= 0 && depth > 0);
  for (Slot& slot : slots_) {
    slot.batch.inputs.resize(static_cast<size_t>(count * length));
    slot.batch.targets.resize(static_cast<size_t>(count * length));
  }
  worker_ = start_thread("that reads batches ahead", [this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Prefetcher::work() {
  UniqueLock lock(mutex_);
  while (true) {
    // The slot of the wanted step is being read; those behind it are free.
    changed_.wait(lock, [&]() LS_REQUIRES(mutex_) {
      return stop_ || prepared_ < wanted_ + std::ssize(slots_);
    });
    if (stop_) return;
    const int64_t step = prepared_;
    Slot& slot = slot_of(step);
    slot.step = -1;
    lock.unlock();
    const bool complete = fill(slot, step);
    lock.lock();
    // Meanwhile the consumer may have requested a step out of order.
    if (!complete || prepared_ != step) continue;
    slot.step = step;
    ++prepared_;
    changed_.notify_all();
  }
}

bool Prefetcher::fill(Slot& slot, int64_t step) {
  const Span span(SpanKind::kData, "read a batch");
  slot.failure = nullptr;
  try {
    for (int64_t i = 0; i < count_; ++i) {
      {
        const MutexLock lock(mutex_);
        if (stop_ || prepared_ != step) return false;
      }
      const auto row = [&](std::vector<int64_t>& tokens) {
        return std::span(tokens).subspan(static_cast<size_t>(i * length_),
                                         static_cast<size_t>(length_));
      };
      source_.sequence(step, first_ + i, row(slot.batch.inputs), row(slot.batch.targets));
    }
  } catch (...) {
    slot.failure = std::current_exception();
  }
  return true;
}

const StepBatch& Prefetcher::step(int64_t step) {
  using Clock = std::chrono::steady_clock;
  LS_ASSERT(step >= 0);
  UniqueLock lock(mutex_);
  if (step < wanted_ || step > prepared_) {
    for (Slot& other : slots_) other.step = -1;
    prepared_ = step;
  }
  wanted_ = step;
  changed_.notify_all();
  Slot& slot = slot_of(step);
  wait_ms_ = 0;
  if (slot.step != step) {
    const Span span(SpanKind::kData, "wait for a batch");
    const auto start = Clock::now();
    changed_.wait(lock, [&] { return slot.step == step; });
    wait_ms_ = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }
  if (slot.failure) std::rethrow_exception(slot.failure);
  return slot.batch;
}

}  // namespace lockstep::train
