#include "core/base/spans/span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "core/base/current_scope.h"
#include "core/base/error.h"
#include "core/base/phase.h"
#include "core/base/spans/span_recorder.h"
#include "tests/core/base/child_process.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr SpanLimits kSmall = {.threads = 8, .spans = 4096, .text = 1u << 16};

std::vector<std::string> names_of(const ThreadSpans& thread) {
  std::vector<std::string> names;
  for (const SpanRecord& span : thread.spans) names.emplace_back(thread.name(span));
  return names;
}

TEST(Span, RecordsNothingWithoutARecorder) {
  EXPECT_FALSE(is_recording_spans());
  EXPECT_FALSE(Span(SpanKind::kWait, "wait"));
  SpanRecorder recorder(kSmall);
  recorder.start();
  EXPECT_THAT(recorder.stop().threads, IsEmpty());
}

TEST(Span, KeepsWhatItIsGivenAndWhereItIs) {
  SpanRecorder recorder(kSmall);
  recorder.start();
  {
    const ModuleScope module("h.3.attn");
    const PhaseGuard phase(Phase::kBackward);
    const Span span(SpanKind::kCollective, "all_reduce", 7, 4096, "world");
  }
  const SpanRecording recording = recorder.stop();
  ASSERT_THAT(recording.threads, SizeIs(1));
  const ThreadSpans& thread = recording.threads[0];
  ASSERT_THAT(thread.spans, SizeIs(1));
  const SpanRecord& span = thread.spans[0];
  EXPECT_EQ(span.kind, SpanKind::kCollective);
  EXPECT_EQ(span.sequence, 7u);
  EXPECT_EQ(span.bytes, 4096);
  EXPECT_EQ(static_cast<Phase>(span.phase), Phase::kBackward);
  EXPECT_EQ(thread.name(span), "all_reduce");
  EXPECT_EQ(thread.module(span), "h.3.attn");
  EXPECT_EQ(thread.details(span), "world");
  EXPECT_EQ(thread.thread, static_cast<uint64_t>(gettid()));
}

TEST(Span, NestsAndLiesInsideTheRecording) {
  SpanRecorder recorder(kSmall);
  recorder.start();
  {
    const Range outer("outer");
    { const Range inner("inner"); }
    { const Range second("second"); }
  }
  const SpanRecording recording = recorder.stop();
  const std::vector<SpanRecord>& spans = recording.threads.at(0).spans;
  ASSERT_THAT(names_of(recording.threads[0]), ElementsAre("outer", "inner", "second"));
  EXPECT_EQ(spans[0].parent, SpanRecord::kNone);
  EXPECT_EQ(spans[1].parent, 0u);
  EXPECT_EQ(spans[2].parent, 0u);
  int64_t before = recording.begin.steady_ns;
  for (const uint64_t ticks :
       {spans[0].begin, spans[1].begin, spans[1].end, spans[2].begin, spans[2].end, spans[0].end}) {
    EXPECT_LE(before, recording.clock.steady_ns(ticks));
    before = recording.clock.steady_ns(ticks);
  }
  EXPECT_LE(before, recording.end.steady_ns);
}

TEST(Span, OpenOnesHaveNoEnd) {
  SpanRecorder recorder(kSmall);
  recorder.start();
  const Range open("open");
  { const Range closed("closed"); }
  const SpanRecording recording = recorder.stop();
  EXPECT_EQ(recording.threads.at(0).spans.at(0).end, 0u);
  EXPECT_NE(recording.threads[0].spans.at(1).end, 0u);
}

TEST(Span, OneOfAnOlderRecordingLeavesANewerOneAlone) {
  SpanRecorder recorder(kSmall);
  recorder.start();
  {
    const Range old("old");
    recorder.start();
    const Range young("young");
    { const Range inner("inner"); }
  }
  const SpanRecording recording = recorder.stop();
  EXPECT_THAT(names_of(recording.threads.at(0)), ElementsAre("young", "inner"));
  EXPECT_NE(recording.threads[0].spans[0].end, 0u);
}

TEST(Span, EachThreadRecordsItsOwn) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 500;
  SpanRecorder recorder(kSmall);
  recorder.start();
  std::latch all_there(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, name = std::string(1, static_cast<char>('a' + t))] {
      all_there.arrive_and_wait();
      for (int i = 0; i < kSpans; ++i) const Range range(name);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const SpanRecording recording = recorder.stop();
  ASSERT_THAT(recording.threads, SizeIs(kThreads));
  for (const ThreadSpans& thread : recording.threads) {
    EXPECT_THAT(names_of(thread), SizeIs(kSpans));
    EXPECT_THAT(names_of(thread), ::testing::Each(names_of(thread)[0]));
    EXPECT_EQ(thread.lost, 0u);
  }
}

TEST(Span, ThreadsMayRecordWhileARecordingBeginsAndEnds) {
  SpanRecorder recorder(kSmall);
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) {
      const Range outer("outer");
      const Range inner("inner");
    }
  });
  for (int i = 0; i < 200; ++i) {
    recorder.start();
    const SpanRecording recording = recorder.stop();
    for (const ThreadSpans& thread : recording.threads) {
      for (const SpanRecord& span : thread.spans) {
        const std::string_view name = thread.name(span);
        EXPECT_TRUE(name == "outer" || name == "inner") << name;
      }
    }
  }
  done = true;
  busy.join();
}

TEST(Span, WhatDoesNotFitIsCountedAndTheRestKeepsItsShape) {
  SpanRecorder recorder({.threads = 1, .spans = 3, .text = 1024});
  recorder.start();
  {
    const Range outer("outer");
    for (int i = 0; i < 4; ++i) {
      const Range middle("middle");
      const Range inner("inner");
    }
  }
  const SpanRecording recording = recorder.stop();
  const ThreadSpans& thread = recording.threads.at(0);
  EXPECT_THAT(names_of(thread), ElementsAre("outer", "middle", "inner"));
  EXPECT_EQ(thread.lost, 6u);
  EXPECT_NE(thread.spans[0].end, 0u);
}

TEST(Span, TextThatDoesNotFitCountsToo) {
  SpanRecorder recorder({.threads = 1, .spans = 100, .text = 8});
  recorder.start();
  { const Range fits("12345"); }
  { const Range does_not("6789"); }
  const SpanRecording recording = recorder.stop();
  EXPECT_THAT(names_of(recording.threads.at(0)), ElementsAre("12345"));
  EXPECT_EQ(recording.threads[0].lost, 1u);
}

TEST(Span, ThreadsWithoutABufferAreCounted) {
  SpanRecorder recorder({.threads = 1, .spans = 10, .text = 100});
  recorder.start();
  { const Range here("here"); }
  std::thread([] { const Range there("there"); }).join();
  const SpanRecording recording = recorder.stop();
  ASSERT_THAT(recording.threads, SizeIs(1));
  EXPECT_THAT(names_of(recording.threads[0]), ElementsAre("here"));
  EXPECT_EQ(recording.threads_without_buffer, 1u);
}

TEST(Span, BuffersOfEndedThreadsServeLaterRecordings) {
  SpanRecorder recorder({.threads = 1, .spans = 10, .text = 101});
  for (int i = 0; i < 3; ++i) {
    recorder.start();
    std::thread([] { const Range range("there"); }).join();
    EXPECT_THAT(recorder.stop().threads, SizeIs(1));
  }
}

TEST(SpanRecorder, ThereIsOneAtATime) {
  const SpanRecorder first(kSmall);
  EXPECT_THROW(SpanRecorder second(kSmall), Error);
}

TEST(SpanRecorder, AChildOfForkRecordsNothing) {
  SpanRecorder recorder(kSmall);
  recorder.start();
  EXPECT_EQ(status_of_child([] { return !is_recording_spans(); }), 0);
  EXPECT_TRUE(is_recording_spans());
}

}  // namespace
}  // namespace lockstep
