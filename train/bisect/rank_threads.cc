#include "train/bisect/rank_threads.h"

#include <algorithm>
#include <utility>

#include "core/base/parallel.h"
#include "core/tensor/stream.h"
#include "dist/group/thread_group.h"

namespace lockstep::train {

RankThreads::RankThreads(int size, Device device, const std::vector<int>& hosts) : size_(size) {
  if (size == 1) return;
  std::vector<std::unique_ptr<dist::ProcessGroup>> groups = dist::thread_group(size, {}, hosts);
  for (int rank = 0; rank < size; ++rank) {
    threads_.emplace_back(
        [this, rank, device, group = std::move(groups[static_cast<size_t>(rank)])]() mutable {
          serve(rank, device, std::move(group));
        });
  }
}

RankThreads::~RankThreads() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  for (std::thread& each : threads_) each.join();
}

void RankThreads::run(const Body& body) {
  if (size_ == 1) return body(0, nullptr);
  UniqueLock lock(mutex_);
  body_ = &body;
  ++given_;
  running_ = size_;
  failure_ = nullptr;
  changed_.notify_all();
  while (running_ > 0) changed_.wait(lock);
  if (failure_) std::rethrow_exception(failure_);
}

void RankThreads::serve(int rank, Device device, std::unique_ptr<dist::ProcessGroup> group) {
  set_num_threads(std::max(1, num_threads() / size_));
  const StreamGuard own_stream(get_stream_from_pool(device));
  for (int64_t done = 0; const Body* const body = next(done); ++done) {
    try {
      (*body)(rank, group.get());
    } catch (const std::exception& error) {
      note_failure(std::current_exception());  // before the others fail for want of this rank
      group->abort(error.what());
    }
    finished();
  }
}

const RankThreads::Body* RankThreads::next(int64_t done) {
  UniqueLock lock(mutex_);
  while (!ends_ && given_ == done) changed_.wait(lock);
  return given_ > done ? body_ : nullptr;
}

void RankThreads::note_failure(std::exception_ptr error) {
  const MutexLock lock(mutex_);
  if (!failure_) failure_ = std::move(error);
}

void RankThreads::finished() {
  const MutexLock lock(mutex_);
  if (--running_ == 0) changed_.notify_all();
}

}  // namespace lockstep::train
