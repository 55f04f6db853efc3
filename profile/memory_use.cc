#include "profile/memory_use.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/base/check.h"

namespace lockstep::profile {

namespace {

/// Places of the profile's requests and frees, in the order of time.
std::vector<size_t> events_of(const Profile& profile) {
  std::vector<size_t> events;
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    if (profile.spans[i].kind == SpanKind::kMemory) events.push_back(i);
  }
  std::ranges::stable_sort(events, {}, [&](size_t i) { return profile.spans[i].begin_ns; });
  return events;
}

MemoryUse use_of(const ProfileSpan& request, const ProfileSpan* free) {
  if (free != nullptr && free->phase == request.phase && free->step == request.step) {
    return MemoryUse::kTemporary;
  }
  if (request.phase == Phase::kForward) return MemoryUse::kActivations;
  return request.phase == Phase::kBackward ? MemoryUse::kGradients : MemoryUse::kOptimizer;
}

/// For each event, in order, what its block is used for.
std::vector<MemoryUse> uses_of(const Profile& profile, const std::vector<size_t>& events) {
  std::vector<MemoryUse> uses(events.size(), MemoryUse::kBefore);
  std::unordered_map<uint64_t, size_t> open;  // by address: the request, as a place in `events`
  for (size_t at = 0; at < events.size(); ++at) {
    const ProfileSpan& event = profile.spans[events[at]];
    if (event.bytes >= 0) {
      open[event.sequence] = at;
      uses[at] = use_of(event, nullptr);
    } else if (const auto request = open.find(event.sequence); request != open.end()) {
      uses[at] = uses[request->second] = use_of(profile.spans[events[request->second]], &event);
      open.erase(request);
    }
  }
  return uses;
}

}  // namespace

const char* name(MemoryUse use) noexcept {
  constexpr const char* kNames[kMemoryUses] = {"before", "activations", "gradients", "optimizer",
                                               "temporary"};
  return kNames[static_cast<int>(use)];
}

int64_t MemoryMoment::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

std::vector<MemoryMoment> memory_timeline(const Profile& profile) {
  if (!profile.memory) return {};
  const std::vector<size_t> events = events_of(profile);
  const std::vector<MemoryUse> uses = uses_of(profile, events);
  MemoryMoment now;
  now.bytes[static_cast<size_t>(MemoryUse::kBefore)] = profile.memory->begin_bytes;
  std::vector<MemoryMoment> timeline = {now};
  for (size_t at = 0; at < events.size(); ++at) {
    const ProfileSpan& event = profile.spans[events[at]];
    now.at_ns = event.begin_ns;
    now.bytes[static_cast<size_t>(uses[at])] += event.bytes;
    timeline.push_back(now);
  }
  return timeline;
}

std::string peak_text(const Profile& profile) {
  const std::vector<MemoryMoment> timeline = memory_timeline(profile);
  if (timeline.empty()) return "";
  const MemoryMoment& peak = *std::ranges::max_element(timeline, {}, &MemoryMoment::total);
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / 1048576.0; };
  std::string text = fmt::format("memory on {}: {:.1f} MiB at the peak", profile.memory->device,
                                 mib(peak.total()));
  for (int i = 0; i < kMemoryUses; ++i) {
    const int64_t bytes = peak.bytes[static_cast<size_t>(i)];
    if (bytes != 0) {
      text +=
          fmt::format("{} {:.1f} {}", text.find(':', text.find("peak")) == text.npos ? ":" : ",",
                      mib(bytes), name(static_cast<MemoryUse>(i)));
    }
  }
  return text + "\n";
}

}  // namespace lockstep::profile
