#include "dist/rendezvous/door.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "dist/rendezvous/newcomer.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store.h"
#include "dist/rendezvous/store_server.h"
#include "tests/core/base/comes_true.h"
#include "tests/core/expect_error.h"
#include "tests/dist/rendezvous/raw_client.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The door of a job of two ranks, and processes that knock there.
class DoorOfAJob : public testing::Test {
 protected:
  DoorOfAJob() {
    Endpoint endpoint{"127.0.0.1", 0};
    (void)listen_at(endpoint);
    address_ = to_string(endpoint);
  }

  void open() {
    door_ = std::make_unique<Door>(DoorOptions{.address = address_,
                                               .job = "job-a",
                                               .secret = "open sesame",
                                               .early = {{"config", "seed: 1\nname: a\n"}},
                                               .late = {{"hash of its data", "77"}},
                                               .terms = {4, 3}});
    door_->tell(2, 3);
  }
  NewcomerOptions options() const {
    return {.address = address_,
            .job = "job-a",
            .secret = "open sesame",
            .facts = {{"config", "seed: 1\nname: a\n"}},
            .limit = 20s};
  }
  /// What a process hears that waits at `place`.
  std::future<Newcomer::Outcome> come(const std::string& place, const std::string& data = "77",
                                      const Newcomer::OnGiven& on_given = {}) {
    return std::async(std::launch::async, [this, place, data, on_given] {
      Newcomer newcomer(options());
      return newcomer.wait(
          place, {{"hash of its data", data}}, [](int64_t, int64_t) {}, on_given);
    });
  }
  bool all_is_taken() const {
    return comes_true([&] { return door_->given().left == 0; });
  }
  bool are_ready(int count) const {
    return comes_true([&] { return door_->ready() == count; });
  }

  std::string address_;
  std::unique_ptr<Door> door_;
};

TEST_F(DoorOfAJob, CallsThoseThatWaitInTheOrderInWhichTheyCame) {
  open();
  auto first = come("place 1");
  ASSERT_TRUE(are_ready(1));
  auto second = come("place 2");
  auto third = come("place 2");
  ASSERT_TRUE(are_ready(3));
  EXPECT_THAT(door_->call(2, 5, {"key", "place 0"}), ElementsAre("place 1", "place 2"));
  EXPECT_EQ(door_->ready(), 1);
  const Newcomer::Outcome called = first.get();
  ASSERT_TRUE(called.call);
  EXPECT_EQ(called.call->number, 5);
  EXPECT_THAT(called.call->texts, ElementsAre("key", "place 0", "place 1", "place 2"));
  EXPECT_THAT(door_->call(7, 6, {}), ElementsAre("place 2"));
  for (auto* each : {&second, &third}) EXPECT_EQ(each->get().call->number, 6);
  EXPECT_TRUE(door_->call(1, 7, {}).empty());
}

TEST_F(DoorOfAJob, WaitsForProcessesThatAreOnTheirWay) {
  open();
  door_->await(0, 20s);
  door_->await(1, 0s);  // nobody comes
  EXPECT_EQ(door_->ready(), 0);
  auto first = come("place 1");
  auto second = come("place 2");
  door_->await(2, 20s);
  EXPECT_EQ(door_->ready(), 2);
  door_.reset();
  for (auto* each : {&first, &second}) EXPECT_FALSE(each->get().call);
}

TEST_F(DoorOfAJob, TellsItsTermsAndHowManyRanksThereAre) {
  open();
  std::promise<void> heard;
  auto waiting = std::async(std::launch::async, [&] {
    Newcomer newcomer(options());
    EXPECT_THAT(newcomer.terms(), ElementsAre(4, 3));
    std::vector<int64_t> told;
    (void)newcomer.wait("", {{"hash of its data", "77"}}, [&](int64_t ranks, int64_t most) {
      EXPECT_EQ(most, 3);
      told.push_back(ranks);
      if (ranks == 3) heard.set_value();
    });
    return told;
  });
  ASSERT_TRUE(are_ready(1));
  door_->tell(3, 3);
  heard.get_future().wait();
  door_.reset();
  EXPECT_THAT(waiting.get(), ElementsAre(2, 3));
}

TEST_F(DoorOfAJob, TellsWhereAnotherRankWouldOpenIts) {
  open();
  door_->tell(2, 3, {"10.0.0.1:4000", "[fd00::2]:4000"});
  Newcomer newcomer(options());
  EXPECT_THAT(newcomer.doors(), ElementsAre());
  auto waiting = std::async(std::launch::async, [&] {
    return newcomer.wait("place 1", {{"hash of its data", "77"}}, [](int64_t, int64_t) {});
  });
  ASSERT_TRUE(are_ready(1));
  // What it was told it has read before it reads that it is called.
  (void)door_->call(1, 2, {});
  ASSERT_TRUE(waiting.get().call);
  EXPECT_THAT(newcomer.doors(), ElementsAre("10.0.0.1:4000", "[fd00::2]:4000"));
}

TEST_F(DoorOfAJob, IsFoundWhereTheLostLeaderSaidThatItWouldBe) {
  open();
  Endpoint free{"127.0.0.1", 0};
  (void)listen_at(free);
  Endpoint of_another{"127.0.0.1", 0};
  (void)listen_at(of_another);
  const Door another({.address = to_string(of_another), .job = "job-b", .secret = "open barley"});
  ASSERT_TRUE(comes_true([&] { return another.is_open(); }));
  NewcomerOptions late = options();
  late.address = to_string(free);
  late.doors = {to_string(free), "no-such-host.invalid:4000", to_string(of_another), address_};
  Newcomer newcomer(late);
  EXPECT_THAT(newcomer.terms(), ElementsAre(4, 3));
  EXPECT_EQ(newcomer.doors(), late.doors) << "until it is told others";
}

TEST_F(DoorOfAJob, RefusesThoseThatAreNotOfTheJob) {
  open();
  const auto refusal = [](const NewcomerOptions& other) {
    try {
      const Newcomer newcomer(other);
    } catch (const MismatchError& error) {
      return std::string("mismatch: ") + error.what();
    } catch (const DistError& error) {
      return std::string(error.what());
    }
    return std::string("admitted");
  };
  EXPECT_EQ(refusal(options()), "admitted");
  NewcomerOptions other = options();
  other.secret = "open barley";
  EXPECT_THAT(refusal(other), HasSubstr("it does not know the secret of job \"job-a\""));
  other = options();
  other.job = "job-b";
  EXPECT_THAT(refusal(other), HasSubstr("it is of another job, this is job \"job-a\""));
  other = options();
  other.facts[0].text = "seed: 2\nname: a\n";
  EXPECT_THAT(refusal(other), HasSubstr("mismatch: "));
  EXPECT_THAT(refusal(other), HasSubstr("has another config than the ranks of this job: expected "
                                        "\"seed: 1\", got \"seed: 2\""));
  other.facts.clear();
  EXPECT_THAT(refusal(other), HasSubstr("All ranks must run the same build"));
}

TEST_F(DoorOfAJob, RefusesThoseThatBuiltSomethingElse) {
  open();
  auto other = come("", "78");
  expect_error<MismatchError>(
      [&] { (void)other.get(); },
      "has another hash of its data than the ranks of this job: expected \"77\"");
  EXPECT_EQ(door_->ready(), 0);
}

TEST_F(DoorOfAJob, TellsARankThatComesTooLateHowToJoin) {
  open();
  const StoreOptions rank{
      .address = address_, .job = "job-a", .secret = "open sesame", .rank = 1, .world_size = 2};
  expect_error<DistError>([&] { const Store store(rank); },
                          "the job at this address trains already. A process joins it with --join");
}

TEST_F(DoorOfAJob, IsNotHeldUpByStrangers) {
  open();
  ASSERT_TRUE(comes_true([&] { return door_->is_open(); }));
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(
        connect_to(parse_endpoint(address_), std::chrono::steady_clock::now() + 5s).socket);
    const std::string text = i % 2 == 0 ? "GET / HTTP/1.1\r\n\r\n" : "";
    if (!text.empty()) (void)::send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  auto waiting = come("place 1");
  ASSERT_TRUE(are_ready(1));
  EXPECT_THAT(door_->call(5, 2, {}), ElementsAre("place 1"));
  EXPECT_TRUE(waiting.get().call);
}

TEST_F(DoorOfAJob, ManyStrangersDoNotTakeThePlaceOfThoseThatWait) {
  open();
  auto waiting = come("place 1");
  ASSERT_TRUE(are_ready(1));
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(
        connect_to(parse_endpoint(address_), std::chrono::steady_clock::now() + 5s).socket);
  }
  // The oldest of them make way for the newest.
  EXPECT_TRUE(is_ended(strangers[0]));
  EXPECT_EQ(door_->ready(), 1);
  EXPECT_THAT(door_->call(1, 2, {}), ElementsAre("place 1"));
  EXPECT_TRUE(waiting.get().call);
}

TEST_F(DoorOfAJob, TellsAProcessNothingTwice) {
  open();
  std::atomic<int> told = 0;
  auto waiting = std::async(std::launch::async, [&] {
    Newcomer newcomer(options());
    return newcomer.wait("", {{"hash of its data", "77"}}, [&](int64_t, int64_t) { ++told; });
  });
  ASSERT_TRUE(are_ready(1));
  // It is looked for every half second, and is told the same each time.
  std::this_thread::sleep_for(2 * kJoinLook);
  (void)door_->call(1, 2, {});
  EXPECT_TRUE(waiting.get().call);
  EXPECT_EQ(told, 1);
}

TEST(ANewcomer, DoesNotWaitForANameThatIsWrong) {
  NewcomerOptions options{.address = "no host has such a name:1", .job = "job-a", .limit = 20s};
  EXPECT_THROW((void)Newcomer(options), UnknownHost);
  options.host_may_come = true;
  options.limit = 50ms;
  EXPECT_THROW((void)Newcomer(options), TimeoutError);
}

TEST_F(DoorOfAJob, DoesNotCallAProcessThatHasEnded) {
  open();
  {
    Newcomer gone(options());
    // Ends as it hears for the first time that it has to wait.
    struct Ended {};
    EXPECT_THROW(
        (void)gone.wait("", {{"hash of its data", "77"}}, [](int64_t, int64_t) { throw Ended(); }),
        Ended);
  }
  EXPECT_TRUE(are_ready(0));
  auto waiting = come("place 1");
  ASSERT_TRUE(are_ready(1));
  EXPECT_THAT(door_->call(2, 2, {}), ElementsAre("place 1"));
  (void)waiting.get();
}

TEST_F(DoorOfAJob, GivesAllThatItHasBeforeItCalls) {
  open();
  std::vector<std::string> taken;
  auto first = come("place 1", "77", [&](const std::string& part) { taken.push_back(part); });
  ASSERT_TRUE(are_ready(1));
  auto second = come("place 2");
  ASSERT_TRUE(are_ready(2));
  EXPECT_EQ(door_->given().processes, 0);
  EXPECT_EQ(door_->begin_giving(1), 1);
  EXPECT_EQ(door_->ready(), 1);
  EXPECT_EQ(door_->given().processes, 1);
  std::vector<std::string> parts;
  for (size_t i = 0; i < 20; ++i) parts.emplace_back((i % 3) << 20, static_cast<char>('a' + i));
  door_->give({"one", ""});
  door_->give(parts);
  EXPECT_THAT(door_->call(2, 5, {"key"}), ElementsAre("place 1")) << "the other is given nothing";
  EXPECT_EQ(door_->given().processes, 0);
  const Newcomer::Outcome called = first.get();
  ASSERT_TRUE(called.call);
  EXPECT_EQ(called.call->number, 5);
  EXPECT_THAT(called.call->texts, ElementsAre("key", "place 1"));
  parts.insert(parts.begin(), {"one", ""});
  EXPECT_TRUE(taken == parts);
  EXPECT_THAT(door_->call(1, 6, {}), ElementsAre("place 2"));
  EXPECT_TRUE(second.get().call);
}

TEST_F(DoorOfAJob, GivesTheSameToSeveral) {
  open();
  std::vector<std::string> taken[2];
  std::vector<std::future<Newcomer::Outcome>> waiting;
  for (auto& each : taken) {
    waiting.push_back(come("", "77", [&](const std::string& part) { each.push_back(part); }));
  }
  ASSERT_TRUE(are_ready(2));
  EXPECT_EQ(door_->begin_giving(3), 2);
  door_->give({"one", "two"});
  EXPECT_EQ(door_->call(2, 2, {}).size(), 2);
  for (auto& each : waiting) EXPECT_TRUE(each.get().call);
  for (const auto& each : taken) EXPECT_THAT(each, ElementsAre("one", "two"));
}

TEST_F(DoorOfAJob, GivesEachSomethingOfItsOwn) {
  open();
  std::vector<std::string> taken[3];
  std::vector<std::future<Newcomer::Outcome>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(
        come("", "77", [&taken, i](const std::string& part) { taken[i].push_back(part); }));
    ASSERT_TRUE(are_ready(i + 1));
  }
  EXPECT_EQ(door_->begin_giving(2), 2);
  door_->give_each({"one"});
  door_->give({"of both"});
  door_->give_each({"two", "three", "of nobody"});
  EXPECT_EQ(door_->call(3, 2, {}).size(), 2);
  EXPECT_EQ(door_->call(3, 4, {}).size(), 1);
  for (auto& each : waiting) EXPECT_TRUE(each.get().call);
  EXPECT_THAT(taken[0], ElementsAre("one", "of both", "two"));
  EXPECT_THAT(taken[1], ElementsAre("of both", "three"));
  EXPECT_THAT(taken[2], ElementsAre());
}

TEST_F(DoorOfAJob, MayBeAtAPortThatIsOpen) {
  OpenPort port(/*local=*/true);
  NewcomerOptions way = options();
  way.address = to_string(endpoints_of(port.description(), true)[0]);
  Door door({.job = "job-a", .secret = "open sesame"}, std::move(port));
  EXPECT_TRUE(door.is_open());
  auto waiting = std::async(std::launch::async, [&] {
    way.facts = {};
    return Newcomer(way).wait("place 1", {}, [](int64_t, int64_t) {});
  });
  ASSERT_TRUE(comes_true([&] { return door.ready() == 1; }));
  EXPECT_FALSE(door.has_ended());
  EXPECT_THAT(door.call(1, 2, {}), ElementsAre("place 1"));
  EXPECT_TRUE(waiting.get().call);
  door.close(JoinEnd::kFinished);
  EXPECT_TRUE(comes_true([&] { return door.has_ended(); }));
}

TEST_F(DoorOfAJob, IsLeftByAProcessThatDoesNotGoOn) {
  open();
  std::atomic<bool> goes_on = true;
  NewcomerOptions way = options();
  way.goes_on = [&] { return goes_on.load(); };
  auto waiting = std::async(std::launch::async, [&] {
    return Newcomer(way).wait("", {{"hash of its data", "77"}}, [](int64_t, int64_t) {});
  });
  ASSERT_TRUE(are_ready(1));
  goes_on = false;
  EXPECT_FALSE(waiting.get().call);
  EXPECT_TRUE(are_ready(0));
  door_.reset();
  expect_error<TimeoutError>([&] { Newcomer never(way); }, "no job that can be joined");
}

TEST_F(DoorOfAJob, KnowsHowMuchIsStillToBeTaken) {
  open();
  std::promise<void> goes_on;
  auto waiting =
      come("place 1", "77",
           [&, gate = goes_on.get_future().share()](const std::string&) { gate.wait(); });
  ASSERT_TRUE(are_ready(1));
  door_->begin_giving(1);
  door_->give({"1234", "56"});
  EXPECT_EQ(door_->given().left, 6);
  door_->give({"789"});
  EXPECT_EQ(door_->given().left, 9);
  goes_on.set_value();
  EXPECT_TRUE(all_is_taken());
  EXPECT_EQ(door_->given().processes, 1);
  (void)door_->call(1, 2, {});
  EXPECT_TRUE(waiting.get().call);
}

TEST_F(DoorOfAJob, GivesNothingToAProcessThatHasEnded) {
  open();
  struct Ended {};
  auto gone = come("", "77", [](const std::string&) { throw Ended(); });
  ASSERT_TRUE(are_ready(1));
  door_->begin_giving(1);
  door_->give({std::string(16 << 20, 'a'), std::string(16 << 20, 'b')});
  EXPECT_THROW((void)gone.get(), Ended);
  EXPECT_TRUE(comes_true([&] { return door_->given().processes == 0; }));
  EXPECT_TRUE(door_->call(1, 2, {}).empty());
}

TEST_F(DoorOfAJob, ProcessesThatAreGivenNoMoreWaitOn) {
  open();
  std::vector<std::string> taken;
  auto waiting = come("place 1", "77", [&](const std::string& part) { taken.push_back(part); });
  ASSERT_TRUE(are_ready(1));
  door_->begin_giving(1);
  door_->give({"one"});
  ASSERT_TRUE(all_is_taken());
  door_->end_giving();
  EXPECT_EQ(door_->given().processes, 0);
  EXPECT_EQ(door_->ready(), 1);
  door_->give({"two"});
  EXPECT_EQ(door_->begin_giving(1), 1);
  door_->give({"three"});
  EXPECT_THAT(door_->call(1, 2, {}), ElementsAre("place 1"));
  EXPECT_TRUE(waiting.get().call);
  EXPECT_THAT(taken, ElementsAre("one", "three"));
}

TEST_F(DoorOfAJob, TellsThoseThatAreGivenSomethingHowTheJobEnds) {
  open();
  auto waiting = come("");
  ASSERT_TRUE(are_ready(1));
  door_->begin_giving(1);
  door_->give(std::vector<std::string>(50, std::string(1 << 20, 'a')));
  door_->close(JoinEnd::kStopped);
  door_.reset();
  const Newcomer::Outcome outcome = waiting.get();
  EXPECT_FALSE(outcome.call);
  EXPECT_EQ(outcome.end, JoinEnd::kStopped);
}

TEST_F(DoorOfAJob, TellsHowTheJobEnds) {
  for (const JoinEnd end : {JoinEnd::kFinished, JoinEnd::kStopped, JoinEnd::kFailed}) {
    open();
    auto waiting = come("");
    ASSERT_TRUE(are_ready(1));
    if (end != JoinEnd::kFailed) door_->close(end);
    door_.reset();
    const Newcomer::Outcome outcome = waiting.get();
    EXPECT_FALSE(outcome.call);
    EXPECT_EQ(outcome.end, end);
  }
}

TEST_F(DoorOfAJob, IsLookedForWhileTheStoreOfTheStartIsThere) {
  auto server = std::make_unique<StoreServer>(StoreServerOptions{.address = address_,
                                                                 .job = "job-a",
                                                                 .secret = "open sesame",
                                                                 .world_size = 1,
                                                                 .frees_address = true});
  auto waiting = come("place 1");
  open();
  Store store({.address = address_, .job = "job-a", .secret = "open sesame", .world_size = 1});
  ASSERT_TRUE(are_ready(1)) << "the store has left the address once all ranks had come";
  EXPECT_THAT(server->refusals(), ElementsAre());
  (void)door_->call(1, 1, {});
  EXPECT_TRUE(waiting.get().call);
}

TEST_F(DoorOfAJob, IsMissedOnceTheLimitHasPassed) {
  NewcomerOptions soon = options();
  soon.limit = 10ms;
  expect_error<TimeoutError>([&] { const Newcomer newcomer(soon); },
                             "no job that can be joined at " + address_);
}

}  // namespace
}  // namespace lockstep::dist
