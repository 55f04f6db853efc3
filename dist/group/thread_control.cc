#include "dist/group/thread_control.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "dist/rendezvous/control_inbox.h"

namespace lockstep::dist {

struct ThreadJob::State {
  explicit State(int size)
      : made(static_cast<size_t>(size), false), gone(static_cast<size_t>(size), false) {
    for (int i = 0; i < size; ++i) inboxes.push_back(std::make_unique<ControlInbox>());
  }

  class Control;

  ControlInbox& inbox(int rank) { return *inboxes[static_cast<size_t>(rank)]; }
  /// Delivers a failure to all ranks under one lock, so that all get the same first one.
  void fail(int rank, const std::string& text) {
    const MutexLock lock(mutex);
    for (size_t i = 0; i < inboxes.size(); ++i) {
      if (!gone[i]) inboxes[i]->fail({rank, text});
    }
  }

  std::vector<std::unique_ptr<ControlInbox>> inboxes;  ///< by rank
  Mutex mutex;
  std::vector<bool> made LS_GUARDED_BY(mutex);
  std::vector<bool> gone LS_GUARDED_BY(mutex);  ///< left or destroyed
};

class ThreadJob::State::Control final : public JobControl {
 public:
  Control(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}
  ~Control() override {
    fail(fmt::format("rank {} ended without leaving the job.", rank_));
    leave();
    state_->inbox(rank_).stop_listening();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(state_->inboxes.size()); }

  void fail(const std::string& text) noexcept override {
    try {
      if (!is_gone(rank_)) state_->fail(rank_, text);
    } catch (const std::exception&) {
      // Out of memory for the text.
    }
  }
  std::optional<Failure> failure() const override { return state_->inbox(rank_).failure(); }
  void leave() noexcept override {
    const MutexLock lock(state_->mutex);
    state_->gone[static_cast<size_t>(rank_)] = true;
  }

  void post(int to, std::string message) noexcept override {
    try {
      if (to < 0 || to >= size() || is_gone(to) || is_gone(rank_)) return;
      state_->inbox(to).deliver(rank_, std::move(message));
    } catch (const std::exception&) {
      // Out of memory: drop the message.
    }
  }
  void listen(Listener listener) override { state_->inbox(rank_).listen(std::move(listener)); }

 private:
  bool is_gone(int rank) const {
    const MutexLock lock(state_->mutex);
    return state_->gone[static_cast<size_t>(rank)];
  }

  std::shared_ptr<State> state_;
  int rank_;
};

ThreadJob::ThreadJob(int size) {
  LS_CHECK(size >= 1, DistError, "[dist] a job has at least 1 rank, not {}.", size);
  state_ = std::make_shared<State>(size);
}

int ThreadJob::size() const { return static_cast<int>(state_->inboxes.size()); }

std::unique_ptr<JobControl> ThreadJob::control(int rank) {
  LS_CHECK(rank >= 0 && rank < size(), DistError, "[dist] there is no rank {} in a job of {}.",
           rank, size());
  {
    const MutexLock lock(state_->mutex);
    LS_CHECK(!state_->made[static_cast<size_t>(rank)], DistError,
             "[dist] rank {} has its control already.", rank);
    state_->made[static_cast<size_t>(rank)] = true;
  }
  return std::make_unique<State::Control>(state_, rank);
}

}  // namespace lockstep::dist
