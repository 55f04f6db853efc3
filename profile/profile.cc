#include "profile/profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "autograd/node.h"
#include "core/base/check.h"
#include "core/base/digits.h"
#include "core/base/parse_number.h"
#include "core/dispatch/dispatcher.h"
#include "profile/device_work.h"

namespace lockstep::profile {

namespace {

/// Names of backward nodes that were recorded under the names of their operators.
class NodeNames {
 public:
  const std::string& of(const std::string& op) {
    std::string& name = names_[op];  // kept, because all operators are looked at for one
    if (name.empty()) {
      const Operator* const found = dispatcher().find_or_null(op);
      name = found != nullptr ? backward_name(*found) : op + "Backward";
    }
    return name;
  }

 private:
  std::unordered_map<std::string, std::string> names_;
};

/// The wall clock's time of a moment of steady_clock.
int64_t unix_ns(int64_t steady_ns) {
  using std::chrono::nanoseconds;
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(wall).count() -
         std::chrono::duration_cast<nanoseconds>(steady).count() + steady_ns;
}

void add_thread(Profile& profile, const SpanRecording& recording, const ThreadSpans& thread) {
  const auto first = static_cast<int64_t>(profile.spans.size());
  const size_t number = profile.threads.size();
  profile.threads.push_back({.id = thread.thread, .name = thread.thread_name, .lost = thread.lost});
  // The worker of stream S of host:D is called ls-hostD-S.
  ProfileThread& known = profile.threads.back();
  if (std::sscanf(known.name.c_str(), "ls-host%d-%d", &known.device, &known.stream) != 2) {
    known.device = known.stream = -1;
  }
  const auto at = [&](uint64_t ticks) {
    return recording.clock.steady_ns(ticks) - recording.begin.steady_ns;
  };
  int64_t step = ProfileSpan::kNone;
  NodeNames node_names;
  for (const SpanRecord& record : thread.spans) {
    ProfileSpan& span = profile.spans.emplace_back();
    span.kind = record.kind;
    span.phase = static_cast<Phase>(record.phase);
    span.dtype = static_cast<DType>(record.dtype);
    span.cut = record.end == 0;
    span.thread = number;
    if (record.parent != SpanRecord::kNone) span.parent = first + record.parent;
    span.begin_ns = at(record.begin);
    span.duration_ns =
        std::max<int64_t>(0, (span.cut ? profile.duration_ns : at(record.end)) - span.begin_ns);
    span.self_ns = span.duration_ns;
    span.sequence = record.sequence;
    span.flops = record.flops;
    span.bytes = record.bytes;
    span.name = thread.name(record);
    span.module = thread.module(record);
    const std::string_view details = thread.details(record);
    if (record.kind == SpanKind::kOperator) {
      span.arguments = read_arguments(details);
    } else if (record.kind != SpanKind::kNode) {
      span.note = details;
    }
    if (record.kind == SpanKind::kNode && details == "operator") {
      span.name = node_names.of(span.name);
    }
    if (record.kind == SpanKind::kStep) {
      step = static_cast<int64_t>(record.sequence);
      profile.steps.push_back(step);
    }
    span.step = step;
    if (span.parent != ProfileSpan::kNone) {
      profile.spans[static_cast<size_t>(span.parent)].self_ns -= span.duration_ns;
    }
  }
}

/// Ties backward nodes to the calls that made them, whose modules they and what is inside them
/// take over.
void tie_backward(Profile& profile) {
  std::unordered_map<uint64_t, int64_t> makers;
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    // The innermost call of a composite is the last with its number.
    if (span.kind == SpanKind::kOperator && span.sequence != 0) {
      makers[span.sequence] = static_cast<int64_t>(i);
    }
  }
  for (ProfileSpan& span : profile.spans) {
    if (span.kind == SpanKind::kNode && span.sequence != 0) {
      const auto maker = makers.find(span.sequence);
      if (maker != makers.end()) {
        span.cause = maker->second;
        span.module = profile.spans[static_cast<size_t>(maker->second)].module;
      }
    } else if (span.module.empty() && span.parent != ProfileSpan::kNone) {
      // A parent stands before what is inside it.
      const ProfileSpan& parent = profile.spans[static_cast<size_t>(span.parent)];
      if (parent.phase == Phase::kBackward) span.module = parent.module;
    }
  }
}

/// Ties kernels to their launches, whose step, phase and module they take over, and gives them the
/// work of the operator that launched them: its own time is only that of queueing.
void tie_kernels(Profile& profile) {
  std::unordered_map<uint64_t, int64_t> launches;
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    if (span.kind == SpanKind::kLaunch) launches[span.sequence] = static_cast<int64_t>(i);
  }
  for (ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::kKernel) continue;
    const auto launch = launches.find(span.sequence);
    if (launch == launches.end()) continue;
    span.cause = launch->second;
    const ProfileSpan& from = profile.spans[static_cast<size_t>(launch->second)];
    span.step = from.step;
    span.phase = from.phase;
    span.module = from.module;
    if (from.parent == ProfileSpan::kNone) continue;
    ProfileSpan& op = profile.spans[static_cast<size_t>(from.parent)];
    if (op.kind != SpanKind::kOperator) continue;
    span.dtype = op.dtype;
    span.flops = std::exchange(op.flops, 0);
    // A driver says how many bytes a copy moved.
    if (const int64_t bytes = std::exchange(op.bytes, 0); span.bytes == 0) span.bytes = bytes;
  }
}

/// Gives the spans of threads that mark no steps the step in which they began.
void assign_steps(Profile& profile) {
  std::vector<const ProfileSpan*> steps;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind == SpanKind::kStep) steps.push_back(&span);
  }
  for (ProfileSpan& span : profile.spans) {
    if (span.step != ProfileSpan::kNone) continue;
    for (const ProfileSpan* const step : steps) {
      if (step->begin_ns <= span.begin_ns) span.step = static_cast<int64_t>(step->sequence);
    }
  }
}

}  // namespace

uint64_t Profile::lost() const {
  uint64_t sum = 0;
  for (const ProfileThread& thread : threads) sum += thread.lost;
  return sum;
}

Profile read_recording(const SpanRecording& recording, const DeviceActivities& activities) {
  Profile profile;
  profile.process = getpid();
  profile.begin_unix_ns = unix_ns(recording.begin.steady_ns);
  profile.duration_ns = recording.end.steady_ns - recording.begin.steady_ns;
  profile.threads_without_buffer = recording.threads_without_buffer;
  for (const ThreadSpans& thread : recording.threads) add_thread(profile, recording, thread);
  add_activities(profile, activities, recording.begin.steady_ns);
  tie_backward(profile);
  assign_steps(profile);
  tie_kernels(profile);
  return profile;
}

std::string losses_text(const Profile& profile) {
  std::string text;
  if (const uint64_t lost = profile.lost(); lost > 0) {
    text += fmt::format(
        "{} spans did not fit the buffers and are missing: raise profile.buffer_spans.\n",
        grouped(static_cast<int64_t>(lost)));
  }
  if (profile.threads_without_buffer > 0) {
    text += fmt::format("{} threads found no buffer and are missing: raise profile.threads.\n",
                        profile.threads_without_buffer);
  }
  if (profile.lost_work > 0) {
    text += fmt::format(
        "{} kernels and copies found no room in the buffers for devices and are missing: record "
        "fewer steps.\n",
        grouped(static_cast<int64_t>(profile.lost_work)));
  }
  return text;
}

}  // namespace lockstep::profile
