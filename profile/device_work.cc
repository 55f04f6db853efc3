#include "profile/device_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace lockstep::profile {

namespace {

using Call = DeviceActivities::Call;
using Work = DeviceActivities::Work;

/// Copies the spans of a profile into a new list, with launches where they began.
class Inserting {
 public:
  Inserting(std::vector<ProfileSpan> spans, std::unordered_map<uint64_t, uint64_t>& launches,
            int64_t begin_ns)
      : spans_(std::move(spans)), launches_(launches), begin_ns_(begin_ns) {}

  /// Appends the spans of a thread, which begin at `next_`, and its calls, by their beginnings.
  void add_thread(size_t thread, const std::vector<const Call*>& calls) {
    std::vector<int64_t> open;  // new places, the innermost last
    size_t call = 0;
    const size_t first = next_;
    const auto add_calls_before = [&](int64_t time) {
      for (; call < calls.size() && calls[call]->begin_ns - begin_ns_ < time; ++call) {
        add_call(thread, *calls[call], open);
      }
    };
    std::vector<int64_t> places;
    for (; next_ < spans_.size() && spans_[next_].thread == thread; ++next_) {
      ProfileSpan& span = spans_[next_];
      add_calls_before(span.begin_ns);
      if (span.parent != ProfileSpan::kNone) {
        span.parent = places[static_cast<size_t>(span.parent) - first];
      }
      places.push_back(static_cast<int64_t>(result_.size()));
      open.push_back(places.back());
      result_.push_back(std::move(span));
    }
    add_calls_before(INT64_MAX);
  }

  std::vector<ProfileSpan> take() { return std::move(result_); }

 private:
  void add_call(size_t thread, const Call& call, std::vector<int64_t>& open) {
    const int64_t begin = call.begin_ns - begin_ns_;
    const auto ends = [&](int64_t place) {
      const ProfileSpan& span = result_[static_cast<size_t>(place)];
      return span.begin_ns + span.duration_ns;
    };
    while (!open.empty() && ends(open.back()) <= begin) open.pop_back();
    ProfileSpan launch;
    launch.kind = SpanKind::kLaunch;
    launch.thread = thread;
    launch.begin_ns = begin;
    launch.duration_ns = launch.self_ns = call.end_ns - call.begin_ns;
    launch.sequence = launches_[call.number] = next_launch();
    launch.name = call.name;
    if (!open.empty()) {
      ProfileSpan& parent = result_[static_cast<size_t>(open.back())];
      launch.parent = open.back();
      launch.step = parent.step;
      launch.phase = parent.phase;
      launch.module = parent.module;
      launch.duration_ns = launch.self_ns = std::min(launch.duration_ns, ends(open.back()) - begin);
      parent.self_ns -= launch.duration_ns;
    }
    result_.push_back(std::move(launch));
  }

  std::vector<ProfileSpan> spans_;
  std::unordered_map<uint64_t, uint64_t>& launches_;  ///< of calls, by their numbers
  int64_t begin_ns_;
  size_t next_ = 0;
  std::vector<ProfileSpan> result_;
};

/// The calls of each thread by their beginnings, without those before the profile's; threads that
/// recorded no spans are added.
std::vector<std::vector<const Call*>> calls_by_thread(Profile& profile,
                                                      const std::vector<Call>& calls,
                                                      int64_t begin_ns) {
  std::map<uint64_t, size_t> places;
  for (size_t i = 0; i < profile.threads.size(); ++i) places.emplace(profile.threads[i].id, i);
  std::vector<std::vector<const Call*>> by_thread(profile.threads.size());
  for (const Call& call : calls) {
    if (call.begin_ns < begin_ns) continue;
    const auto [place, is_new] = places.emplace(call.thread, profile.threads.size());
    if (is_new) {
      profile.threads.push_back({.id = call.thread, .name = "", .lost = 0});
      by_thread.emplace_back();
    }
    by_thread[place->second].push_back(&call);
  }
  for (auto& each : by_thread) {
    std::ranges::stable_sort(each, {}, [](const Call* call) { return call->begin_ns; });
  }
  return by_thread;
}

}  // namespace

void add_activities(Profile& profile, const DeviceActivities& activities, int64_t begin_ns) {
  profile.lost_work = activities.lost;
  if (activities.work.empty()) return;
  std::unordered_map<uint64_t, uint64_t> launches;
  const auto calls = calls_by_thread(profile, activities.calls, begin_ns);
  Inserting inserting(std::move(profile.spans), launches, begin_ns);
  for (size_t thread = 0; thread < calls.size(); ++thread) {
    inserting.add_thread(thread, calls[thread]);
  }
  profile.spans = inserting.take();

  std::map<std::pair<int, int>, std::vector<const Work*>> streams;
  for (const Work& work : activities.work) {
    if (work.begin_ns >= begin_ns) streams[{work.device, work.stream}].push_back(&work);
  }
  for (auto& [stream, works] : streams) {
    std::ranges::stable_sort(works, {}, [](const Work* work) { return work->begin_ns; });
    const size_t thread = profile.threads.size();
    profile.threads.push_back(
        {.id = static_cast<uint64_t>(stream.second),
         .name = fmt::format("cuda:{} stream {}", stream.first, stream.second),
         .lost = 0,
         .device = stream.first,
         .stream = stream.second});
    for (const Work* const work : works) {
      ProfileSpan& span = profile.spans.emplace_back();
      span.kind = SpanKind::kKernel;
      span.thread = thread;
      span.begin_ns = work->begin_ns - begin_ns;
      span.duration_ns = span.self_ns = work->end_ns - work->begin_ns;
      if (const auto found = launches.find(work->call); found != launches.end()) {
        span.sequence = found->second;
      }
      span.bytes = work->bytes;
      span.name = work->name;
    }
  }
}

}  // namespace lockstep::profile
