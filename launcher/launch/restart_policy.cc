#include "launcher/launch/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::launcher {

RestartPolicy::RestartPolicy(Options options, int ranks, std::vector<LaunchHost> hosts)
    : options_(std::move(options)), ranks_(ranks), hosts_(std::move(hosts)) {}

RestartPolicy::Decision RestartPolicy::after(const LaunchFailure& failure, bool progress) {
  if (progress) {
    used_ = 0;
    times_suspected_ = 0;
  }
  Decision decision;
  if (used_ >= options_.max_restarts) return decision;
  decision.again = true;
  decision.delay_seconds =
      std::min(kLongestDelay, options_.delay_seconds * std::exp2(std::min(used_, 30)));
  decision.number = ++used_;
  decision.note = leave_out(failure);
  decision.ranks = ranks_;
  decision.left_out = left_out_;
  decision.keep_slow = keep_slow_;
  return decision;
}

/// Number of ranks that the other hosts take; all of them if that is not known of one.
int RestartPolicy::slots_without(const std::string& host) const {
  int slots = 0;
  for (const LaunchHost& each : hosts_) {
    if (each.name == host) continue;
    if (each.slots == 0) return ranks_;
    slots += each.slots;
  }
  return slots;
}

std::string RestartPolicy::leave_out(const LaunchFailure& failure) {
  const auto named = [&](const LaunchHost& host) { return host.name == failure.host; };
  const bool by_host = hosts_.size() > 1 && std::ranges::any_of(hosts_, named);
  const std::string who = by_host             ? "host " + failure.host
                          : failure.rank >= 0 ? fmt::format("rank {}", failure.rank)
                                              : "";
  times_suspected_ = who == suspect_ ? times_suspected_ + 1 : 1;
  suspect_ = who;
  if (failure.slow && options_.min_ranks == 0) {
    keep_slow_ = true;
    return who + " is too slow, but it stays without --min-ranks";
  }
  if (options_.min_ranks == 0 || who.empty()) return "";
  const bool is_gone = (by_host && failure.host_lost) || failure.slow;
  if (!is_gone && times_suspected_ < kFailuresToLeaveOut) return "";
  const std::string why = failure.slow ? who + " is too slow"
                          : is_gone
                              ? who + " is lost"
                              : fmt::format("{} failed {} times in a row", who, times_suspected_);
  int left = by_host ? std::min(ranks_, slots_without(failure.host)) : ranks_ - 1;
  while (left > 0 && options_.can_do && !options_.can_do(left)) --left;
  if (left < std::max(1, options_.min_ranks)) {
    keep_slow_ = keep_slow_ || failure.slow;
    return fmt::format("{}, but without it there are fewer than {} ranks that can do the job", why,
                       options_.min_ranks);
  }
  ranks_ = left;
  times_suspected_ = 0;
  if (by_host) {
    left_out_.push_back(failure.host);
    std::erase_if(hosts_, named);
  }
  return fmt::format("on {} rank{}: {}", left, left == 1 ? "" : "s", why);
}

}  // namespace lockstep::launcher
