#include "dist/group/tcp_group.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store.h"
#include "dist/rendezvous/store_control.h"
#include "dist/rendezvous/store_gather.h"
#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/tcp_mesh.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/ddp/ranks.h"
#include "tests/dist/group/group_conformance.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A port of loopback that was free a moment ago.
uint16_t free_port() {
  Endpoint endpoint{"127.0.0.1", 0};
  (void)listen_at(endpoint);
  return endpoint.port;
}

Rendezvous rendezvous(int rank, int size, uint16_t port) {
  return {.rank = rank,
          .size = size,
          .address = fmt::format("127.0.0.1:{}", port),
          .job = "job-a",
          .secret = "open sesame"};
}

/// A variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

/// Runs `body(rank)` in a thread for each rank; returns what they threw.
std::vector<std::exception_ptr> on_threads(int size, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// Parameters: the case, the number of ranks, LOCKSTEP_SHM.
class TcpGroupCases : public testing::TestWithParam<std::tuple<size_t, int, const char*>> {};

TEST_P(TcpGroupCases, Hold) {
  const auto [index, size, shared_memory] = GetParam();
  const Variable shm("LOCKSTEP_SHM", shared_memory);
  const uint16_t port = free_port();
  expect_none(on_threads(size, [&, index = index, size = size](int rank) {
    const auto group = tcp_group(rendezvous(rank, size, port));
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(group->size(), size);
    group_cases()[index].run(*group);
  }));
}

INSTANTIATE_TEST_SUITE_P(Group, TcpGroupCases,
                         testing::Combine(testing::Range(size_t{0}, group_cases().size()),
                                          testing::Values(1, 2, 3, 4, 6),
                                          testing::Values("0", "1")),
                         [](const auto& info) {
                           return fmt::format("{}By{}{}",
                                              group_cases()[std::get<0>(info.param)].name,
                                              std::get<1>(info.param),
                                              *std::get<2>(info.param) == '0' ? "ByTcp" : "");
                         });

TEST(TcpGroup, TellsEachRankItsPlace) {
  const uint16_t port = free_port();
  expect_none(on_threads(3, [&](int rank) {
    RankPlace place;
    const auto communicator = tcp_communicator(rendezvous(rank, 3, port), {}, {}, 10s, &place);
    EXPECT_EQ(place.local_rank, rank);
    EXPECT_EQ(place.local_size, 3);
    EXPECT_EQ(place.host_rank, 0);
    EXPECT_EQ(place.host_count, 1);
  }));
}

TEST(TcpGroup, RanksMayEndInAnyOrderAndWaitForEachOther) {
  const uint16_t port = free_port();
  expect_none(on_threads(3, [&](int rank) {
    const auto group = tcp_group(rendezvous(rank, 3, port));
    group->barrier().wait();
    std::this_thread::sleep_for(rank * 30ms);
  }));
}

TEST(TcpGroup, AKilledRankIsNamedToTheOthers) {
  const uint16_t port = free_port();
  const auto start = Clock::now();
  const auto statuses = run_as_processes(3, [&](int rank, const AllGatherText&) {
    const auto group = tcp_group(rendezvous(rank, 3, port));
    group->barrier().wait();
    if (rank == 1) raise(SIGKILL);
    try {
      group->barrier().wait();
    } catch (const PeerLostError& error) {
      return std::string(error.what()).find("rank 1") != std::string::npos;
    }
    return false;
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[2], 0);
  EXPECT_LT(Clock::now() - start, 20s);
}

TEST(TcpGroup, RanksThatDifferAreRefusedWithTheValuesOfEach) {
  const uint16_t port = free_port();
  const auto errors = on_threads(3, [&](int rank) {
    (void)tcp_group(rendezvous(rank, 3, port), {}, rank == 2 ? "COLOR: red" : "COLOR: blue");
  });
  for (const auto& error : errors) {
    EXPECT_THAT(text_of(error), HasSubstr("ranks differ in COLOR: ranks 0, 1: blue; rank 2: red"));
  }
}

TEST(TcpGroup, ARankThatDoesNotComeIsNamedAtTheStartLimit) {
  const Variable limit("LOCKSTEP_START_LIMIT", "1");
  const uint16_t port = free_port();
  const auto errors = on_threads(2, [&](int rank) { (void)tcp_group(rendezvous(rank, 3, port)); });
  for (const auto& error : errors) EXPECT_THAT(text_of(error), HasSubstr("rank 2"));
}

TEST(TcpGroup, AnAddressWhereNobodyListensIsToldAtTheStartLimit) {
  const Variable limit("LOCKSTEP_START_LIMIT", "1");
  try {
    (void)tcp_group(rendezvous(1, 2, free_port()));
    FAIL() << "nothing was thrown";
  } catch (const TimeoutError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did not reach the store at 127.0.0.1:"));
  }
}

TEST(TcpGroup, ARankWithAWrongSecretOrOfAnotherJobIsRefusedAndTheOthersGoOn) {
  const uint16_t port = free_port();
  expect_none(on_threads(3, [&](int rank) {
    Rendezvous own = rendezvous(rank % 2, 2, port);
    if (rank == 2) {
      for (const bool secret : {true, false}) {
        Rendezvous other = rendezvous(1, 2, port);
        (secret ? other.secret : other.job) = "guessed";
        try {
          (void)tcp_group(other);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const DistError& error) {
          EXPECT_THAT(error.what(), HasSubstr(secret ? "does not know the secret of job \"job-a\""
                                                     : "it is of job \"guessed\""));
        }
      }
      own.rank = 1;
      (void)tcp_group(own);
    } else if (rank == 0) {
      (void)tcp_group(own);
    }
  }));
}

// The other rank must come within the limit, on a busy machine too, for rank 0 to tell of it.
TEST(TcpGroup, ARankStartedForAnotherNumberOfRanksIsRefused) {
  const Variable limit("LOCKSTEP_START_LIMIT", "3");
  const uint16_t port = free_port();
  const auto errors =
      on_threads(2, [&](int rank) { (void)tcp_group(rendezvous(rank, 2 + rank, port)); });
  EXPECT_THAT(text_of(errors[1]), HasSubstr("was started for a world of 3 ranks, the job has 2"));
  EXPECT_THAT(text_of(errors[0]), HasSubstr("was started for a world of 3 ranks, the job has 2"));
}

TEST(TcpGroup, TwoRanksOfOneNumberAreRefused) {
  const Variable limit("LOCKSTEP_START_LIMIT", "3");
  const uint16_t port = free_port();
  const auto errors =
      on_threads(3, [&](int rank) { (void)tcp_group(rendezvous(rank == 0 ? 0 : 1, 3, port)); });
  EXPECT_THAT(text_of(errors[1]) + text_of(errors[2]), HasSubstr("there is rank 1"));
}

/// Runs a sum on two ranks of a job whose rank 0 is at `host`.
void expect_sum_at(const std::string& host) {
  const uint16_t port = free_port();
  expect_none(on_threads(2, [&](int rank) {
    Rendezvous where = rendezvous(rank, 2, port);
    where.address = to_string(Endpoint{host, port});
    const auto group = tcp_group(where);
    const Tensor tensor = cpu_ones(10);
    group->all_reduce(tensor).wait();
    EXPECT_EQ(tensor.data<float>()[9], 2) << host;
  }));
}

TEST(TcpGroup, RanksMeetAtAnyNameOrAddressOfTheHost) {
  expect_sum_at("localhost");
  for (const std::string& address : host_addresses()) {
    if (address.find('%') == std::string::npos) expect_sum_at(address);
  }
  Endpoint v6{"::1", 0};
  try {
    (void)listen_at(v6);
  } catch (const BackendError&) {
    return;  // a host without IPv6
  }
  expect_sum_at("::1");
}

TEST(TcpGroup, RanksWithoutANumberGetOneEach) {
  const uint16_t port = free_port();
  std::mutex lock;
  std::set<int> ranks;
  expect_none(on_threads(3, [&](int) {
    const auto group = tcp_group(rendezvous(kAnyRank, 3, port));
    const Tensor tensor = cpu_ones(10);
    group->all_reduce(tensor).wait();
    EXPECT_EQ(tensor.data<float>()[9], 3);
    const std::lock_guard guard(lock);
    ranks.insert(group->rank());
  }));
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
}

TEST(TcpGroup, TheAddressIsFreeOnceAllHaveComeWhereThatIsAskedFor) {
  for (const bool frees : {false, true}) {
    Rendezvous where = rendezvous(0, 1, free_port());
    where.frees_address = frees;
    const auto communicator = tcp_communicator(where);
    Endpoint endpoint = parse_endpoint(where.address);
    if (frees) {
      EXPECT_NO_THROW((void)listen_at(endpoint));
    } else {
      EXPECT_THROW((void)listen_at(endpoint), AddressInUse);
    }
  }
}

/// Rank 0 of two, of a host of its own, played by the test up to where the ranks tell each other
/// how they are reached. Rank 1 is real.
class WithARealRank1 : public testing::Test {
 protected:
  void SetUp() override {
    const Rendezvous where{
        .rank = 1, .size = 2, .address = server_.address(), .job = "job-a", .secret = "sesame"};
    rank_1_ = std::async(std::launch::async, [where] { return tcp_communicator(where); });
    store_.join();
  }
  /// `names`: what rank 0 chooses, 32 characters that are public and 32 that are secret.
  void agree(const std::string& names) {
    StoreGather told(store_, "told");
    (void)told(told_at_start(""));
    (void)told(names);
    // The host, and nothing about memory that it shares with nobody.
    for (const char* text : {"a host of its own", "", ""}) (void)transport_(text);
  }

  StoreServer server_{{.job = "job-a", .secret = "sesame", .world_size = 2}};
  std::future<std::shared_ptr<Communicator>> rank_1_;
  Store store_{StoreOptions{.address = server_.address(),
                            .job = "job-a",
                            .secret = "sesame",
                            .rank = 0,
                            .world_size = 2}};
  StoreGather transport_{store_, "transport"};
};

TEST_F(WithARealRank1, ThePublicNameOfAStartTellsNothingOfTheSecretOfItsConnections) {
  const std::string name(32, 'n'), secret(32, 's');
  agree(name + secret);
  TcpMesh mesh(0, secret, false);
  const std::vector<std::string> where = transport_(mesh.description({"127.0.0.1"}));
  const auto sockets = mesh.connect({1}, where, {true, false}, Clock::now() + 30s);
  store_.barrier("connected");
  std::shared_ptr<Communicator> communicator = rank_1_.get();
  EXPECT_EQ(communicator->start_id(), name);
  std::thread end([&] { communicator.reset(); });
  store_.barrier("end");
  end.join();
}

TEST_F(WithARealRank1, ThatDoesNotReachRank0TellsItInItsOwnWords) {
  agree(std::string(64, 'n'));
  const StoreControl control(store_);
  (void)transport_("1");  // a port without an address
  EXPECT_THROW((void)rank_1_.get(), BackendError);
  while (!control.failure()) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(control.failure()->text, HasSubstr("rank 0 is not reached at any address"));
}

TEST(TcpGroup, SixteenRanksStartWithinASecond) {
  const uint16_t port = free_port();
  const auto start = Clock::now();
  expect_none(on_threads(16, [&](int rank) {
    const auto group = tcp_group(rendezvous(rank, 16, port));
    group->barrier().wait();
  }));
  // Machines that run other tests at the same time are slow; benchmarks/README.md has the figure.
  EXPECT_LT(Clock::now() - start, 5s);
}

}  // namespace
}  // namespace lockstep::dist
