#pragma once

#include <functional>
#include <random>
#include <vector>

#include "configs/bit_flip.h"
#include "train/bisect/captured_call.h"
#include "train/bisect/operator_trace.h"
#include "train/bisect/recorded_run.h"
#include "train/bisect/replay.h"

namespace lockstep::train {

/// Which faults are drawn.
using MayFlip = std::function<bool(const TracedPart& part, const TracedCall& call)>;

/// Draws one of the last `bits` bits, in numbers without fractions the last one, of a random
/// element of what a random operator of one of the first six steps writes.
inline config::BitFlip random_flip(const RecordedRun& run, std::mt19937& random,
                                   const MayFlip& may_flip, size_t bits = 1) {
  const auto draw = [&](size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  };
  Replay replay(run, run);
  const size_t step = draw(6);
  for (size_t i = 0; i < step; ++i) (void)replay.step();
  replay.save();
  OperatorTrace trace;
  (void)replay.step({&trace});
  const std::vector<TracedPart> parts = trace.take();
  for (;;) {
    const TracedPart& part = parts[draw(parts.size())];
    if (part.calls.empty()) continue;
    const size_t number = draw(part.calls.size());
    if (!may_flip(part, part.calls[number])) continue;
    replay.go_back();
    CallCapture capture(part.part, number);
    (void)replay.step({&capture});
    const std::vector<Tensor>& written = capture.captured()->written;
    const size_t result = draw(written.size());
    if (written[result].numel() == 0) continue;
    return {.step = static_cast<int64_t>(step) + 1,
            .micro_batch = part.part.micro_batch,
            .operator_name = part.calls[number].op->name(),
            .call = part.calls[number].call,
            .result = static_cast<int64_t>(result),
            .element = static_cast<int64_t>(draw(static_cast<size_t>(written[result].numel()))),
            .bit = is_floating(written[result].dtype()) ? static_cast<int64_t>(draw(bits)) : 0};
  }
}

}  // namespace lockstep::train
