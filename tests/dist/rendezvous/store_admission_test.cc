#include "dist/rendezvous/store_admission.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace lockstep::dist {
namespace {

using Kind = StoreMessage::Kind;

/// The store of a job of three ranks that runs in rank 0.
class StoreAdmission : public testing::Test {
 protected:
  static StoreMessage hello(int64_t rank) {
    return {Kind::kHello,
            0,
            {kStoreProtocol, rank, 3, 42},
            {kStoreMagic, "job-a", "open sesame", "alpha"}};
  }
  /// Text of the refusal, or "admitted".
  std::string answer(const StoreMessage& message) {
    std::optional<Refusal> refusal = check_admission(message, options_, table_);
    status_ = refusal ? refusal->status : StoreStatus::kOk;
    return refusal ? refusal->text : "admitted";
  }

  StoreServerOptions options_{.job = "job-a", .secret = "open sesame", .world_size = 3, .rank = 0};
  StoreTable table_{3, [](int, const StoreMessage&) {}};
  StoreStatus status_ = StoreStatus::kOk;
};

TEST_F(StoreAdmission, IsGivenToEveryRankThatHasNotCome) {
  for (const int64_t rank : {0, 2, kAnyRank}) EXPECT_EQ(answer(hello(rank)), "admitted") << rank;
  table_.came(2, "alpha", 42);
  table_.left(2);
  EXPECT_EQ(answer(hello(2)), "admitted") << "a rank that left may come back";
}

TEST_F(StoreAdmission, IsRefusedToWhatIsNoHello) {
  const std::string none = "it sent what is no message of a store";
  StoreMessage other = hello(1);
  other.kind = Kind::kSet;
  EXPECT_EQ(answer(other), none);
  other = hello(1);
  other.texts[0] = "Lockstep-store";
  EXPECT_EQ(answer(other), none);
  other.texts.clear();
  EXPECT_EQ(answer(other), none);
  other = hello(1);
  other.numbers.clear();
  EXPECT_EQ(answer(other), none);
  EXPECT_EQ(status_, StoreStatus::kDistError);
}

TEST_F(StoreAdmission, IsRefusedToAnotherProtocol) {
  const auto text = [](int version) {
    return "it speaks version " + std::to_string(version) +
           " of the store's protocol, this server version 2. All ranks must run the same build";
  };
  StoreMessage other = hello(1);
  other.numbers[0] = 3;
  EXPECT_EQ(answer(other), text(3));
  other = hello(1);
  other.numbers.push_back(1);
  EXPECT_EQ(answer(other), text(2));
  other = hello(1);
  other.texts.pop_back();
  EXPECT_EQ(answer(other), text(2));
}

TEST_F(StoreAdmission, IsRefusedToAnotherJobWhoseNameIsMadePrintable) {
  StoreMessage other = hello(1);
  const auto refused = [&](const std::string& job) {
    other.texts[1] = job;
    return answer(other);
  };
  const std::string rest = "\", this is job \"job-a\". Each job needs an address of its own";
  EXPECT_EQ(refused("job-b"), "it is of job \"job-b" + rest);
  EXPECT_EQ(refused(" ~\x1f\x7f\xff"), "it is of job \" ~???" + rest);
  EXPECT_EQ(refused(std::string(100, 'x')), "it is of job \"" + std::string(100, 'x') + rest);
  EXPECT_EQ(refused(std::string(101, 'x')),
            "it is of job \"" + std::string(100, 'x') + "..." + rest);
  other = hello(1);
  other.texts[2] = "open";
  EXPECT_EQ(answer(other), "it does not know the secret of job \"job-a\"");
}

TEST_F(StoreAdmission, IsRefusedToRanksThatDoNotFitTheWorld) {
  StoreMessage other = hello(1);
  other.numbers[2] = 4;
  EXPECT_EQ(answer(other),
            "rank 1 (host alpha, pid 42) was started for a world of 4 ranks, the job has 3. Start "
            "all ranks with the same number");
  EXPECT_EQ(status_, StoreStatus::kMismatchError);
  EXPECT_EQ(answer(hello(3)), "rank 3 (host alpha, pid 42) cannot be among 3 ranks");
  EXPECT_EQ(answer(hello(-2)), "rank -2 (host alpha, pid 42) cannot be among 3 ranks");
}

TEST_F(StoreAdmission, IsRefusedToASecondAndToTheSuccessorOfALostOne) {
  table_.came(1, "beta", 7);
  EXPECT_EQ(answer(hello(1)),
            "there is rank 1 (host beta, pid 7) already, so rank 1 (host alpha, pid 42) cannot be "
            "it, too. Give each process a rank of its own");
  table_.lost(1, "is lost");
  EXPECT_EQ(answer(hello(1)),
            "rank 1 (host beta, pid 7) is lost, and rank 1 (host alpha, pid 42) cannot take its "
            "place in the same job");
}

TEST_F(StoreAdmission, IsRefusedWithoutANumberWhereNoneIsLeftButTheServers) {
  table_.came(1, "beta", 7);
  EXPECT_EQ(answer(hello(kAnyRank)), "admitted");
  table_.came(2, "beta", 8);
  EXPECT_EQ(answer(hello(kAnyRank)),
            "one (host alpha, pid 42) asks for a number, but all 3 ranks have come, or only that "
            "of the server is left");
}

}  // namespace
}  // namespace lockstep::dist
