#include "dist/ddp/overlap.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::dist {

double best_schedule(const StepProfile& step, const LinkProfile& link) {
  LS_ASSERT(step.ready.size() == link.seconds.size());
  LS_ASSERT(link.stolen_cpu.empty() || link.stolen_cpu.size() == link.seconds.size());
  double end = 0;
  double stolen = 0;  // processor time of the buckets so far
  double delay = 0;   // by how much they delay the later buckets
  for (size_t b = 0; b < step.ready.size(); ++b) {
    end = std::max(end, step.ready[b] + delay) + link.seconds[b];
    if (link.stolen_cpu.empty()) continue;
    stolen += link.stolen_cpu[b];
    delay += std::min(link.stolen_cpu[b], link.seconds[b]);
  }
  return std::max(step.backward_end + stolen, end + link.latency) + step.tail;
}

const char* name(Exposure exposure) {
  switch (exposure) {
    case Exposure::kHidden:
      return "hidden";
    case Exposure::kLateBucket:
      return "late bucket";
    case Exposure::kSlowLink:
      return "slow link";
    case Exposure::kSlowRank:
      return "slow rank";
    case Exposure::kProcessor:
      return "CPU";
  }
  return "unknown";
}

std::vector<Exposure> explain_exposure(std::span<const MeasuredBucket> buckets,
                                       double backward_end) {
  std::vector<Exposure> result;
  double link_free = 0;
  for (const MeasuredBucket& bucket : buckets) {
    const auto cause = [&] {
      if (bucket.done <= backward_end) return Exposure::kHidden;
      if (bucket.ready + bucket.alone > backward_end) return Exposure::kLateBucket;
      if (bucket.all_ready + bucket.alone > backward_end) return Exposure::kSlowRank;
      return link_free > bucket.all_ready ? Exposure::kSlowLink : Exposure::kProcessor;
    };
    result.push_back(cause());
    link_free = std::max(link_free, bucket.done);
  }
  return result;
}

}  // namespace lockstep::dist
