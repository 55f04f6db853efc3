#pragma once

#include <cstdint>
#include <functional>

#include "dist/simulate/cluster.h"
#include "dist/simulate/step_work.h"

namespace lockstep::dist {

/// What a step would be shortened most by, if it took no time.
enum class StepLimit : uint8_t {
  kComputation,
  kStragglers,   ///< ranks that compute more slowly than the mean
  kLinkInside,   ///< bytes between ranks of a host
  kLinkBetween,  ///< bytes between hosts
  kLatency,      ///< messages and operations, however short
  kProcessor,    ///< processor time that communication takes from computation
};
/// Returns "computation", "stragglers", "link inside hosts", "link between hosts", "latency" or
/// "CPU".
const char* name(StepLimit limit);

/// Finds it by predictions: `seconds` is called with each of them taken away.
StepLimit limit_of_step(
    const StepWork& work, const Cluster& cluster,
    const std::function<double(const StepWork& work, const Cluster& cluster)>& seconds);

}  // namespace lockstep::dist
