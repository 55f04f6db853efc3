#include "launcher/launch/launch_output.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files/mapped_file.h"
#include "launcher/launch/launch_failure.h"
#include "launcher/launch/launch_leftovers.h"
#include "launcher/launch/output_splitter.h"
#include "launcher/launch/session_folder.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The lines split from `pieces`: "rank|text", or "rank!text" for errors.
std::vector<std::string> split(OutputTags tags, const std::vector<std::string>& pieces,
                               bool is_error = false) {
  std::vector<std::string> lines;
  OutputSplitter splitter(tags, is_error, [&](const OutputLine& line) {
    lines.push_back(std::to_string(line.rank) + (line.is_error ? "!" : "|") + line.text);
  });
  for (const std::string& piece : pieces) splitter.feed(piece);
  splitter.finish();
  return lines;
}

TEST(OutputSplitter, GivesRanksTheirLines) {
  EXPECT_THAT(split(OutputTags::kOpenMpi4,
                    {"[1,0]<stdout>:a\n[1,12]<stderr>:b c\n\n[1,1]<stdout>:\nmpirun: says\n"}),
              ElementsAre("0|a", "12!b c", "-1|", "1|", "-1|mpirun: says"));
  EXPECT_THAT(split(OutputTags::kOpenMpi5, {"[prterun-host-1-17@1,3]<stdout>:  a\n"}),
              ElementsAre("3| a"));
  EXPECT_THAT(split(OutputTags::kSlurm, {"0: a\n 3: b: c\n10:\nsrun: error: x\n"}),
              ElementsAre("0|a", "3|b: c", "10|", "-1|srun: error: x"));
  EXPECT_THAT(split(OutputTags::kNone, {"[1,1]<stdout>:a\nb"}, true),
              ElementsAre("0![1,1]<stdout>:a", "0!b"));
}

TEST(OutputSplitter, JoinsLinesWrittenInPieces) {
  EXPECT_THAT(split(OutputTags::kOpenMpi4, {"[1,0]<stdout>:part", "[1,1]<stdout>:other\n",
                                            "[1,0]<stdout>: whole\n[1,1]<stdout>:end"}),
              ElementsAre("1|other", "0|part whole", "1|end"));
}

TEST(OutputSplitter, LeavesWhatOnlyLooksLikeATag) {
  EXPECT_THAT(
      split(OutputTags::kOpenMpi4, {"[1,0]<stdout>:x[1] y[2,3] z[a,b]<stdout>:[\n[1,0]<st\n"}),
      ElementsAre("0|x[1] y[2,3] z[a,b]<stdout>:[", "-1|[1,0]<st"));
  EXPECT_THAT(split(OutputTags::kOpenMpi4, {"[1,0]<std"}), ElementsAre("-1|[1,0]<std"));
}

TEST(OutputSplitter, CutsLinesThatDoNotEnd) {
  const std::string long_line(200 * 1024, 'x');
  size_t total = 0;
  for (const std::string& line : split(OutputTags::kOpenMpi4, {"[1,0]<stdout>:" + long_line})) {
    EXPECT_EQ(line.substr(0, 2), "0|");
    total += line.size() - 2;
  }
  EXPECT_EQ(total, long_line.size());
}

RC_GTEST_PROP(OutputSplitter, DependsNotOnHowBytesArrive, ()) {
  const std::string text =
      "[1,0]<stdout>:first\n[1,1]<stderr>:a [b\n[1,0]<stdout>:pie[1,1]<stdout>:x\n"
      "[1,0]<stdout>:ce\n-----\nmpirun [0,1]\n[1,1]<stdout>:last";
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t size = *rc::gen::inRange<size_t>(1, 12);
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  RC_ASSERT(split(OutputTags::kOpenMpi4, pieces) == split(OutputTags::kOpenMpi4, {text}));
}

TEST(LaunchFailure, IsReadFromWhatLaunchersSay) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 11 (Segmentation "
       "fault).\n",
       "rank 1 on vm was ended by signal 11 (Segmentation fault)"},
      {"prterun noticed that process rank 12 with PID 4711 on node a-long.name exited on\nsignal 9 "
       "(Killed).\n",
       "rank 12 on a-long.name was ended by signal 9 (Killed); often"},
      {"mpirun detected that one or more processes exited with non-zero status, thus causing\nthe "
       "job to be terminated. The first process to do so was:\n\n  Process name: [[7036,1],3]\n  "
       "Exit code:    5\n",
       "rank 3 ended with exit status 5"},
      {"prterun detected that one or more processes exited with non-zero status,\nthus causing the "
       "job to be terminated. The first process to do so was:\n\n   Process name: "
       "[prterun-vm-17@1,0]\n   Exit code:    3\n",
       "rank 0 ended with exit status 3"},
      {"mpirun has exited due to process rank 1 with PID 0 on\nnode vm exiting improperly. There "
       "are three reasons this could occur:\n",
       "rank 1 on vm ended before the job was over"},
      {"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 6.\n",
       "rank 2 called MPI_Abort with 6"},
      {"mpirun was unable to launch the specified application as it could not access\nor execute "
       "an executable:\n\nExecutable: ./nothere\nNode: vm\n\nwhile attempting to start process "
       "rank "
       "0.\n",
       "vm has no program ./nothere"},
      {"ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[27,0],0] on node "
       "vm\n  Remote daemon: [[27,0],1] on node lsh1\n\nThis is usually due to a failure of the "
       "TCP network\n",
       "lsh1 is lost: mpirun no longer reaches it"},
      {"srun: error: node7: task 3: Exited with exit code 4",
       "rank 3 on node7 ended with exit "
       "status 4"},
      {"srun: error: node7: task 3: Killed", "rank 3 on node7 was ended by signal 9"},
      {"Primary job  terminated normally, but 1 process returned\na non-zero exit code.", ""},
  };
  for (const auto& [message, expected] : rows) {
    const auto failure = read_failure(message);
    ASSERT_TRUE(failure) << message;
    EXPECT_THAT(to_text(*failure), HasSubstr(expected)) << message;
    EXPECT_EQ(to_text(*failure).empty(), std::string(expected).empty());
  }
  for (const char* other : {"", "WARNING: no network", "srun: error: node7: out of paper",
                            "process rank", "Process name: Exit code:"}) {
    EXPECT_FALSE(read_failure(other)) << other;
  }
}

TEST(LaunchFailure, OfASlowRankIsReadFromItsError) {
  const auto slow = read_slow_rank(
      "SlowRankError: [train] rank 12 on lsh1 works 42 ms in a step, the slowest of the others 14",
      8);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 12);
  EXPECT_EQ(slow->host, "lsh1");
  EXPECT_EQ(slow->status, 8);
  EXPECT_TRUE(slow->slow);
  EXPECT_EQ(to_text(*slow), "rank 12 on lsh1 is too slow");
  for (const char* other : {"", "SlowRankError: something else", "rank 12 on lsh1 works 42 ms"}) {
    EXPECT_FALSE(read_slow_rank(other, 8)) << other;
  }
}

TEST(LaunchFailure, IsReadFromTheStatesOfRanks) {
  const std::string begin = "[vm:1] [[27,0],0] ";
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"ACTIVATE PROC [[27,1],3] STATE EXITED WITH NON-ZERO STATUS AT a/b.c:1746", "rank 3 "},
      {"ACTIVATE PROC [[27,1],0] STATE ABORTED BY SIGNAL AT a.c:1", "rank 0 "},
      {"ACTIVATE PROC [[27,1],1] STATE CALLED ABORT AT a.c:1", "rank 1 called MPI_Abort"},
      {"ACTIVATE PROC [[27,1],1] STATE TERMINATED WITHOUT SYNC AT a.c:1", "rank 1 ended before"},
  };
  for (const auto& [line, expected] : rows) {
    const auto state = read_state(begin + line);
    ASSERT_TRUE(state && state->failure) << line;
    EXPECT_THAT(to_text(*state->failure), HasSubstr(expected));
  }
  for (const char* line : {"ACTIVATE PROC [[27,1],1] STATE KILLED BY INTERNAL COMMAND AT a.c:1",
                           "ACTIVATE PROC [[27,1],1] STATE NORMALLY TERMINATED AT a.c:1",
                           "ACTIVATE JOB [27,1] STATE PENDING MAPPING AT a.c:1",
                           "state:base:check_job_complete on job [27,1]"}) {
    const auto state = read_state(begin + line);
    ASSERT_TRUE(state) << line;
    EXPECT_FALSE(state->failure || state->running) << line;
  }
  EXPECT_TRUE(read_state(begin + "ACTIVATE JOB [27,1] STATE RUNNING AT a.c:1")->running);
  EXPECT_FALSE(read_state("[vm:1] MCW rank 0 bound to socket 0"));
}

TEST(LaunchOutput, KeepsTheLastLinesOfEachRank) {
  LaunchOptions options;
  options.show_stdout = options.show_stderr = false;
  LaunchOutput output(options, false);
  for (int i = 0; i < 30; ++i) {
    output.take({0, false, "a" + std::to_string(i)});
    output.take({1, true, "b" + std::to_string(i)});
  }
  EXPECT_EQ(output.tail(0).size(), 20);
  EXPECT_EQ(output.tail(0).front(), "a10");
  EXPECT_EQ(output.tail(1).back(), "b29");
  EXPECT_THAT(output.tail(2), IsEmpty());
}

TEST(LaunchOutput, HoldsBackMessagesAboutFailuresAlone) {
  const std::string rule(74, '-');
  LaunchOutput output({}, false);
  testing::internal::CaptureStderr();
  for (const std::string& text :
       {rule, std::string("WARNING: no network"), rule, rule,
        std::string("Primary job  terminated normally, but 1 process returned"),
        std::string("a non-zero exit code."), rule, rule, std::string("  Process name: [[7,1],1]"),
        std::string("  Exit code:    3"), rule, std::string("mpirun: Forwarding signal 10 to job"),
        std::string("[vm:1] rank 0 bound to core 0")}) {
    output.take({-1, true, text});
  }
  output.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "WARNING: no network\n[vm:1] rank 0 bound to core 0\n");
  ASSERT_TRUE(output.failure());
  EXPECT_EQ(output.failure()->rank, 1);
  EXPECT_EQ(output.failure()->status, 3);
}

TEST(LaunchOutput, KnowsTheFirstFailureEvenIfOthersAreTold) {
  LaunchOutput output({}, false);
  const auto say = [&](const std::string& text) { output.take({-1, true, text}); };
  EXPECT_FALSE(output.ranks_run());
  say("[vm:1] [[27,0],0] ACTIVATE JOB [27,1] STATE RUNNING AT a.c:1");
  EXPECT_TRUE(output.ranks_run());
  say("[vm:1] [[27,0],0] ACTIVATE PROC [[27,1],1] STATE ABORTED BY SIGNAL AT a.c:1");
  say("mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).");
  say("[vm:1] [[27,0],0] ACTIVATE PROC [[27,1],0] STATE EXITED WITH NON-ZERO STATUS AT a.c:1");
  ASSERT_TRUE(output.failure());
  EXPECT_EQ(output.failure()->rank, 1);
  EXPECT_EQ(output.failure()->host, "vm");
  EXPECT_EQ(output.failure()->signal, 9);
}

TEST(LaunchLeftovers, OfOneJobAreRemoved) {
  const train::TemporaryDirectory folder;
  namespace fs = std::filesystem;
  const std::string top = "ompi.a.host." + std::to_string(::geteuid());
  fs::create_directories(folder / "shm");
  fs::create_directories(folder / (top + "/pid.17/0/0"));
  fs::create_directories(folder / (top + "/pid.18"));
  train::put_file(folder / (top + "/pid.17/contact.txt"), "1857421312.0;tcp://192.0.2.2:37963\n");
  for (const char* name :
       {"vader_segment.a.host.0.6eb60001.0", "vader_segment.a.host.0.6eb60002.11",
        "vader_segment.a.host.0.6eb70001.0", "other"}) {
    train::put_file(folder / (std::string("shm/") + name), "x");
  }
  remove_leftovers(17, {folder.path().string()}, (folder / "shm").string());
  EXPECT_FALSE(fs::exists(folder / (top + "/pid.17")));
  EXPECT_TRUE(fs::exists(folder / (top + "/pid.18")));
  EXPECT_FALSE(fs::exists(folder / "shm/vader_segment.a.host.0.6eb60001.0"));
  EXPECT_FALSE(fs::exists(folder / "shm/vader_segment.a.host.0.6eb60002.11"));
  EXPECT_TRUE(fs::exists(folder / "shm/vader_segment.a.host.0.6eb70001.0"));
  EXPECT_TRUE(fs::exists(folder / "shm/other"));
}

TEST(LaunchLeftovers, OfDeadJobsAreRemovedAndWhatAProcessHasMappedStays) {
  const train::TemporaryDirectory folder;
  const auto name = [](const std::string& host, int rank) {
    return fmt::format("vader_segment.{}.{}.6eb60001.{}", host, ::geteuid(), rank);
  };
  for (const std::string& file : {name("here", 0), name("here", 1), name("there", 0)}) {
    train::put_file(folder / file, "x");
  }
  const MappedFile mapped(folder / name("here", 1));
  remove_stale_segments("here", folder.path().string());
  EXPECT_TRUE(std::filesystem::exists(folder / name("here", 0))) << "it is new";
  remove_stale_segments("here", folder.path().string(), std::chrono::seconds(0));
  EXPECT_FALSE(std::filesystem::exists(folder / name("here", 0)));
  EXPECT_TRUE(std::filesystem::exists(folder / name("here", 1)));
  EXPECT_TRUE(std::filesystem::exists(folder / name("there", 0))) << "of another host";
}

TEST(SessionFolder, IsPrivateAndRemovesThoseThatNobodyHolds) {
  const train::TemporaryDirectory folder;
  std::filesystem::path abandoned;
  {
    const SessionFolder first(folder.path());
    EXPECT_EQ(std::filesystem::status(first.path()).permissions(),
              std::filesystem::perms::owner_all);
    abandoned = first.path();
    const SessionFolder second(folder.path());
    EXPECT_NE(second.path(), first.path());
    EXPECT_TRUE(std::filesystem::exists(first.path())) << "it is held";
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  std::filesystem::create_directory(abandoned);
  const SessionFolder third(folder.path());
  EXPECT_FALSE(std::filesystem::exists(abandoned));
}

TEST(LaunchOutput, ARankThatEndsBeforeMpiWhileAnotherUsesItBreaksTheStart) {
  const auto said = [](const std::vector<std::string>& states) {
    LaunchOutput output(LaunchOptions{}, false);
    for (const std::string& state : states) {
      output.take({-1, true, "[vm:1] [[27,0],0] ACTIVATE " + state + " AT a.c:1"});
    }
    return output.start_is_broken();
  };
  EXPECT_TRUE(
      said({"PROC [[27,1],1] STATE NORMALLY TERMINATED", "PROC [[27,1],0] STATE SYNC REGISTERED"}));
  EXPECT_FALSE(said(
      {"PROC [[27,1],1] STATE NORMALLY TERMINATED", "PROC [[27,1],0] STATE NORMALLY TERMINATED"}))
      << "a program without MPI";
  EXPECT_FALSE(said({"PROC [[27,1],0] STATE SYNC REGISTERED",
                     "PROC [[27,1],1] STATE EXITED WITH NON-ZERO STATUS",
                     "PROC [[27,1],1] STATE NORMALLY TERMINATED"}))
      << "a rank that failed";
  EXPECT_FALSE(
      said({"PROC [[27,1],1] STATE SYNC REGISTERED", "PROC [[27,1],0] STATE SYNC REGISTERED",
            "PROC [[27,1],1] STATE NORMALLY TERMINATED"}));
  EXPECT_FALSE(said({"JOB [27,1] STATE SYNC REGISTERED", "PROC [[27,1],1] STATE SYNC REGISTERED",
                     "PROC [[27,1],0] STATE NORMALLY TERMINATED"}));
}

TEST(LaunchOutput, EqualErrorsOfSeveralRanksAreShownOnceWithTheirNumbers) {
  LaunchOptions options;
  options.show_stdout = options.show_stderr = true;
  LaunchOutput output(options, false);
  const auto say = [&](int rank, const std::string& text) { output.take({rank, true, text}); };
  testing::internal::CaptureStderr();
  for (const int rank : {2, 0, 3}) {
    say(rank, "PeerLostError: [dist] rank 1 failed");
    say(rank, "  what to do");
  }
  say(1, "DataError: [shards] broken");
  say(4, "PeerLostError: [dist] rank 1 failed");  // without the second line
  ASSERT_TRUE(output.held_until());
  output.show_what_is_due(*output.held_until() - std::chrono::milliseconds(1));
  EXPECT_TRUE(output.held_until());
  output.show_what_is_due(*output.held_until());
  EXPECT_FALSE(output.held_until());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ranks 0, 2, 3: PeerLostError: [dist] rank 1 failed\n  what to do\n"
            "DataError: [shards] broken\nPeerLostError: [dist] rank 1 failed\n");

  testing::internal::CaptureStderr();
  say(0, "a line that is no error");
  say(0, "Error: one");
  output.finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a line that is no error\nError: one\n");
}

TEST(LaunchOutput, ErrorsWithTagsAreShownForEachRank) {
  LaunchOptions options;
  options.show_stderr = options.tag_output = true;
  LaunchOutput output(options, false);
  testing::internal::CaptureStderr();
  output.take({0, true, "Error: one"});
  output.take({1, true, "Error: one"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[1,0]<stderr>:Error: one\n[1,1]<stderr>:Error: one\n");
}

}  // namespace
}  // namespace lockstep::launcher
