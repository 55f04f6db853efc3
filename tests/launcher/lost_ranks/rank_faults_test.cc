// Training jobs when one of their ranks ends, stops or fails.

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/launcher/lost_ranks/faulty_job.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kData = 3;
constexpr int kCommunication = 5;

class RankFaults : public FaultyJob {
 protected:
  RankFaults() { put_job("run.txtpb"); }

  static std::string fault_plugin() {
#ifdef LOCKSTEP_TEST_PLUGINS
    return LOCKSTEP_TEST_PLUGINS "/librank_fault.so";
#else
    return "";
#endif
  }
  /// Starts a job with the faults of tests/plugins/rank_fault.cc.
  Launched start_with_faults(const std::string& faults, const std::string& more = "") const {
    return start(fmt::format("-x RANK_FAULT={} run.txtpb --run-dir run --load '{}' {}", faults,
                             fault_plugin(), more));
  }
  /// Starts a job in which `rank` fails in its 20th forward.
  Launched start_with_fault(int rank, const std::string& what) const {
    return start_with_faults(fmt::format("{}:relu:20:{}", rank, what));
  }
  /// Number of ports at which the process listens, at `address` (hexadecimal) if it is not empty.
  static int ports_of(pid_t process, const std::string& address) {
    std::set<std::string> sockets;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), ignored)) {
      sockets.insert(std::filesystem::read_symlink(entry.path(), ignored).string());
    }
    int found = 0;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
      std::istringstream lines(file_content(table));
      for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
        if (word.size() < 10 || word[3] != "0A") continue;  // a listening socket
        const bool matches = address.empty() || word[1].starts_with(address + ":");
        if (matches && sockets.contains("socket:[" + word[9] + "]")) ++found;
      }
    }
    return found;
  }
  /// The losses of all steps, as text.
  std::vector<std::string> losses(const std::string& folder) const {
    const std::string text = file_content(folder_ / (folder + "/metrics.jsonl"));
    const std::regex number("\"loss\":([-0-9.e+]+)");
    std::vector<std::string> result;
    for (std::sregex_iterator match(text.begin(), text.end(), number), end; match != end; ++match) {
      result.push_back((*match)[1]);
    }
    return result;
  }
};

TEST_F(RankFaults, OneThatDiesAtItsStartIsNamedWithTheSignal) {
  for (const auto& [signal, name] : {std::pair{SIGKILL, "Killed"}, {SIGSEGV, "Segmentation"}}) {
    Launched launched =
        start(each_rank(fmt::format("if [ $R = 1 ]; then kill -{} $$; fi", signal)));
    const Result result = end_within(launched, 30s);
    EXPECT_EQ(result.status, 128 + signal) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 "));
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("signal {} ({}", signal, name)));
  }
}

TEST_F(RankFaults, OneThatCrashesInForwardIsNamedWithTheSignal) {
  Launched launched = start_with_fault(1, "segv");
  const Result result = end_within(launched, 30s);
  EXPECT_EQ(result.status, 128 + SIGSEGV) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 "));
  EXPECT_THAT(result.errors, HasSubstr("signal 11 (Segmentation fault)"));
}

TEST_F(RankFaults, OneThatCrashesInACollectiveIsNamedAndTheStoppedOneGoesToo) {
  Launched launched = start("run.txtpb --run-dir run");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[0], SIGSTOP);
  // Makes sure that rank 1 waits in a collective.
  ASSERT_TRUE(launched.says("rank 1: "));
  ::kill(ranks[1], SIGSEGV);
  const Result result = end_within(launched, 30s);
  EXPECT_EQ(result.status, 128 + SIGSEGV) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 "));
  EXPECT_THAT(result.errors, HasSubstr("rank 0 has not answered for "));
}

TEST_F(RankFaults, OneThatIsKilledInAnyPhaseOfAStepIsNamedAndTheOthersEnd) {
  // Four hidden layers with one bucket each: calls 21 to 24 belong to the sixth step.
  const std::string layers =
      "--set model.mlp.hidden_widths=[32,32,32,32] "
      "--set parallel.bucket_mib=0.001 --set parallel.first_bucket_mib=0.001";
  for (const int rank : {0, 1}) {
    const auto faults = {
        fmt::format("{}:relu:22:kill", rank),
        // In backward: when no bucket of a hidden layer was launched, when some were, when all but
        // one.
        fmt::format("{}:threshold_backward:21:kill", rank),
        fmt::format("{}:threshold_backward:23:kill", rank),
        fmt::format("{}:threshold_backward:24:kill", rank),
        // Waiting for the other rank's last buckets, with all of its own in flight.
        fmt::format("{}:threshold_backward:24:sleep:800,{}:threshold_backward:24:kill:400",
                    1 - rank, rank),
        // Between the all-reduce and the update: in the norm of all gradients.
        fmt::format("{}:_block_square_sums:6:kill", rank),
    };
    for (const std::string& fault : faults) {
      Launched launched = start_with_faults(fault, layers);
      const Result result = end_within(launched, 30s);
      EXPECT_EQ(result.status, 128 + SIGKILL) << fault << "\n" << result.errors;
      EXPECT_THAT(result.errors, HasSubstr(fmt::format("lockstep launch: rank {} ", rank)));
      EXPECT_THAT(result.errors, HasSubstr("signal 9 (Killed"));
      EXPECT_LE(losses("run").size(), 5U) << fault;
      std::filesystem::remove_all(folder_ / "run");
    }
  }
}

TEST_F(RankFaults, OneThatExitsAsIfAllWereWellIsAFailure) {
  for (const int rank : {0, 1}) {
    Launched launched = start_with_fault(rank, "exit");
    const Result result = end_within(launched, 30s);
    EXPECT_THAT(result.status, Not(AnyOf(0, 75))) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("lockstep launch: rank {} ", rank)));
    EXPECT_THAT(result.errors, HasSubstr("ended before the job was over, without MPI_Finalize"));
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RankFaults, WhatOneThrowsIsShownByItAndEndsTheOthers) {
  for (const int rank : {0, 1}) {
    Launched launched = start_with_fault(rank, "throw");
    const Result result = end_within(launched, 30s);
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("\nError: [relu] the fault that was asked for"));
    EXPECT_THAT(result.errors,
                HasSubstr(fmt::format("lockstep launch: rank {} ended with exit status 1", rank)));
    EXPECT_THAT(result.errors, HasSubstr("what each rank was waiting for: lockstep trace run\n"));
    EXPECT_EQ(run("trace run").status, 0);
    std::filesystem::remove_all(folder_ / "run");
  }
}

/// How often `part` is in `text`.
int times_in(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

TEST_F(RankFaults, TheLeaderThatIsKilledIsSucceededByOneOfTheOthers) {
  for (const std::string transport : {"tcp", "mpi"}) {
    Launched launched = Launched(
        fmt::format("--transport {} -np 4 --oversubscribe -x RANK_FAULT=0:relu:20:kill run.txtpb "
                    "--run-dir run --load '{}'",
                    transport, fault_plugin()),
        folder_.path(), {{"TMPDIR", (folder_ / "tmp").string()}});
    const Result result = end_within(launched, 30s);
    EXPECT_EQ(result.status, 128 + SIGKILL) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 0 "));
    EXPECT_THAT(result.errors, Not(HasSubstr("could not be saved")));
    const int saves = times_in(result.errors, "saved the state after step 19 in place of rank 0");
    // mpirun may end the others first.
    EXPECT_THAT(saves, transport == "mpi" ? AnyOf(0, 1) : AnyOf(1, 1)) << result.errors;
    if (saves == 1) {
      EXPECT_EQ(run("checkpoint verify run").status, 0);
    }
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RankFaults, ALeaderThatEndsByItselfIsNotSucceeded) {
  // It saves the state, or knows why not.
  for (const char* more : {"", "--set parallel.strategy=FULL_SHARD"}) {
    Launched launched = start_with_faults("0:relu:20:throw", more);
    const Result result = end_within(launched, 30s);
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_THAT(result.errors, Not(HasSubstr("in place of rank 0")));
    EXPECT_TRUE(file_content(folder_ / "run/run.lock").ends_with(", ended"));
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RankFaults, ALeaderThatIsStoppedKeepsItsRun) {
  Launched launched = start("run.txtpb --run-dir run --set parallel.timeout_seconds=4");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[0], SIGSTOP);
  const Result result = end_within(launched, 40s);
  EXPECT_EQ(result.status, kCommunication) << result.errors;
  EXPECT_THAT(result.errors, Not(HasSubstr("in place of rank 0")));
}

TEST_F(RankFaults, ASuccessorThatCannotSaveChangesNoStatus) {
  Launched launched = start(
      "--transport tcp -x RANK_FAULT=0:_block_square_sums:2000:kill run.txtpb --run-dir run "
      "--load '" +
      fault_plugin() + "'");
  EXPECT_TRUE(comes_true([&] { return !losses("run").empty(); })) << "no step";
  put_file(folder_ / "run/checkpoints", "in the way");
  const Result result = end_within(launched, 40s);
  EXPECT_EQ(result.status, 128 + SIGKILL) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 1: the state after step 1999 could not be saved: "));
  EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 0 "));
}

TEST_F(RankFaults, BadDataOfOneIsToldOnceWithTheStatusOfData) {
  put_file(folder_ / "run.txtpb",
           "model { gpt2 { vocab_size: 256 context_length: 8 layers: 1 heads: 1 width: 8 } }\n"
           "data { shards { train: \"tokens.bin\" format: NANOGPT } }\n"
           "train { steps: 100000000 batch_size: 2 log_every: 100000000 }\n"
           "checkpoint { every_steps: 0 }\n");
  for (const int bad : {0, 1}) {
    for (const int rank : {0, 1}) {
      const std::string folder = fmt::format("of{}", rank);
      std::filesystem::create_directories(folder_ / folder);
      put_file(folder_ / (folder + "/tokens.bin"), std::string(8192, '\0'));
      std::filesystem::copy_file(folder_ / "run.txtpb", folder_ / (folder + "/run.txtpb"),
                                 std::filesystem::copy_options::overwrite_existing);
    }
    Launched launched = start(each_rank("cd of$R"));
    EXPECT_TRUE(comes_true([&] {
      return !file_content(folder_ / "of0/run/metrics.jsonl").empty();
    })) << "no step";
    // Ranks compare their data at the start, so the file goes bad later: tokens outside the
    // vocabulary in its second half, in place, as the rank has it mapped.
    {
      std::fstream tokens(folder_ / fmt::format("of{}/tokens.bin", bad),
                          std::ios::in | std::ios::out | std::ios::binary);
      tokens.seekp(4096);
      tokens << std::string(4096, '\xff');
    }
    const Result result = end_within(launched, 30s);
    EXPECT_EQ(result.status, kData) << result.errors;
    EXPECT_THAT(result.errors,
                HasSubstr(fmt::format("lockstep launch: rank {} ended with exit status 3", bad)));
    int shown = 0;
    std::istringstream lines(result.errors);
    for (std::string line; std::getline(lines, line);) {
      // launch repeats a rank's last lines with an indent.
      if (line.starts_with("DataError: ") && says(line, "of the file is 65535")) ++shown;
    }
    EXPECT_EQ(shown, 1) << result.errors;
    std::filesystem::remove_all(folder_ / "of0/run");
  }
}

TEST_F(RankFaults, WhatAllOfThemSayIsShownOnceWithTheirNumbers) {
  // Ranks of different seeds; launch reads the config of rank 0 alone.
  for (const int rank : {0, 1}) {
    std::filesystem::create_directories(folder_ / fmt::format("of{}", rank));
    put_job(fmt::format("of{}/run.txtpb", rank), fmt::format("seed: {}\n", rank));
  }
  Launched launched = start(each_rank("cd of$R"));
  const Result result = end_within(launched, 30s);
  EXPECT_EQ(result.status, kCommunication) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("ranks 0, 1: MismatchError: [train] rank 1 has another config than rank "
                        "0: expected \"seed: 0\""));
  EXPECT_THAT(result.errors, Not(HasSubstr("\nMismatchError")));
}

TEST_F(RankFaults, OneThatIsStoppedForAWhileIsNamedAndChangesNoLoss) {
  const std::string more = " --set train.steps=4000";
  Launched clean = start("run.txtpb --run-dir clean" + more);
  const Result expected = end_within(clean, 50s);
  ASSERT_EQ(expected.status, 0) << expected.errors;
  EXPECT_THAT(expected.errors, Not(HasSubstr("has not answered")));

  Launched launched = start("run.txtpb --run-dir run" + more);
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[1], SIGSTOP);
  std::this_thread::sleep_for(2s);
  ::kill(ranks[1], SIGCONT);
  const Result result = end_within(launched, 50s);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("rank 0: "));
  EXPECT_THAT(result.errors, HasSubstr("s so far; rank 1 has not answered for "));
  EXPECT_THAT(result.errors, HasSubstr(" has ended after "));
  EXPECT_EQ(losses("clean").size(), 4000U);
  EXPECT_EQ(losses("run"), losses("clean"));
}

TEST_F(RankFaults, OneThatIsStoppedForEverEndsTheJobAtTheTimeout) {
  for (const int stopped : {0, 1}) {
    Launched launched = start("run.txtpb --run-dir run --set parallel.timeout_seconds=4");
    const std::vector<pid_t> ranks = wait_for_a_step(launched);
    ASSERT_EQ(ranks.size(), 2U);
    ::kill(ranks[static_cast<size_t>(stopped)], SIGSTOP);
    const Result result = end_within(launched, 40s);
    EXPECT_EQ(result.status, kCommunication) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("TimeoutError: "));
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("; rank {} does not answer", stopped)));
    EXPECT_FALSE(any_runs(ranks));
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(RankFaults, OneThatNeverComesIsWaitedForAsLongAsTheStartMayTake) {
  // The launcher keeps its own limit of two minutes: mpirun may need more than a second.
  Launched launched =
      start(each_rank("export LOCKSTEP_START_LIMIT=1\nif [ $R = 1 ]; then exec sleep 100; fi"));
  const Result result = end_within(launched, 40s);
  EXPECT_EQ(result.status, kCommunication) << result.errors;
  EXPECT_THAT(result.errors,
              HasSubstr("TimeoutError: [dist] this rank is not connected with the others after"));
}

TEST_F(RankFaults, OneThatEndsBeforeMpiStartsIsNamedAtOnceAndNotThoseThatWaitForIt) {
  // The start limit is two minutes. mpirun itself notices only an end that comes after the other
  // rank's MPI_Init.
  for (const char* instead : {"exit 0", "sleep 3; exit 0", "exit 3"}) {
    Launched launched = start(each_rank(fmt::format("if [ $R = 1 ]; then {}; fi", instead)));
    const Result result = end_within(launched, 40s);
    EXPECT_EQ(result.status, std::string(instead) == "exit 3" ? 3 : 1) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("lockstep launch: rank 1 ")) << instead;
    EXPECT_THAT(result.errors, Not(HasSubstr("lockstep launch: rank 0 "))) << instead;
  }
}

TEST_F(RankFaults, AJobOfOneHostHasAFolderOfItsOwnAndRanksThatOnlyThisHostReaches) {
  Launched launched = start("run.txtpb --run-dir run");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tmp")) {
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_all) << entry.path();
    EXPECT_TRUE(entry.path().filename().string().starts_with("lockstep-launch.")) << entry.path();
    ++folders;
  }
  EXPECT_EQ(folders, 1);
  for (const pid_t rank : ranks) {
    EXPECT_EQ(ports_of(rank, "0100007F"), ports_of(rank, "")) << "a port for other hosts";
  }
  launched.signal(SIGTERM);
  EXPECT_EQ(end_within(launched, 30s).status, 75);
}

TEST_F(RankFaults, OneThatIsStoppedAtTheEndDoesNotHoldTheOthersForEver) {
  Launched launched =
      start("run.txtpb --run-dir run --steps 2000 --set parallel.timeout_seconds=4");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_TRUE(comes_true([&] {
    return std::filesystem::exists(folder_ / "run/model.safetensors");
  })) << "no end";
  ::kill(ranks[1], SIGSTOP);
  EXPECT_TRUE(comes_true([&] { return !any_runs({ranks[0]}); })) << "it is held";
  // If the other had nothing more to send, rank 0 has ended well, and nobody ends a job for a rank
  // that its user stopped.
  ::kill(ranks[1], SIGCONT);
  const Result result = end_within(launched, 40s);
  EXPECT_NE(result.status, 75) << result.errors;  // 0 if it had left before
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(RankFaults, OneThatIsStoppedDoesNotOutliveALaunchThatIsToldToEnd) {
  Launched launched = start("--grace 1 run.txtpb --run-dir run");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks[1], SIGSTOP);
  launched.signal(SIGTERM);
  const Result result = end_within(launched, 30s);
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.errors;
  EXPECT_FALSE(any_runs(ranks));
}

TEST_F(RankFaults, ASecondJobInTheirRunDirectoryIsToldWhoIsThereAndDisturbsNothing) {
  const std::string line =
      "run.txtpb --run-dir run --set parallel.strategy=FULL_SHARD --set checkpoint.every_steps=50";
  Launched launched = start(line);
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  Launched second = start(line);
  const Result refused = end_within(second, 30s);
  EXPECT_EQ(refused.status, 2) << refused.errors;
  EXPECT_THAT(refused.errors, HasSubstr(fmt::format("pid {})", ranks[0])));
  const size_t before = losses("run").size();
  EXPECT_TRUE(comes_true([&] { return losses("run").size() > before; })) << "it stands still";
  launched.signal(SIGTERM);
  EXPECT_EQ(end_within(launched, 30s).status, 75);
  EXPECT_EQ(run("checkpoint verify run").status, 0);
}

TEST_F(RankFaults, TheyEndWithALaunchThatIsKilled) {
  Launched launched = start("run.txtpb --run-dir run");
  const std::vector<pid_t> ranks = wait_for_a_step(launched);
  ASSERT_EQ(ranks.size(), 2U);
  launched.signal(SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !any_runs(ranks); }));
  EXPECT_EQ(launched.end().status, 128 + SIGKILL);
}

TEST_F(RankFaults, TooFewDescriptorsAreAnErrorThatSaysSo) {
  Launched launched = start(each_rank("ulimit -n 20", "--set train.steps=20"));
  const Result result = end_within(launched, 30s);
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("Too many open files"));
  EXPECT_THAT(result.errors, Not(HasSubstr("was ended by signal")));

  // Whether this many are enough depends on the libraries.
  Launched next = start(each_rank("ulimit -n 32", "--set train.steps=20"));
  const Result second = end_within(next, 30s);
  if (second.status != 0) {
    EXPECT_THAT(second.errors, HasSubstr("Too many open files"));
  }
  EXPECT_THAT(second.errors, Not(HasSubstr("was ended by signal")));
}

TEST_F(RankFaults, SharedMemoryThatIsFullCrashesNothing) {
  if (shell("unshare -m true").status != 0) GTEST_SKIP() << "may not mount";
  // The test's own folder may be in the memory that the mount hides.
  const train::TemporaryDirectory seen(std::filesystem::temp_directory_path());
  std::filesystem::copy(folder_.path(), seen.path(), std::filesystem::copy_options::recursive);
  put_file(seen / "full.sh",
           "mount -t tmpfs -o size=64k tmpfs /dev/shm && dd if=/dev/zero of=/dev/shm/fill bs=4k "
           "2>dd; df --output=avail /dev/shm | tail -n 1 >avail; exec \"$@\"\n");
  const Result result = shell(fmt::format(
      "cd '{}' && TMPDIR=\"$PWD/tmp\" timeout 50 unshare -m sh full.sh '{}/lockstep' launch "
      "--allow-run-as-root -np 2 --oversubscribe run.txtpb --run-dir run --steps 20",
      seen.path().string(), LOCKSTEP_BIN_DIR));
  EXPECT_EQ(std::atoi(file_content(seen / "avail").c_str()), 0);
  EXPECT_TRUE(std::filesystem::exists(seen / "avail"));
  EXPECT_THAT(result.errors, Not(HasSubstr("signal 7")));
  EXPECT_EQ(result.status, 0) << result.errors;  // our memory is not in /dev/shm
}

}  // namespace
}  // namespace lockstep::launcher
