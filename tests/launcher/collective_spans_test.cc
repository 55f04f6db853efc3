#include "launcher/collective_spans.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::launcher {
namespace {

dist::Signature all_reduce(uint64_t sequence) {
  return {.group = 5,
          .sequence = sequence,
          .kind = dist::OpKind::kAllReduce,
          .dtype = DType::kBF16,
          .reduction = {},
          .root = 0,
          .count = 1024};
}

/// Lets the clock go on.
void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

profile::ProfileSpan step(int64_t number, int64_t begin_ns) {
  profile::ProfileSpan span;
  span.kind = SpanKind::kStep;
  span.step = number;
  span.begin_ns = begin_ns;
  return span;
}

/// A profile of an hour of one thread.
profile::Profile hour_from(int64_t begin_unix_ns) {
  profile::Profile profile;
  profile.begin_unix_ns = begin_unix_ns;
  profile.duration_ns = 3'600'000'000'000;
  profile.threads.push_back({1, "main", 0});
  return profile;
}

TEST(CollectiveSpans, OverlapOnThreadsOfTheirOwnInTheStepWhereTheyBegin) {
  dist::FlightRecorder recorder(0, 2, 8);
  const uint64_t first = recorder.queued(all_reduce(1), "world");
  recorder.started(first);
  wait();
  const uint64_t second = recorder.queued(all_reduce(2), "world");
  recorder.started(second);
  wait();
  recorder.ended(first, false);
  recorder.ended(second, false);
  wait();
  const uint64_t third = recorder.queued(all_reduce(3), "world");
  recorder.started(third);
  recorder.ended(third, false);
  const std::vector<dist::FlightRecord> records = recorder.records();

  profile::Profile profile = hour_from(records[0].queued_ns - 1000);
  profile.spans.push_back(step(7, 0));
  profile.spans.push_back(step(8, records[2].started_ns - profile.begin_unix_ns));
  add_collectives(profile, recorder);
  ASSERT_EQ(profile.threads.size(), 3U);
  EXPECT_EQ(profile.threads[1].name, "collectives 1");
  EXPECT_EQ(profile.threads[2].name, "collectives 2");
  ASSERT_EQ(profile.spans.size(), 5U);
  const size_t threads[] = {1, 2, 1};
  const int64_t steps[] = {7, 7, 8};
  for (size_t i = 0; i < 3; ++i) {
    const profile::ProfileSpan& span = profile.spans[2 + i];
    EXPECT_EQ(span.sequence, i + 1);
    EXPECT_EQ(span.thread, threads[i]) << i;
    EXPECT_EQ(span.step, steps[i]) << i;
    EXPECT_EQ(span.bytes, 2048);
    EXPECT_EQ(span.begin_ns, records[i].started_ns - profile.begin_unix_ns);
    EXPECT_EQ(span.duration_ns, records[i].ended_ns - records[i].started_ns);
  }
  EXPECT_EQ(profile.lost(), 0U);
}

TEST(CollectiveSpans, ThatTheRecorderHasOverwrittenAreLost) {
  dist::FlightRecorder recorder(0, 2, 2);
  int64_t begin = 0;
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t record = recorder.queued(all_reduce(i), "world");
    if (i == 0) begin = recorder.records()[0].queued_ns;
    recorder.started(record);
    recorder.ended(record, false);
    wait();
  }
  profile::Profile whole = hour_from(begin);
  add_collectives(whole, recorder);
  EXPECT_GT(whole.lost(), 0U);
  // What was overwritten may lie before the profile.
  profile::Profile end = hour_from(recorder.records()[0].queued_ns);
  add_collectives(end, recorder);
  EXPECT_EQ(end.lost(), 0U);
}

}  // namespace
}  // namespace lockstep::launcher
