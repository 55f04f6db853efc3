#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/base/function_ref.h"
#include "core/base/mutex.h"
#include "core/tensor/stream.h"

namespace lockstep {

/// Told of each replay of a captured graph (core/cuda/graph.h) by the thread that replays it.
class ReplayListener {
 public:
  virtual ~ReplayListener() = default;
  /// The graph is about to be queued on `stream`. An error keeps it from that.
  virtual void before_replay(const Stream& stream) = 0;
  /// The graph has been queued.
  virtual void after_replay(const Stream& stream) = 0;
};

/// The listeners of one graph: at most one of each owner of captured work. Thread-safe, but for
/// replays.
class ReplayListeners {
 public:
  /// Returns the owner's listener, which the first call makes.
  ReplayListener& of(const void* owner, FunctionRef<std::unique_ptr<ReplayListener>()> make) {
    const MutexLock guard(lock_);
    for (const auto& [known, listener] : listeners_) {
      if (known == owner) return *listener;
    }
    return *listeners_.emplace_back(owner, make()).second;
  }
  void clear() {
    const MutexLock guard(lock_);
    listeners_.clear();
  }
  void before_replay(const Stream& stream) {
    for (ReplayListener* const each : all()) each->before_replay(stream);
  }
  void after_replay(const Stream& stream) {
    for (ReplayListener* const each : all()) each->after_replay(stream);
  }

 private:
  /// They take locks of their own, so they are called without this one.
  std::vector<ReplayListener*> all() {
    const MutexLock guard(lock_);
    std::vector<ReplayListener*> found;
    for (const auto& [owner, listener] : listeners_) found.push_back(listener.get());
    return found;
  }

  Mutex lock_;
  std::vector<std::pair<const void*, std::unique_ptr<ReplayListener>>> listeners_
      LS_GUARDED_BY(lock_);
};

}  // namespace lockstep
