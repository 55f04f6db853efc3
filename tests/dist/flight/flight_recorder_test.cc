#include "dist/flight/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "dist/collectives/operation_label.h"
#include "dist/flight/flight_log.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using State = FlightRecord::State;
using testing::ElementsAre;

constexpr uint64_t kGroup = 0xfedcba9876543210;

Signature all_reduce(uint64_t sequence, uint64_t group = kGroup) {
  return {.group = group,
          .sequence = sequence,
          .kind = OpKind::kAllReduce,
          .dtype = DType::kF32,
          .reduction = {},
          .root = 0,
          .count = 1024};
}

Signature receive_from(int peer) {
  return {.group = kGroup,
          .sequence = 900,
          .kind = OpKind::kReceive,
          .dtype = DType::kI64,
          .reduction = {},
          .root = peer,
          .count = 3};
}

std::vector<uint64_t> sequences(const FlightRecorder& recorder) {
  std::vector<uint64_t> sequences;
  for (const FlightRecord& record : recorder.records()) {
    sequences.push_back(record.signature.sequence);
  }
  return sequences;
}

TEST(FlightRecorder, FollowsAnOperationToItsEnd) {
  FlightRecorder recorder(0, 2, 8);
  const uint64_t record = recorder.queued(all_reduce(0), "world", 3);
  FlightRecord now = recorder.records().at(0);
  EXPECT_EQ(now.signature, all_reduce(0));
  EXPECT_STREQ(now.group_name, "world");
  EXPECT_EQ(now.state, State::kQueued);
  EXPECT_EQ(now.tensors, 3u);
  EXPECT_GT(now.queued_ns, 0);
  recorder.started(record);
  recorder.awaits(record, 0b10);
  now = recorder.records().at(0);
  EXPECT_EQ(now.state, State::kStarted);
  EXPECT_EQ(now.awaited_ranks, 0b10u);
  EXPECT_GE(now.started_ns, now.queued_ns);
  recorder.ended(record, false);
  now = recorder.records().at(0);
  EXPECT_EQ(now.state, State::kDone);
  EXPECT_EQ(now.awaited_ranks, 0u);
  EXPECT_GE(now.ended_ns, now.started_ns);
}

TEST(FlightRecorder, AFailedOperationKeepsWhoWasAwaited) {
  FlightRecorder recorder(0, 2, 8);
  const uint64_t record = recorder.queued(all_reduce(0), "world");
  recorder.awaits(record, 0b10);
  recorder.ended(record, true);
  EXPECT_EQ(recorder.records().at(0).state, State::kFailed);
  EXPECT_EQ(recorder.records().at(0).awaited_ranks, 0b10u);
}

TEST(FlightRecorder, TheNewestOperationsAreRemembered) {
  FlightRecorder recorder(0, 2, 4);
  const uint64_t first = recorder.queued(all_reduce(0), "world");
  for (uint64_t i = 1; i < 11; ++i) recorder.queued(all_reduce(i), "world");
  EXPECT_THAT(sequences(recorder), ElementsAre(7, 8, 9, 10));
  EXPECT_EQ(recorder.recorded(), 11u);
  EXPECT_EQ(recorder.find(kGroup, 6), std::nullopt);
  EXPECT_EQ(recorder.find(kGroup, 7)->signature.sequence, 7u);
  // Updates of an operation that was overwritten do not change the record in its slot.
  const std::vector<FlightRecord> before = recorder.records();
  recorder.started(first);
  recorder.awaits(first, 1);
  recorder.ended(first, true);
  EXPECT_EQ(recorder.records(), before);
}

TEST(FlightRecorder, AGroupsNewestOperationIsKnownAfterItIsForgotten) {
  FlightRecorder recorder(0, 2, 4);
  EXPECT_EQ(recorder.newest(kGroup), std::nullopt);
  recorder.queued(all_reduce(41), "world");
  for (uint64_t i = 0; i < 10; ++i) recorder.queued(all_reduce(i, 7), "tp");
  EXPECT_EQ(recorder.newest(kGroup), 41u);
  (void)recorder.queued(all_reduce(40), "world");  // another thread's, which was late
  EXPECT_EQ(recorder.newest(kGroup), 41u);
  EXPECT_EQ(recorder.newest(7), 9u);
  EXPECT_EQ(recorder.newest(8), std::nullopt);
}

TEST(FlightRecorder, UnfinishedOperationsOfAGroupAreFoundOldestFirst) {
  FlightRecorder recorder(0, 2, 8);
  EXPECT_TRUE(recorder.unfinished(kGroup, 5).empty());
  const uint64_t done = recorder.queued(all_reduce(0), "world");
  const uint64_t started = recorder.queued(all_reduce(1), "world");
  recorder.queued(all_reduce(0, 7), "tp");
  recorder.queued(receive_from(1), "world");
  const uint64_t failed = recorder.queued(all_reduce(2), "world");
  recorder.queued(all_reduce(3), "world");
  recorder.ended(done, false);
  recorder.started(started);
  recorder.ended(failed, true);
  const auto sequences = [&](size_t most) {
    std::vector<uint64_t> found;
    for (const FlightRecord& record : recorder.unfinished(kGroup, most)) {
      found.push_back(record.signature.sequence);
    }
    return found;
  };
  EXPECT_THAT(sequences(5), ElementsAre(1, 3));
  EXPECT_THAT(sequences(1), ElementsAre(1));
}

TEST(FlightRecorder, SendsAndReceivesAreNotInAGroupsOrder) {
  FlightRecorder recorder(0, 2, 4);
  recorder.queued(all_reduce(2), "world");
  recorder.queued(receive_from(1), "world", 1, 77);
  EXPECT_EQ(recorder.newest(kGroup), 2u);
  EXPECT_EQ(recorder.find(kGroup, 900), std::nullopt);
  EXPECT_EQ(recorder.records().at(1).user_tag, 77u);
}

TEST(FlightRecorder, LongNamesAreCutBetweenCharacters) {
  FlightRecorder recorder(0, 1, 4);
  recorder.queued(all_reduce(0), "0123456789012345678901234567");
  recorder.queued(all_reduce(1), "012345678901234567890\u00e9\u00e9");
  recorder.queued(all_reduce(2), "0123456789012345678901\u00e9");
  const std::vector<FlightRecord> records = recorder.records();
  EXPECT_STREQ(records.at(0).group_name, "01234567890123456789012");
  EXPECT_STREQ(records.at(1).group_name, "012345678901234567890\u00e9");
  EXPECT_STREQ(records.at(2).group_name, "0123456789012345678901");
}

TEST(FlightRecorder, GroupsAreThoseAddedAndThoseUsed) {
  FlightRecorder recorder(0, 4, 8);
  recorder.add_group(kGroup, "world", {0, 1, 2, 3});
  recorder.add_group(9, "never used", {0, 2});
  recorder.queued(all_reduce(5, 7), "unknown");
  recorder.queued(all_reduce(3), "world");
  EXPECT_THAT(recorder.groups(), ElementsAre(FlightGroup{kGroup, "world", {0, 1, 2, 3}, 3},
                                             FlightGroup{9, "never used", {0, 2}, std::nullopt},
                                             FlightGroup{7, "unknown", {}, 5}));
}

TEST(FlightRecorder, WritesWhatItRemembers) {
  const train::TemporaryDirectory folder;
  FlightRecorder recorder(3, 8, 4, "2f81c0");
  recorder.add_group(kGroup, "world", {0, 1, 2, 3, 4, 5, 6, 7});
  for (uint64_t i = 0; i < 6; ++i) recorder.queued(all_reduce(i), "world");
  recorder.write(folder / "a/b", "rank 5 did not arrive");
  const FlightLog log = read_flight_log(folder / "a/b/flight.rank3.json");
  EXPECT_EQ(log.rank, 3);
  EXPECT_EQ(log.world_size, 8);
  EXPECT_EQ(log.start, "2f81c0");
  EXPECT_EQ(log.reason, "rank 5 did not arrive");
  EXPECT_EQ(log.process, getpid());
  EXPECT_FALSE(log.host.empty());
  EXPECT_EQ(log.recorded, 6u);
  EXPECT_EQ(log.records, recorder.records());
  EXPECT_EQ(log.groups, recorder.groups());
  EXPECT_GE(log.written_ns, log.records.back().queued_ns);
}

TEST(FlightRecorder, AWrittenFileIsReplacedAndNothingElseIsLeft) {
  const train::TemporaryDirectory folder;
  FlightRecorder recorder(0, 1, 4);
  recorder.write(folder.path(), "first");
  recorder.write(folder.path(), "second");
  EXPECT_EQ(read_flight_log(folder / "flight.rank0.json").reason, "second");
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(FlightRecorder, AFolderThatCannotBeWrittenIsNamed) {
  const train::TemporaryDirectory folder;
  train::put_file(folder / "file", "");
  const FlightRecorder recorder(0, 1, 4);
  expect_error<DataError>([&] { recorder.write(folder / "file", "x"); },
                          (folder / "file").string());
  // The name of the file is taken by a folder.
  std::filesystem::create_directories(folder / "there/flight.rank0.json");
  expect_error<DataError>([&] { recorder.write(folder / "there", "x"); },
                          "flight.rank0.json: Is a directory");
  const std::filesystem::directory_iterator files(folder / "there");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(FlightRecorder, ACapacityThatIsNoPowerOfTwoIsABug) {
  EXPECT_THROW(FlightRecorder(0, 1, 3), InternalError);
  EXPECT_THROW(FlightRecorder(0, 1, 0), InternalError);
}

TEST(FlightRecorder, ThreadsMayRecordAndReadAtTheSameTime) {
  constexpr uint64_t kOperations = 20'000;
  constexpr int kRecording = 2;
  FlightRecorder recorder(0, 2, 64);
  std::atomic<int> recording = kRecording;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kRecording; ++thread) {
    threads.emplace_back([&, group = static_cast<uint64_t>(thread)] {
      const std::string name = "group " + std::to_string(group);
      for (uint64_t i = 0; i < kOperations; ++i) {
        Signature signature = all_reduce(i, group);
        signature.count = static_cast<int64_t>(i * 2 + group);
        const uint64_t record = recorder.queued(signature, name);
        recorder.started(record);
        recorder.awaits(record, i);
        recorder.ended(record, true);
      }
      --recording;
    });
  }
  while (recording != 0) {
    for (const FlightRecord& record : recorder.records()) {
      const Signature& signature = record.signature;
      ASSERT_EQ(signature.count, static_cast<int64_t>(signature.sequence * 2 + signature.group));
      ASSERT_EQ(record.group_name, "group " + std::to_string(signature.group));
      if (record.state == State::kFailed) {
        ASSERT_EQ(record.awaited_ranks, signature.sequence);
      }
    }
    (void)recorder.find(0, kOperations / 2);
    (void)recorder.newest(1);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.recorded(), kRecording * kOperations);
  EXPECT_EQ(recorder.newest(0), kOperations - 1);
  EXPECT_EQ(recorder.newest(1), kOperations - 1);
  for (const FlightRecord& record : recorder.records()) EXPECT_EQ(record.state, State::kFailed);
}

TEST(FlightRecorder, KeepsWhatTheCallerSaysAnOperationIsFor) {
  FlightRecorder recorder(0, 2, 8);
  recorder.queued(all_reduce(0), "world");
  {
    const OperationLabel label = OperationLabel::bucket(3);
    recorder.queued(all_reduce(1), "world");
  }
  recorder.queued(all_reduce(2), "world");
  std::vector<std::string> labels;
  for (const FlightRecord& record : recorder.records()) labels.emplace_back(record.label);
  EXPECT_THAT(labels, ElementsAre("", "bucket 3", ""));
}

}  // namespace
}  // namespace lockstep::dist
