#pragma once

#include "autograd/graph_run.h"

namespace lockstep {

class GraphRun::Lock {
 public:
  explicit Lock(GraphRun& run) : lock_(run.mutex_, std::defer_lock), wanted_(run.has_workers_) {
    lock();
  }
  void lock() {
    if (wanted_) [[unlikely]] {
      lock_.lock();
    }
  }
  void unlock() {
    if (wanted_) [[unlikely]] {
      lock_.unlock();
    }
  }

 private:
  std::unique_lock<std::mutex> lock_;
  bool wanted_;
};

}  // namespace lockstep
