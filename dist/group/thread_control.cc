#include "dist/group/thread_control.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "dist/rendezvous/control_inbox.h"

namespace lockstep::dist {

struct ThreadJob::State {
  struct Rank {
    ControlInbox inbox;
    bool made = false;
    bool gone = false;  ///< left or destroyed
  };

  explicit State(int size) {
    for (int i = 0; i < size; ++i) ranks.push_back(std::make_unique<Rank>());
  }

  class Control;

  Rank& at(int rank) { return *ranks[static_cast<size_t>(rank)]; }
  /// Delivers a failure to all ranks under one lock, so that all get the same first one.
  void fail(int rank, const std::string& text) {
    const std::lock_guard lock(mutex);
    for (const auto& one : ranks) {
      if (!one->gone) one->inbox.fail({rank, text});
    }
  }

  std::vector<std::unique_ptr<Rank>> ranks;
  std::mutex mutex;
};

class ThreadJob::State::Control final : public JobControl {
 public:
  Control(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}
  ~Control() override {
    fail(fmt::format("rank {} ended without leaving the job.", rank_));
    leave();
    state_->at(rank_).inbox.stop_listening();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(state_->ranks.size()); }

  void fail(const std::string& text) noexcept override {
    try {
      if (!is_gone(rank_)) state_->fail(rank_, text);
    } catch (const std::exception&) {
      // Out of memory for the text.
    }
  }
  std::optional<Failure> failure() const override { return state_->at(rank_).inbox.failure(); }
  void leave() noexcept override {
    const std::lock_guard lock(state_->mutex);
    state_->at(rank_).gone = true;
  }

  void post(int to, std::string message) noexcept override {
    try {
      if (to < 0 || to >= size() || is_gone(to) || is_gone(rank_)) return;
      state_->at(to).inbox.deliver(rank_, std::move(message));
    } catch (const std::exception&) {
      // Out of memory: drop the message.
    }
  }
  void listen(Listener listener) override { state_->at(rank_).inbox.listen(std::move(listener)); }

 private:
  bool is_gone(int rank) const {
    const std::lock_guard lock(state_->mutex);
    return state_->at(rank).gone;
  }

  std::shared_ptr<State> state_;
  int rank_;
};

ThreadJob::ThreadJob(int size) {
  LS_CHECK(size >= 1, DistError, "[dist] a job has at least 1 rank, not {}.", size);
  state_ = std::make_shared<State>(size);
}

int ThreadJob::size() const { return static_cast<int>(state_->ranks.size()); }

std::unique_ptr<JobControl> ThreadJob::control(int rank) {
  LS_CHECK(rank >= 0 && rank < size(), DistError, "[dist] there is no rank {} in a job of {}.",
           rank, size());
  {
    const std::lock_guard lock(state_->mutex);
    LS_CHECK(!std::exchange(state_->at(rank).made, true), DistError,
             "[dist] rank {} has its control already.", rank);
  }
  return std::make_unique<State::Control>(state_, rank);
}

}  // namespace lockstep::dist
