#include "launcher/collective_spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace lockstep::launcher {

namespace {

/// Numbers of the made-up threads, above those of the system.
constexpr uint64_t kFirstThread = uint64_t{1} << 32;

profile::ProfileSpan span_of(const dist::FlightRecord& record, const profile::Profile& profile) {
  profile::ProfileSpan span;
  span.kind = SpanKind::kCollective;
  span.phase = Phase::kBackward;
  span.name = dist::name(record.signature.kind);
  span.note = record.group_name;
  span.label = record.label;
  span.dtype = record.signature.dtype;
  span.sequence = record.signature.sequence;
  span.bytes = record.signature.count * static_cast<int64_t>(size_of(record.signature.dtype));
  span.begin_ns = std::max<int64_t>(0, record.started_ns - profile.begin_unix_ns);
  const int64_t end = std::min(record.ended_ns - profile.begin_unix_ns, profile.duration_ns);
  span.duration_ns = span.self_ns = std::max<int64_t>(0, end - span.begin_ns);
  return span;
}

/// The step that a moment lies in.
int64_t step_at(const profile::Profile& profile, int64_t ns) {
  int64_t step = profile::ProfileSpan::kNone;
  for (const profile::ProfileSpan& span : profile.spans) {
    if (span.kind == SpanKind::kStep && span.begin_ns <= ns) step = span.step;
  }
  return step;
}

}  // namespace

void add_collectives(profile::Profile& profile, const dist::FlightRecorder& recorder) {
  const std::vector<dist::FlightRecord> records = recorder.records();
  std::vector<profile::ProfileSpan> spans;
  for (const dist::FlightRecord& record : records) {
    const bool ended = record.state == dist::FlightRecord::State::kDone ||
                       record.state == dist::FlightRecord::State::kFailed;
    if (!ended || record.started_ns == 0 || record.ended_ns < profile.begin_unix_ns ||
        record.started_ns > profile.begin_unix_ns + profile.duration_ns) {
      continue;
    }
    spans.push_back(span_of(record, profile));
    spans.back().step = step_at(profile, spans.back().begin_ns);
  }
  std::ranges::stable_sort(spans, {}, &profile::ProfileSpan::begin_ns);
  const size_t first = profile.threads.size();
  std::vector<int64_t> free_from;  // of each made-up thread
  for (profile::ProfileSpan& span : spans) {
    const auto lane =
        std::ranges::find_if(free_from, [&](int64_t free) { return free <= span.begin_ns; });
    const auto number = static_cast<size_t>(lane - free_from.begin());
    if (lane == free_from.end()) {
      free_from.push_back(0);
      profile.threads.push_back(
          {kFirstThread + number, fmt::format("collectives {}", number + 1), 0});
    }
    free_from[number] = span.begin_ns + span.duration_ns;
    span.thread = first + number;
    profile.spans.push_back(std::move(span));
  }
  const bool overwritten = !records.empty() && recorder.recorded() > records.size() &&
                           records.front().queued_ns > profile.begin_unix_ns;
  if (overwritten) ++profile.threads[first == profile.threads.size() ? 0 : first].lost;
}

}  // namespace lockstep::launcher
