#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

/// A step of one rank and its communication, in milliseconds after the step's beginning.
struct OverlapTimeline {
  struct Bucket {
    int64_t bytes = 0;
    double ready = 0;    ///< its gradients were complete on this rank
    double begin = 0;    ///< its transfer began: all ranks had it, and the link was free
    double done = 0;     ///< its sum was there
    double exposed = 0;  ///< by how long it prolonged the wait after backward
    std::string cause;   ///< cause of its exposure, "hidden" if it has none
    std::string first;   ///< names of its first and last parameter; empty if not known
    std::string last;
  };

  std::string title;
  double backward_end = 0;
  double wait_end = 0;  ///< time at which all gradients are reduced
  double step_end = 0;
  std::vector<Bucket> buckets;  ///< in the order of the plan
};

/// A self-contained SVG image: at the top where the time went, with a lane for the rank's
/// computation and waiting time and one for the link; below, for each bucket, the time from its
/// gradients being ready until they are reduced, with the part after backward marked, its size, its
/// parameters and why it was exposed.
std::string overlap_chart(const OverlapTimeline& timeline);

}  // namespace lockstep::train
