// Tests of ranks connected by MPI. mpirun starts this program once per rank with one of the tests
// that are otherwise disabled.

#include "dist/transport/mpi_transport.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/transport/messages.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

/// Output of a program and its wait status, -1 if it could not be started.
struct Ended {
  int status = -1;
  std::string output;
};

Ended run(const std::vector<std::string>& command) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Ended result;
  char buffer[4096];
  for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    result.output.append(buffer, static_cast<size_t>(bytes));
  }
  close(ends[0]);
  if (error == 0) {
    EXPECT_EQ(waitpid(child, &result.status, 0), child);
  }
  return result;
}

std::vector<std::string> mpirun(int ranks, std::vector<std::string> options,
                                const std::string& test) {
  std::vector<std::string> command{"mpirun",          "-np",       std::to_string(ranks),
                                   "--oversubscribe", "--timeout", "60"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  command.push_back("--gtest_also_run_disabled_tests");
  command.push_back("--gtest_filter=" + test);
  return command;
}

class MpiTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_mpi()) GTEST_SKIP() << "built without MPI";
    if (kThreadSanitizer) GTEST_SKIP() << "MPI itself is not instrumented";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("LSAN_OPTIONS", "detect_leaks=0", 1);  // ignores leaks in MPI
    // Ranks run their test in every shard of this program.
    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    const Ended version = run({"mpirun", "--version"});
    if (version.status != 0 || version.output.find("Open MPI") == std::string::npos) {
      GTEST_SKIP() << "there is no mpirun of Open MPI";
    }
  }
};

// --- what a rank does ----------------------------------------------------------------------------

TEST(MpiRanks, DISABLED_Communicate) {
  const auto transport = connect_mpi(mpi_options());
  const int rank = transport->rank();
  const int size = transport->size();
  ASSERT_EQ(size, 3);
  ASSERT_GE(transport->tag_limit(), uint64_t{1} << 30);

  const auto texts = transport->all_gather_bytes(std::string(static_cast<size_t>(rank), 'x'), 20s);
  EXPECT_EQ(texts, (std::vector<std::string>{"", "x", "xx"}));

  for (uint32_t seed = 0; seed < 4; ++seed) exchange_randomly(*transport, seed, 150, 200'000);
  exchange_randomly(*transport, 100, 1000, 300);

  // A message longer than its buffer fails; the next one arrives.
  const int other = rank ^ 1;
  std::vector<std::byte> data(100);
  Message messages[2];
  for (Message& message : messages) {
    const size_t room = &message == messages ? 50 : 100;
    if (rank == 0) transport->send(other, 7, data.data(), 100, message);
    if (rank == 1) transport->receive(other, 7, data.data(), room, message);
  }
  if (rank < 2) {
    EXPECT_TRUE(drive(*transport, messages[0]));
    EXPECT_TRUE(drive(*transport, messages[1]));
    EXPECT_EQ(messages[0].state, rank == 0 ? Message::State::kDone : Message::State::kFailed);
    EXPECT_EQ(messages[1].state, Message::State::kDone) << messages[1].error;
    EXPECT_GT(messages[0].bytes, 50u);
  }

  // A receive without a sender can be cancelled, and does not affect later ones.
  if (rank < 2) {
    Message never;
    Message one;
    Message two;
    std::byte sent{5};
    std::byte got{0};
    transport->receive(other, 8, &sent, 1, never);
    transport->progress();
    transport->cancel(never);
    EXPECT_EQ(never.state, Message::State::kIdle);
    transport->receive(other, 9, &got, 1, one);
    transport->send(other, 9, &sent, 1, two);
    EXPECT_TRUE(drive(*transport, one));
    EXPECT_TRUE(drive(*transport, two));
    EXPECT_EQ(got, std::byte{5}) << one.error;
  }
  (void)transport->all_gather_bytes("the end", 20s);
}

TEST(MpiRanks, DISABLED_Wait) {
  const auto transport = connect_mpi(mpi_options());
  (void)transport->all_gather_bytes("", 20s);
  std::byte byte{};
  Message message;
  if (transport->rank() == 0) {
    drive_for(*transport, 500ms);
    transport->send(1, 1, &byte, 1, message);
    EXPECT_TRUE(drive(*transport, message));
  } else {
    timespec before{};
    timespec after{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    transport->receive(0, 1, &byte, 1, message);
    EXPECT_TRUE(drive(*transport, message));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    EXPECT_LT(static_cast<double>(after.tv_sec - before.tv_sec) +
                  1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec),
              0.15);
  }
  (void)transport->all_gather_bytes("the end", 20s);
}

TEST(MpiRanks, DISABLED_RefuseWhatMpiCannotSend) {
  const auto transport = connect_mpi(mpi_options());
  const int other = 1 - transport->rank();
  std::byte byte{};
  const size_t too_long = size_t{std::numeric_limits<int>::max()} + 1;
  for (const auto& [tag, bytes] :
       {std::pair{uint64_t{1}, too_long}, std::pair{transport->tag_limit(), size_t{1}}}) {
    Message messages[2];
    transport->send(other, tag, &byte, bytes, messages[0]);
    transport->receive(other, tag, &byte, bytes, messages[1]);
    for (const Message& message : messages) {
      EXPECT_TRUE(drive(*transport, message));
      EXPECT_EQ(message.state, Message::State::kFailed);
      EXPECT_THAT(message.error, HasSubstr("MPI takes no message"));
    }
  }
}

TEST(MpiRanks, DISABLED_AbandonAndFail) {
  const auto transport = connect_mpi(mpi_options());
  std::byte byte{};
  Message message;
  transport->receive(1 - transport->rank(), 1, &byte, 1, message);
  transport->abandon();
  EXPECT_TRUE(drive(*transport, message));
  EXPECT_EQ(message.state, Message::State::kFailed);
  EXPECT_THROW((void)transport->all_gather_bytes("", 1s), BackendError);
  // Exits without MPI_Finalize, which mpirun must detect, and without waiting for the other rank,
  // which is still running.
  if (transport->rank() == 1) std::this_thread::sleep_for(30s);
}

TEST(MpiRanks, DISABLED_OneIsKilled) {
  const auto transport = connect_mpi(mpi_options());
  std::byte byte{};
  Message message;
  transport->receive(1 - transport->rank(), 1, &byte, 1, message);
  if (transport->rank() == 1) {
    transport->progress();
    raise(SIGKILL);
  }
  const bool ended = drive(*transport, message);
  // mpirun may kill this rank before it prints.
  std::cout << (ended ? message.error : "nothing happened") << std::endl;
}

// --- the jobs ------------------------------------------------------------------------------------

TEST_F(MpiTransportTest, RanksOfOneNodeCommunicateThroughSharedMemory) {
  const Ended job = run(mpirun(3, {}, "MpiRanks.DISABLED_Communicate"));
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("1 test from 1 test suite ran"));
}

TEST_F(MpiTransportTest, RanksThatOnlyTcpConnectsCommunicateThroughMpi) {
  const Ended job = run(mpirun(
      3, {"-x", "LOCKSTEP_SHM=0", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"},
      "MpiRanks.DISABLED_Communicate"));
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("1 test from 1 test suite ran"));
}

TEST_F(MpiTransportTest, RanksOfOneNodeCommunicateThroughMpisOwnSharedMemory) {
  const Ended job = run(mpirun(3, {"-x", "LOCKSTEP_SHM=0", "--mca", "btl", "vader,self"},
                               "MpiRanks.DISABLED_Communicate"));
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("1 test from 1 test suite ran"));
}

TEST_F(MpiTransportTest, WaitingForAMessageOverTcpUsesLittleTime) {
  const Ended job = run(mpirun(
      2, {"-x", "LOCKSTEP_SHM=0", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"},
      "MpiRanks.DISABLED_Wait"));
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("1 test from 1 test suite ran"));
}

TEST_F(MpiTransportTest, MessagesThatMpiCannotSendFailAtOnce) {
  const Ended job =
      run(mpirun(2, {"-x", "LOCKSTEP_SHM=0"}, "MpiRanks.DISABLED_RefuseWhatMpiCannotSend"));
  EXPECT_EQ(job.status, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr("1 test from 1 test suite ran"));
}

TEST_F(MpiTransportTest, AnAbandonedJobEndsWithoutWaitingAndWithAnError) {
  const auto start = std::chrono::steady_clock::now();
  const Ended job = run(mpirun(2, {"-x", "LOCKSTEP_SHM=0"}, "MpiRanks.DISABLED_AbandonAndFail"));
  EXPECT_NE(job.status, 0) << job.output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
  EXPECT_THAT(job.output, Not(HasSubstr("FAILED"))) << job.output;
}

TEST_F(MpiTransportTest, AKilledRankEndsTheJob) {
  const auto start = std::chrono::steady_clock::now();
  const Ended job = run(mpirun(2, {}, "MpiRanks.DISABLED_OneIsKilled"));
  EXPECT_NE(job.status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 25s);
  EXPECT_THAT(job.output, Not(HasSubstr("nothing happened")));
}

TEST(MpiOptions, AreTakenFromTheEnvironment) {
  const auto options_with = [](const char* value) {
    value == nullptr ? unsetenv("LOCKSTEP_SHM") : setenv("LOCKSTEP_SHM", value, 1);
    return mpi_options();
  };
  EXPECT_FALSE(options_with("0").shared_memory);
  EXPECT_TRUE(options_with("1").shared_memory);
  EXPECT_TRUE(options_with("").shared_memory);
  EXPECT_THROW((void)options_with("no"), ConfigError);
  EXPECT_TRUE(options_with(nullptr).shared_memory);
}

TEST(MpiTransport, WithoutMpiItSaysSo) {
  if (has_mpi()) GTEST_SKIP() << "built with MPI";
  try {
    (void)connect_mpi({});
    FAIL() << "nothing was thrown";
  } catch (const BackendError& error) {
    EXPECT_THAT(error.what(), HasSubstr("built without MPI"));
  }
}

}  // namespace
}  // namespace lockstep::dist
