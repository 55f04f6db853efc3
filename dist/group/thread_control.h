#pragma once

#include <memory>

#include "dist/rendezvous/job_control.h"

namespace lockstep::dist {

/// A job whose ranks are threads of this process: their JobControl. Thread-safe.
class ThreadJob {
 public:
  /// Throws DistError unless `size` is at least 1.
  explicit ThreadJob(int size);

  int size() const;
  /// That of one rank, which may outlive this object. The rank has ended when it is destroyed:
  /// without `leave`, that is the job's failure. Texts posted before it is made wait for it. Throws
  /// DistError for a rank that is not of the job, or was made before.
  std::unique_ptr<JobControl> control(int rank);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::dist
