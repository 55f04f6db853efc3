#pragma once

#include <memory>

#include "dist/rendezvous/job_control.h"

namespace lockstep::dist {

/// A job whose ranks are threads of this process; provides their JobControl. Thread-safe.
class ThreadJob {
 public:
  /// Throws DistError unless `size` is at least 1.
  explicit ThreadJob(int size);

  int size() const;
  /// Returns the control of one rank, which may outlive this object. Destroying it ends the rank;
  /// without a call of `leave` before, that makes the job fail. Texts posted before it is made are
  /// kept for it. Throws DistError for a rank out of range or whose control was made before.
  std::unique_ptr<JobControl> control(int rank);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::dist
