#include "dist/rendezvous/store_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::dist {
namespace {

using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A store table with recorded answers and a simulated clock.
class Bench {
 public:
  explicit Bench(int size)
      : table(size, [this](int rank, StoreMessage answer) {
          answers[{rank, answer.id}] = std::move(answer);
        }) {}

  void come(int rank) { table.came(rank, "host" + std::to_string(rank), 100 + rank); }
  void ask(int rank, uint64_t id, Kind kind, std::vector<std::string> texts = {},
           std::vector<int64_t> numbers = {}) {
    table.request(rank, {kind, id, std::move(numbers), std::move(texts)}, now);
  }
  /// "ok: value", "timeout: ...", "lost: ...", "error: ...", or nullopt while there is no answer.
  std::optional<std::string> answer(int rank, uint64_t id) const {
    const auto found = answers.find({rank, id});
    if (found == answers.end()) return std::nullopt;
    switch (static_cast<StoreStatus>(found->second.numbers[0])) {
      case StoreStatus::kOk:
        return "ok: " + found->second.texts[0];
      case StoreStatus::kTimeoutError:
        return "timeout: " + found->second.texts[0];
      case StoreStatus::kPeerLostError:
        return "lost: " + found->second.texts[0];
      default:
        return "error: " + found->second.texts[0];
    }
  }
  std::string said(int rank, uint64_t id) const { return answer(rank, id).value_or("nothing"); }

  StoreTable::Time now{};
  std::map<std::pair<int, uint64_t>, StoreMessage> answers;
  StoreTable table;
};

TEST(StoreTable, AGetIsAnsweredWhenTheKeyIsSet) {
  Bench bench(2);
  bench.come(0);
  bench.come(1);
  bench.ask(0, 1, Kind::kGet, {"k"}, {1000});
  EXPECT_EQ(bench.answer(0, 1), std::nullopt);
  bench.ask(1, 1, Kind::kSet, {"k", "v"});
  EXPECT_EQ(bench.said(0, 1), "ok: v");
  EXPECT_EQ(bench.said(1, 1), "ok: ");
  EXPECT_EQ(bench.table.next_deadline(), std::nullopt);
}

TEST(StoreTable, AWaitIsAnsweredWithItsLastKeyHoweverOftenItNamesOne) {
  Bench bench(1);
  bench.come(0);
  bench.ask(0, 1, Kind::kWait, {"a", "b", "a"}, {1000});
  bench.ask(0, 2, Kind::kSet, {"a", ""});
  EXPECT_EQ(bench.answer(0, 1), std::nullopt);
  bench.ask(0, 3, Kind::kAdd, {"b"}, {1});
  EXPECT_EQ(bench.said(0, 1), "ok: ");
}

TEST(StoreTable, ATimeoutNamesTheMissingKeysAndTheAbsentRanks) {
  Bench bench(4);
  bench.come(0);
  bench.come(1);
  bench.table.left(1);
  bench.table.refused("the connection from 10.0.0.9:1 was refused: it is of job \"b\".");
  bench.ask(0, 1, Kind::kWait, {"a", "b"}, {2000});
  bench.ask(0, 2, Kind::kSet, {"a", "1"});
  bench.now += milliseconds(1999);
  bench.table.expire(bench.now);
  EXPECT_EQ(bench.answer(0, 1), std::nullopt);
  bench.now += milliseconds(1);
  EXPECT_EQ(bench.table.next_deadline(), bench.now);
  bench.table.expire(bench.now);
  EXPECT_EQ(bench.said(0, 1),
            "timeout: [store] nobody set \"b\" within 2 s. Never connected: ranks 2, 3. rank 1 "
            "(host host1, pid 101) has left. Besides, the connection from 10.0.0.9:1 was refused: "
            "it is of job \"b\".");
}

TEST(StoreTable, ABarrierNamesThoseThatAreHereButHaveNotCome) {
  Bench bench(3);
  for (int rank : {0, 1, 2}) bench.come(rank);
  bench.ask(0, 1, Kind::kBarrier, {"init"}, {500});
  bench.ask(1, 1, Kind::kBarrier, {"init"}, {9000});
  bench.now += milliseconds(500);
  bench.table.expire(bench.now);
  EXPECT_THAT(bench.said(0, 1),
              AllOf(HasSubstr("timeout: [store] barrier \"init\": 2 of 3 ranks came within 0.5 s."),
                    HasSubstr("rank 2 (host host2, pid 102) is connected but has not come")));
  EXPECT_EQ(bench.answer(1, 1), std::nullopt);

  // Rank 0 timed out, so rank 2's arrival alone does not complete the barrier.
  bench.ask(2, 1, Kind::kBarrier, {"init"}, {9000});
  EXPECT_EQ(bench.answer(1, 1), std::nullopt);
  bench.ask(0, 2, Kind::kBarrier, {"init"}, {9000});
  EXPECT_EQ(bench.said(0, 2), "ok: ");
  EXPECT_EQ(bench.said(1, 1), "ok: ");
  EXPECT_EQ(bench.said(2, 1), "ok: ");
}

TEST(StoreTable, ARankIsAtABarrierOnce) {
  Bench bench(2);
  bench.come(0);
  bench.ask(0, 1, Kind::kBarrier, {"b"}, {1000});
  bench.ask(0, 2, Kind::kBarrier, {"b"}, {1000});
  EXPECT_THAT(bench.said(0, 2), HasSubstr("error: [store] rank 0 (host host0, pid 100) is at"));
}

TEST(StoreTable, ABarrierEndsWhereARankHasLeft) {
  Bench bench(3);
  for (int rank : {0, 1, 2}) bench.come(rank);
  bench.ask(0, 1, Kind::kBarrier, {"b"}, {1000});
  bench.table.left(2);
  EXPECT_THAT(bench.said(0, 1),
              HasSubstr("lost: [store] barrier \"b\" cannot be complete: rank 2"));
  bench.ask(1, 1, Kind::kBarrier, {"b"}, {1000});
  EXPECT_THAT(bench.said(1, 1), HasSubstr("rank 2 (host host2, pid 102) has left"));
}

TEST(StoreTable, JoinWaitsForTheLastRank) {
  Bench bench(3);
  bench.come(0);
  bench.ask(0, 1, Kind::kJoin, {}, {1000});
  bench.come(2);
  bench.ask(2, 1, Kind::kJoin, {}, {10});
  bench.now += milliseconds(10);
  bench.table.expire(bench.now);
  EXPECT_EQ(bench.said(2, 1),
            "timeout: [store] not all 3 ranks joined the job within 0.01 s. Never connected: rank "
            "1.");
  EXPECT_EQ(bench.answer(0, 1), std::nullopt);
  bench.come(1);
  EXPECT_EQ(bench.said(0, 1), "ok: ");
  bench.ask(1, 1, Kind::kJoin, {}, {1000});
  EXPECT_EQ(bench.said(1, 1), "ok: ");
}

TEST(StoreTable, ALostRankIsTheFailureThatAllWhoWaitAreTold) {
  Bench bench(3);
  for (int rank : {0, 1, 2}) bench.come(rank);
  bench.ask(0, 1, Kind::kGet, {"k"}, {1000});
  bench.ask(1, 1, Kind::kBarrier, {"b"}, {1000});
  bench.ask(2, 1, Kind::kBarrier, {"b"}, {1000});
  bench.table.lost(1, "is lost: nobody knows why");
  ASSERT_TRUE(bench.table.failure());
  EXPECT_EQ(bench.table.failure()->rank, 1);
  EXPECT_EQ(bench.table.failure()->text, "rank 1 (host host1, pid 101) is lost: nobody knows why.");
  EXPECT_THAT(bench.said(0, 1), HasSubstr("lost: [store] the job has failed: rank 1 (host"));
  EXPECT_THAT(bench.said(2, 1), HasSubstr("lost: "));
  EXPECT_EQ(bench.answer(1, 1), std::nullopt);  // rank 1 is lost: it gets no answer
  bench.table.lost(2, "later");
  EXPECT_EQ(bench.table.failure()->rank, 1);

  // Existing keys can still be read; a wait for a missing key fails.
  bench.ask(0, 2, Kind::kSet, {"k", "v"});
  bench.ask(0, 3, Kind::kGet, {"k"}, {1000});
  bench.ask(0, 4, Kind::kGet, {"other"}, {1000});
  EXPECT_EQ(bench.said(0, 3), "ok: v");
  EXPECT_THAT(bench.said(0, 4), HasSubstr("lost: "));
}

TEST(StoreTable, SumsAreOfNumbersWithin64Bits) {
  Bench bench(1);
  bench.come(0);
  bench.ask(0, 1, Kind::kAdd, {"n"}, {-5});
  bench.ask(0, 2, Kind::kAdd, {"n"}, {INT64_MIN});
  bench.ask(0, 3, Kind::kSet, {"text", "12x"});
  bench.ask(0, 4, Kind::kAdd, {"text"}, {1});
  bench.ask(0, 5, Kind::kAdd, {"n"}, {7});
  EXPECT_EQ(bench.said(0, 1), "ok: -5");
  EXPECT_THAT(bench.said(0, 2), HasSubstr("error: [store] cannot add"));
  EXPECT_THAT(bench.said(0, 4), HasSubstr("no number"));
  EXPECT_EQ(bench.said(0, 5), "ok: 2");
}

TEST(StoreTable, RequestsOfWrongFormAreAnErrorOfTheirsAlone) {
  Bench bench(1);
  bench.come(0);
  bench.ask(0, 1, Kind::kSet, {"k"});
  bench.ask(0, 2, Kind::kGet, {"k"});
  bench.ask(0, 3, Kind::kWelcome, {"k"}, {1});
  bench.ask(0, 4, Kind::kWait, {}, {1});
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_THAT(bench.said(0, id), HasSubstr("error: [store] the server does not understand"));
  }
}

TEST(StoreTable, TimeoutsBelowZeroAndBeyondAllTimeAreBounded) {
  Bench bench(1);
  bench.now = StoreTable::Time(std::chrono::hours(24));
  bench.come(0);
  bench.ask(0, 1, Kind::kGet, {"k"}, {INT64_MIN});
  bench.ask(0, 2, Kind::kGet, {"k"}, {INT64_MAX});
  bench.table.expire(bench.now);
  EXPECT_THAT(bench.said(0, 1), HasSubstr("timeout: "));
  EXPECT_EQ(bench.answer(0, 2), std::nullopt);
  EXPECT_GT(*bench.table.next_deadline(), bench.now);
}

TEST(StoreTable, ATimeoutTellsTheLastFourThatWereRefused) {
  Bench bench(1);
  bench.come(0);
  for (const char* text : {"a.", "b.", "c.", "d.", "e."}) bench.table.refused(text);
  bench.ask(0, 1, Kind::kGet, {"k"}, {0});
  bench.table.expire(bench.now);
  EXPECT_EQ(bench.said(0, 1),
            "timeout: [store] nobody set \"k\" within 0 s. Besides, b. And c. And d. And e.");
}

TEST(StoreTable, ATimeoutNamesEightKeysAndEightRanksAndCountsTheOthers) {
  Bench bench(12);
  for (int rank = 0; rank < 12; ++rank) bench.come(rank);
  const auto keys = [](int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(std::string(1, static_cast<char>('a' + i)));
    return names;
  };
  bench.ask(0, 1, Kind::kWait, keys(8), {0});
  bench.ask(0, 2, Kind::kWait, keys(10), {0});
  bench.table.expire(bench.now);
  const std::string eight = R"("a", "b", "c", "d", "e", "f", "g", "h")";
  EXPECT_EQ(bench.said(0, 1), "timeout: [store] nobody set " + eight + " within 0 s.");
  EXPECT_EQ(bench.said(0, 2), "timeout: [store] nobody set " + eight + ", 2 more within 0 s.");

  for (const int rank : {1, 3, 5}) bench.ask(rank, 3, Kind::kBarrier, {"b"}, {9000});
  bench.ask(0, 3, Kind::kBarrier, {"b"}, {0});
  bench.table.expire(bench.now);
  std::string absent;
  for (const int rank : {2, 4, 6, 7, 8, 9, 10, 11}) {
    absent += " rank " + std::to_string(rank) + " (host host" + std::to_string(rank) + ", pid " +
              std::to_string(100 + rank) + ") is connected but has not come" +
              (rank < 11 ? "," : ".");
  }
  EXPECT_EQ(bench.said(0, 3),
            "timeout: [store] barrier \"b\": 4 of 12 ranks came within 0 s." + absent);
  bench.ask(1, 4, Kind::kBarrier, {"c"}, {0});
  bench.table.expire(bench.now);
  EXPECT_THAT(bench.said(1, 4), HasSubstr("has not come, 3 more so."));
}

TEST(StoreTable, WaitsEndInTheOrderOfTheirDeadlines) {
  Bench bench(2);
  bench.come(0);
  bench.come(1);
  const StoreTable::Time start = bench.now;
  bench.ask(0, 1, Kind::kGet, {"k"}, {300});
  bench.ask(0, 2, Kind::kGet, {"k"}, {100});
  bench.ask(1, 1, Kind::kWait, {"k", "l"}, {200});
  EXPECT_EQ(bench.table.next_deadline(), start + milliseconds(100));
  bench.now += milliseconds(200);
  bench.table.expire(bench.now);
  EXPECT_THAT(bench.said(0, 2), HasSubstr("timeout: "));
  EXPECT_THAT(bench.said(1, 1), HasSubstr("nobody set \"k\", \"l\" within"));
  EXPECT_EQ(bench.table.next_deadline(), start + milliseconds(300));
  // What has ended is not waited for any more.
  bench.ask(1, 2, Kind::kSet, {"k", "v"});
  EXPECT_EQ(bench.said(0, 1), "ok: v");
  bench.ask(1, 3, Kind::kSet, {"l", "v"});
  EXPECT_THAT(bench.said(1, 1), HasSubstr("timeout: "));
  EXPECT_EQ(bench.table.next_deadline(), std::nullopt);
}

TEST(StoreTable, ARankThatLeavesWaitsForNothingAndOthersOfABarrierAreTold) {
  Bench bench(2);
  bench.come(0);
  bench.come(1);
  bench.ask(0, 1, Kind::kGet, {"k"}, {1000});
  bench.ask(1, 1, Kind::kGet, {"k"}, {2000});
  EXPECT_FALSE(bench.table.all_left());
  bench.table.left(0);
  EXPECT_EQ(bench.answer(0, 1), std::nullopt);
  EXPECT_EQ(bench.table.next_deadline(), bench.now + milliseconds(2000));
  EXPECT_EQ(bench.answer(1, 1), std::nullopt);
  bench.ask(1, 2, Kind::kBarrier, {"b"}, {1000});
  EXPECT_EQ(bench.said(1, 2),
            "lost: [store] barrier \"b\" cannot be complete: rank 0 (host host0, pid 100) has left "
            "the job.");
  EXPECT_FALSE(bench.table.all_left());
  bench.table.left(1);
  EXPECT_TRUE(bench.table.all_left());
}

TEST(StoreTable, FreeRanksAreThoseThatNeverCame) {
  Bench bench(3);
  EXPECT_EQ(bench.table.free_rank(0), 1);
  EXPECT_EQ(bench.table.free_rank(-1), 0);
  bench.come(0);
  bench.come(1);
  bench.table.left(1);
  EXPECT_EQ(bench.table.free_rank(-1), 2);
  EXPECT_EQ(bench.table.free_rank(2), std::nullopt);
  EXPECT_EQ(bench.table.describe(2), "rank 2");
  EXPECT_EQ(bench.table.describe(1), "rank 1 (host host1, pid 101)");
}

TEST(StoreTable, ABarrierMayBeUsedAgainAndSeveralAtOnce) {
  Bench bench(2);
  bench.come(0);
  bench.come(1);
  for (uint64_t round = 0; round < 3; ++round) {
    bench.ask(0, 10 * round, Kind::kBarrier, {"a"}, {1000});
    bench.ask(0, 10 * round + 1, Kind::kBarrier, {"b"}, {1000});
    bench.ask(1, 10 * round, Kind::kBarrier, {"b"}, {1000});
    EXPECT_EQ(bench.said(0, 10 * round + 1), "ok: ");
    EXPECT_EQ(bench.answer(0, 10 * round), std::nullopt);
    bench.ask(1, 10 * round + 1, Kind::kBarrier, {"a"}, {1000});
    EXPECT_EQ(bench.said(0, 10 * round), "ok: ");
  }
  EXPECT_EQ(bench.table.next_deadline(), std::nullopt);
}

TEST(StoreTable, ChecksSetsAndErasesWhatItIsTold) {
  Bench bench(1);
  bench.come(0);
  bench.ask(0, 1, Kind::kSet, {"a", "1"});
  bench.ask(0, 2, Kind::kCheck, {"a", "b"});
  bench.ask(0, 3, Kind::kCheck, {"a"});
  EXPECT_EQ(bench.said(0, 2), "ok: 0");
  EXPECT_EQ(bench.said(0, 3), "ok: 1");
  // Not even a sum of "" is a number; one that overflows leaves the value.
  bench.ask(0, 4, Kind::kSet, {"empty", ""});
  bench.ask(0, 5, Kind::kAdd, {"empty"}, {1});
  EXPECT_EQ(bench.said(0, 5),
            "error: [store] cannot add to key \"empty\": its value is no number.");
  bench.ask(0, 6, Kind::kSet, {"big", std::to_string(INT64_MAX)});
  bench.ask(0, 7, Kind::kAdd, {"big"}, {1});
  EXPECT_EQ(bench.said(0, 7),
            "error: [store] cannot add 1 to key \"big\": the sum is out of 64 bits.");
  bench.ask(0, 8, Kind::kAdd, {"big"}, {-7});
  EXPECT_EQ(bench.said(0, 8), "ok: " + std::to_string(INT64_MAX - 7));
}

TEST(StoreTable, EveryKindOfRequestHasItsForm) {
  struct Form {
    Kind kind;
    size_t numbers;
    size_t texts;
  };
  for (const Form& form :
       {Form{Kind::kSet, 0, 2}, Form{Kind::kGet, 1, 1}, Form{Kind::kAdd, 1, 1},
        Form{Kind::kBarrier, 1, 1}, Form{Kind::kCheck, 0, 1}, Form{Kind::kWait, 1, 1},
        Form{Kind::kCompareSet, 0, 3}, Form{Kind::kErase, 0, 1}, Form{Kind::kJoin, 1, 0}}) {
    Bench bench(1);
    bench.come(0);
    const auto is_understood = [&](uint64_t id, size_t numbers, size_t texts) {
      bench.ask(0, id, form.kind, std::vector<std::string>(texts, "k"),
                std::vector<int64_t>(numbers, 5));
      return bench.said(0, id) != "error: [store] the server does not understand the request.";
    };
    EXPECT_TRUE(is_understood(1, form.numbers, form.texts)) << static_cast<int>(form.kind);
    EXPECT_FALSE(is_understood(2, form.numbers + 1, form.texts)) << static_cast<int>(form.kind);
    const bool has_any_number = form.kind == Kind::kCheck || form.kind == Kind::kWait;
    EXPECT_EQ(is_understood(3, form.numbers, form.texts + 1), has_any_number)
        << static_cast<int>(form.kind);
    if (form.texts > 0) {
      EXPECT_FALSE(is_understood(4, form.numbers, form.texts - 1)) << static_cast<int>(form.kind);
    }
  }
}

/// For any order of requests: values are those of a map, and each request is answered exactly when
/// its condition holds.
RC_GTEST_PROP(StoreTable, AgreesWithAMap, ()) {
  constexpr int kRanks = 3;
  Bench bench(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) bench.come(rank);
  std::map<std::string, std::string> model;
  std::map<std::pair<int, uint64_t>, std::string> waiting;  // gets of missing keys
  uint64_t id = 0;
  const auto steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const int rank = *rc::gen::inRange(0, kRanks);
    const std::string key(1, static_cast<char>('a' + *rc::gen::inRange(0, 4)));
    ++id;
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        const std::string value = std::to_string(*rc::gen::inRange(-3, 4));
        bench.ask(rank, id, Kind::kSet, {key, value});
        model[key] = value;
        break;
      }
      case 1: {
        const int amount = *rc::gen::inRange(-3, 4);
        bench.ask(rank, id, Kind::kAdd, {key}, {amount});
        model[key] = std::to_string((model.contains(key) ? std::stoi(model[key]) : 0) + amount);
        RC_ASSERT(bench.said(rank, id) == "ok: " + model[key]);
        break;
      }
      case 2: {
        const std::string expected = *rc::gen::element<std::string>("", "1", "2");
        bench.ask(rank, id, Kind::kCompareSet, {key, expected, "3"});
        if ((model.contains(key) ? model[key] : "") == expected) model[key] = "3";
        RC_ASSERT(bench.said(rank, id) == "ok: " + (model.contains(key) ? model[key] : ""));
        break;
      }
      case 3:
        bench.ask(rank, id, Kind::kErase, {key});
        RC_ASSERT(bench.said(rank, id) == (model.erase(key) == 1 ? "ok: 1" : "ok: 0"));
        break;
      default:
        bench.ask(rank, id, Kind::kGet, {key}, {1000});
        waiting[{rank, id}] = key;
        break;
    }
    for (auto it = waiting.begin(); it != waiting.end();) {
      const auto& [request, wanted] = *it;
      const bool there = model.contains(wanted);
      const auto answer = bench.answer(request.first, request.second);
      RC_ASSERT(answer.has_value() == there);
      if (there) RC_ASSERT(*answer == "ok: " + model[wanted]);
      it = there ? waiting.erase(it) : std::next(it);
    }
  }
}

}  // namespace
}  // namespace lockstep::dist
