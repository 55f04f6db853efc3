#include "dist/nccl/nccl_replays.h"

#include <algorithm>
#include <utility>

#include "core/device/active_capture.h"
#include "core/device/replay_listener.h"
#include "dist/group/work_state.h"

namespace lockstep::dist {

namespace {

/// The operations of one group in one graph.
class Replays final : public ReplayListener {
 public:
  explicit Replays(std::weak_ptr<const NcclReplayHooks> group) : group_(std::move(group)) {}

  void add(const std::vector<Operation>& operations, std::chrono::milliseconds timeout) {
    operations_.insert(operations_.end(), operations.begin(), operations.end());
    timeout_ = std::max(timeout_, timeout);
  }
  void before_replay(const Stream& stream) override {
    const auto group = group_.lock();
    if (group == nullptr) return;
    group->check();
    begins_ = Event();
    begins_.record(stream);
  }
  void after_replay(const Stream& stream) override {
    const auto group = group_.lock();
    if (group == nullptr) return;
    NcclQueued queued = group->note(operations_, timeout_);
    queued.what = "the replay of a graph with " + queued.what;
    queued.work = std::make_shared<WorkState>();
    queued.begins = std::move(begins_);
    queued.ends.record(stream);
    group->watch(std::move(queued));
  }

 private:
  const std::weak_ptr<const NcclReplayHooks> group_;
  std::vector<Operation> operations_;
  std::chrono::milliseconds timeout_{0};
  Event begins_;
};

}  // namespace

void watch_nccl_replays(const std::shared_ptr<const NcclReplayHooks>& group,
                        const std::vector<Operation>& operations,
                        std::chrono::milliseconds timeout) {
  ReplayListeners* const listeners = active_capture()->listeners;
  if (listeners == nullptr) return;
  ReplayListener& listener = listeners->of(group.get(), [&]() -> std::unique_ptr<ReplayListener> {
    return std::make_unique<Replays>(group);
  });
  static_cast<Replays&>(listener).add(operations, timeout);
}

}  // namespace lockstep::dist
