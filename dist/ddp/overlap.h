#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::dist {

/// Times of one bucket in a Reducer's last step, on the clock of dist/ddp/step_clock.h.
struct BucketTimes {
  using TimePoint = std::chrono::steady_clock::time_point;

  int64_t bytes = 0;
  TimePoint ready;     ///< its gradients, and the buckets before it, were complete
  TimePoint launched;  ///< its reduction was started
  TimePoint done;      ///< its sum was complete on this rank
};

/// Computation of one step of a rank, in seconds after the step's beginning, as it would be without
/// communication.
struct StepProfile {
  std::vector<double> ready;  ///< when each bucket is ready, in the order of the plan
  double backward_end = 0;    ///< end of backward
  double tail = 0;            ///< duration of what needs all gradients: the optimizer
};

/// Duration of communication, measured without computation.
struct LinkProfile {
  std::vector<double> seconds;  ///< by bucket
  /// By bucket: processor time taken from the core that computes. Empty if communication has a core
  /// of its own.
  std::vector<double> stolen_cpu = {};
  /// Seconds from the end of the last bucket's transfer to its sum.
  double latency = 0;
};

/// Returns a lower bound on the duration of the step under any schedule: buckets use the link one
/// after the other, each when it is ready, and the optimizer begins when backward and the last
/// bucket have ended:
///
///     ready'(b) = ready(b) + sum over a < b of min(stolen_cpu(a), seconds(a))
///     end(b)    = max(end(b - 1), ready'(b)) + seconds(b)
///     step      = max(backward_end + sum of stolen_cpu, end(last) + latency) + tail
///
/// The processor time of a bucket is spent while its bytes are transferred. If x seconds of it were
/// spent before b is ready, b is ready at ready(b) + x at the earliest, and only what x seconds pay
/// for of the buckets before it has been transferred; the rest and b follow after that. The
/// earliest end over all x takes for each earlier bucket the smaller of its processor time and its
/// transfer: ready'(b) + seconds(b).
double best_schedule(const StepProfile& step, const LinkProfile& link);

/// Why a bucket's reduction was not hidden behind backward.
enum class Exposure : uint8_t {
  kHidden,      ///< it ended before backward did
  kLateBucket,  ///< it was ready so late that even its own transfer could not end in time
  kSlowLink,    ///< the link was still busy with earlier buckets
  kSlowRank,    ///< it was ready too late on another rank
  kProcessor,   ///< it took longer than alone, with the link free: communication lacked a core
};
/// Returns "hidden", "late bucket", "slow link", "slow rank" or "CPU".
const char* name(Exposure exposure);

/// Times of a bucket in a measured step, in seconds after the step's beginning.
struct MeasuredBucket {
  double ready = 0;      ///< on this rank
  double all_ready = 0;  ///< on the last rank
  double done = 0;       ///< its sum was complete
  double alone = 0;      ///< duration of its transfer, measured alone
};
/// Returns for each bucket why it ended after `backward_end`: kLateBucket if ready + alone is later
/// than that; else kSlowRank if all_ready + alone is; else kSlowLink if the bucket before it ended
/// after all_ready; else kProcessor.
std::vector<Exposure> explain_exposure(std::span<const MeasuredBucket> buckets,
                                       double backward_end);

}  // namespace lockstep::dist
