#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::dist {

/// When a bucket of a Reducer's last step was where; as dist/ddp/step_clock.h tells it.
struct BucketTimes {
  using TimePoint = std::chrono::steady_clock::time_point;

  int64_t bytes = 0;
  TimePoint ready;     ///< its gradients, and the buckets before it, were there
  TimePoint launched;  ///< its reduction was handed over
  TimePoint done;      ///< the sum was there, as far as this rank knows
};

/// One step of a rank as `best_schedule` sees it; seconds after the step's beginning.
struct StepProfile {
  std::vector<double> ready;  ///< by bucket, in the order of the plan; without communication
  double backward_end = 0;    ///< the same
  double tail = 0;            ///< seconds of what waits for all gradients: the optimizer
};

/// What communication takes, measured alone.
struct LinkProfile {
  std::vector<double> seconds;  ///< by bucket
  /// By bucket: processor time that comes out of the core that computes. Empty where communication
  /// has a core of its own.
  std::vector<double> stolen_cpu = {};
  /// Until the last bucket's sum is there, after its turn on the link.
  double latency = 0;
};

/// How long the step takes at least, whatever the schedule: buckets go one after the other over the
/// link, each when it is ready, and the optimizer begins when backward and the last bucket have
/// ended:
///
///     ready'(b) = ready(b) + sum over a < b of min(stolen_cpu(a), seconds(a))
///     end(b)    = max(end(b - 1), ready'(b)) + seconds(b)
///     step      = max(backward_end + sum of stolen_cpu, end(last) + latency) + tail
///
/// The processor time of a bucket is spent as its bytes cross. So when b is ready, after x seconds
/// of it, at ready(b) + x or later, no more of the buckets before has crossed than x pays for; the
/// rest and b are still to cross, all after that. The earliest end over all x is where each bucket
/// before was either paid for or is still to cross, whichever is less: ready'(b) + seconds(b).
double best_schedule(const StepProfile& step, const LinkProfile& link);

/// What kept a bucket's reduction from being hidden behind backward.
enum class Exposure : uint8_t {
  kHidden,      ///< it ended before backward did
  kLateBucket,  ///< it was ready so late that even its own transfer could not end in time
  kSlowLink,    ///< transfers before it still kept the link busy
  kSlowRank,    ///< another rank had it ready later
  kProcessor,   ///< it took longer than alone, with the link free: communication lacked a core
};
/// "hidden", "late bucket", "slow link", "slow rank", "CPU".
const char* name(Exposure exposure);

/// A bucket of a measured step, in seconds after its beginning.
struct MeasuredBucket {
  double ready = 0;      ///< on this rank
  double all_ready = 0;  ///< on the last rank
  double done = 0;
  double alone = 0;  ///< its transfer, measured alone
};
/// Why each bucket was exposed, for a backward that ended at `backward_end`. A bucket is late where
/// ready + alone lies behind that; else another rank is to blame where all_ready + alone does; else
/// the link where the bucket before it ended after all_ready; else the processor.
std::vector<Exposure> explain_exposure(std::span<const MeasuredBucket> buckets,
                                       double backward_end);

}  // namespace lockstep::dist
