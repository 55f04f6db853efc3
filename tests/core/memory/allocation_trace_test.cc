#include "core/memory/allocation_trace.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

using Line = AllocationTrace::Line;
using Kind = Line::Kind;

AllocationTrace trace_of(std::string_view text) { return parse_allocation_trace(text, "t.trace"); }

TEST(AllocationTrace, ReadsEventsInOrder) {
  const AllocationTrace trace =
      trace_of("# comment\nm step 0\na 7 512\n\na 9 1\nf 7\r\na 7 3\nm end");
  EXPECT_EQ(trace.lines, (std::vector<Line>{{Kind::kMark, 0, 0},
                                            {Kind::kAllocate, 0, 512},
                                            {Kind::kAllocate, 1, 1},
                                            {Kind::kFree, 0, 0},
                                            {Kind::kAllocate, 2, 3},
                                            {Kind::kMark, 1, 0}}));
  EXPECT_EQ(trace.labels, (std::vector<std::string>{"step 0", "end"}));
  EXPECT_EQ(trace.blocks, 3);
  EXPECT_EQ(trace.peak_live_bytes(), 513);
}

TEST(AllocationTrace, NamesFileAndLineOfWhatIsWrong) {
  const auto refused = [](std::string_view text, const char* line, const char* expected) {
    expect_error<DataError>([&] { trace_of(text); }, line, expected);
  };
  refused("a 1 4\nx 1\n", "t.trace:2:", "expected \"a ID BYTES\"");
  refused("a 1\n", "t.trace:1:", "expected the block's bytes");
  refused("a 1 -4\n", "t.trace:1:", "whole number from 0 to 2^63 - 1, got \"a 1 -4\"");
  refused("a 1 99999999999999999999\n", "t.trace:1:", "whole number");
  refused("a 1 4x\n", "t.trace:1:", "whole number");
  refused("a 1 4 5\n", "t.trace:1:", "the end of the line");
  refused("# c\na 1 4\na 1 4\n", "t.trace:3:", "an ID that is not on loan");
  refused("f 1\n", "t.trace:1:", "allocated before and not freed since");
  refused("a 1 4\nf 1\nf 1\n", "t.trace:3:", "allocated before and not freed since");
  refused("m \n", "t.trace:1:", "a label");
  refused("a 1 4611686018427387904\na 2 1\n", "t.trace:2:", "at most 2^62 bytes in all");
  expect_error<DataError>([] { read_allocation_trace("/no/such.trace"); }, "/no/such.trace",
                          "No such file");
}

RC_GTEST_PROP(AllocationTrace, WrittenTracesReadBackTheSame, ()) {
  const auto choices = *rc::gen::arbitrary<std::vector<std::pair<uint8_t, uint32_t>>>();
  AllocationTrace trace;
  std::vector<int32_t> live;
  for (const auto& [choice, number] : choices) {
    if (choice % 8 == 7) {
      trace.lines.push_back({Kind::kMark, static_cast<int32_t>(trace.labels.size()), 0});
      trace.labels.push_back("step" + std::to_string(number));
    } else if (choice % 2 == 0 || live.empty()) {
      live.push_back(trace.blocks);
      trace.lines.push_back({Kind::kAllocate, trace.blocks++, number});
    } else {
      const size_t at = number % live.size();
      trace.lines.push_back({Kind::kFree, live[at], 0});
      live.erase(live.begin() + static_cast<long>(at));
    }
  }
  RC_ASSERT(trace_of(to_string(trace, "made up")) == trace);
}

TEST(AllocationTrace, SaysInItsFirstLineWhatItHolds) {
  const std::string text = to_string(trace_of("m s\na 5 700\nf 5\na 6 3\n"), "gpt");
  EXPECT_EQ(text,
            "# gpt: 2 allocations over 1 steps, peak live 700 bytes\nm s\na 0 700\nf 0\na 1 3\n");
}

TEST(AllocationTrace, IsMadeOfHistories) {
  using Action = TraceEntry::Action;
  const auto entry = [](Action action, uintptr_t address, size_t size, const char* label = "") {
    TraceEntry made;
    made.action = action;
    made.address = address;
    made.size = size;
    made.label = label;
    return made;
  };
  AllocationTraceBuilder builder;
  builder.add(std::vector<TraceEntry>{
      entry(Action::kFreeRequested, 0x9000, 512),  // allocated before the history began
      entry(Action::kUserDefined, 0, 0, "step0"),
      entry(Action::kSegmentAlloc, 0x1000, 1 << 21),
      entry(Action::kAlloc, 0x1000, 1024),
      entry(Action::kFreeRequested, 0x1000, 1024),
  });
  builder.add(std::vector<TraceEntry>{
      entry(Action::kFreeCompleted, 0x1000, 1024),
      entry(Action::kAlloc, 0x1000, 512),
  });
  EXPECT_EQ(builder.take(), trace_of("m step0\na 1 1024\nf 1\na 2 512\n"));
}

TEST(AllocationTrace, AnAddressThatIsReusedBeforeItsFreeIsRecordedIsFreedFirst) {
  using Action = TraceEntry::Action;
  const auto entry = [](Action action, size_t size) {
    TraceEntry made;
    made.action = action;
    made.address = 0x1000;
    made.size = size;
    return made;
  };
  AllocationTraceBuilder builder;
  builder.add(std::vector<TraceEntry>{entry(Action::kAlloc, 512), entry(Action::kAlloc, 1024),
                                      entry(Action::kFreeRequested, 512),
                                      entry(Action::kFreeRequested, 1024)});
  EXPECT_EQ(builder.take(), trace_of("a 1 512\nf 1\na 2 1024\nf 2\n"));
  EXPECT_FALSE(builder.is_full());
  EXPECT_EQ(builder.take(), AllocationTrace()) << "it was taken";
}

TEST(AllocationTrace, IsReadFromAFile) {
  const train::TemporaryDirectory folder;
  const std::string path = (folder / "some.trace").string();
  train::put_file(path, "a 3 512\nf 4\n");
  expect_error<DataError>([&] { read_allocation_trace(path); },
                          "[trace] " + path +
                              ":2: expected an ID that was allocated before and not freed since, "
                              "got \"f 4\".");
  train::put_file(path, "a 3 512\n");
  EXPECT_EQ(read_allocation_trace(path), trace_of("a 0 512"));
  expect_error<DataError>([] { read_allocation_trace("/no/such.trace"); },
                          "[trace] /no/such.trace cannot be read: ");
}

TEST(AllocationTrace, ErrorsQuoteTheLineAndSayWhatWasExpected) {
  const auto refused = [](std::string_view text, const std::string& message) {
    expect_error<DataError>([&] { trace_of(text); }, message);
  };
  refused("q 1",
          "[trace] t.trace:1: expected \"a ID BYTES\", \"f ID\", \"m LABEL\" or a comment "
          "after #, got \"q 1\".");
  refused("a x 1", "expected the block's ID, a whole number from 0 to 2^63 - 1, got \"a x 1\".");
  refused("a 1 x", "expected the block's bytes, a whole number from 0 to 2^63 - 1, got");
  refused("f -1", "expected the block's ID, a whole number");
  refused("f 1 2", "expected the end of the line after the event, got");
  refused("f", "expected the block's ID");
  refused("m", "expected a label after \"m\", got \"m\".");
  refused("a 1 4611686018427387905", "expected at most 2^62 bytes in all, got");
  refused("x" + std::string(100, 'y'), "got \"x" + std::string(59, 'y') + "\".");
  const AllocationTrace whole = trace_of("  a\t1   4611686018427387904  \nm  two words \t\r\n");
  EXPECT_EQ(whole.peak_live_bytes(), int64_t{1} << 62);
  EXPECT_EQ(whole.labels, std::vector<std::string>{"two words"});
  EXPECT_EQ(trace_of("a 9223372036854775807 0").blocks, 1);
}

}  // namespace
}  // namespace lockstep
