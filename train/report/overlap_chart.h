#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// A step of one rank and its communication, in milliseconds after the step's beginning.
struct OverlapTimeline {
  struct Bucket {
    int64_t bytes = 0;
    double ready = 0;
    double done = 0;
    std::string cause;  ///< cause of its exposure, "hidden" if it has none
  };

  std::string title;
  double backward_end = 0;
  double wait_end = 0;  ///< time at which all gradients are reduced
  double step_end = 0;
  std::vector<Bucket> buckets;  ///< in the order of the plan
};

/// A self-contained SVG image: at the top the rank's computation and waiting time; below, for each
/// bucket, the time from its gradients being ready until they are reduced, with the part after
/// backward marked.
std::string overlap_chart(const OverlapTimeline& timeline);

}  // namespace lockstep::train
