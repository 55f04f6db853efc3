#include "train/watch/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "autograd/autograd.h"
#include "core/ops/factory/literal.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/train/rank_runs.h"

namespace lockstep::train {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Audit, TakesRanksAndTheirMicroBatchesInTurn) {
  const std::vector<MicroBatches> shares = {{0, 2}, {2, 2}, {4, 1}};
  EXPECT_EQ(audit_of(0, shares), (Audit{0, 1, 2, 0}));
  EXPECT_EQ(audit_of(1, shares), (Audit{1, 2, 0, 2}));
  EXPECT_EQ(audit_of(2, shares), (Audit{2, 0, 1, 4}));
  EXPECT_EQ(audit_of(3, shares), (Audit{0, 1, 2, 1}));
  EXPECT_EQ(audit_of(4, shares), (Audit{1, 2, 0, 3}));
  EXPECT_EQ(audit_of(5, shares), (Audit{2, 0, 1, 4}));
  EXPECT_EQ(audit_of(6, shares), (Audit{0, 1, 2, 0}));
  EXPECT_EQ(audit_of(1, std::vector<MicroBatches>{{0, 1}, {1, 1}}), (Audit{1, 0, 1, 1}));
}

TEST(Audit, HashesAreOfValuesInRowMajorOrder) {
  const Tensor values = tensor({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(audit_hash(values), audit_hash(values.t().contiguous().t()));
  EXPECT_NE(audit_hash(values), audit_hash(values.t()));
  EXPECT_NE(audit_hash(tensor({0.0f})), audit_hash(tensor({-0.0f})));
  EXPECT_EQ(audit_hash(Tensor()), 0u);
}

TEST(GradientHashes, AreOfEachBackwardsOwnGradient) {
  Tensor a = tensor({1.0f, 2.0f}), b = tensor({3.0f, 4.0f}), unused = tensor({5.0f});
  for (Tensor* each : {&a, &b, &unused}) each->set_requires_grad(true);
  sum(a * 7).backward();  // a.grad is not what the next backward brings
  const std::vector<dist::NamedTensor> parameters = {{"a", a}, {"b", b}, {"unused", unused}};
  const Tensor loss = sum(a * b);
  AuditHashes hashes;
  {
    const GradientHashes log(parameters);
    loss.backward();
    hashes = log.with_loss(loss);
  }
  EXPECT_EQ(hashes, (AuditHashes{audit_hash(loss), audit_hash(b), audit_hash(a), 0}));
  sum(a).backward();  // the hooks are gone
}

/// What each rank returns of an audit of rank 1 by rank 2, with rank 0 as witness, of 3 ranks (of
/// 2: by rank 0, with rank 1 again), where `again` computes the hashes of a rank.
std::vector<std::string> findings(int size, const AuditHashes& own,
                                  const std::function<AuditHashes(int rank)>& again) {
  std::vector<std::string> found(static_cast<size_t>(size));
  const std::vector<dist::NamedTensor> parameters = {{"first", {}}, {"last", {}}};
  std::vector<MicroBatches> shares;
  for (int rank = 0; rank < size; ++rank) shares.push_back({rank, 1});
  rethrow_first(dist::run_thread_ranks(size, [&](dist::ProcessGroup& group) {
    const AuditHashes mine = group.rank() == 1 ? own : AuditHashes();
    found[static_cast<size_t>(group.rank())] = compare_audit(
        group, audit_of(1, shares), parameters, mine, [&] { return again(group.rank()); });
  }));
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), 1u);
  return found;
}

const AuditHashes kRight = {1, 2, 3};

TEST(CompareAudit, FindsNothingWhereHashesAgree) {
  EXPECT_THAT(findings(2, kRight, [](int) { return kRight; }), Each(IsEmpty()));
}

TEST(CompareAudit, AThirdRankDecidesWhoIsWrong) {
  EXPECT_THAT(findings(3, {1, 9, 8}, [](int) { return kRight; })[0],
              AllOf(HasSubstr("micro-batch 1: the gradient of last that rank 1 ("),
                    HasSubstr("that of rank 2 ("), HasSubstr("rank 1 ("),
                    HasSubstr(") is wrong: what rank 0 (")));
  EXPECT_THAT(findings(3, kRight,
                       [](int rank) {
                         return rank == 2 ? AuditHashes{1, 9, 3} : kRight;
                       })[0],
              AllOf(HasSubstr("the gradient of first that"), HasSubstr(". rank 2 ("),
                    HasSubstr("computes is the audited rank's")));
  EXPECT_THAT(
      findings(3, kRight,
               [](int rank) {
                 return AuditHashes{7 + static_cast<uint64_t>(rank), 2, 3};
               })[0],
      AllOf(HasSubstr("the loss that"), HasSubstr("computes is neither"), Not(HasSubstr("wrong"))));
}

TEST(CompareAudit, OfTwoRanksTheAuditedOneComputesItAgain) {
  EXPECT_THAT(findings(2, {9, 2, 3}, [](int) { return kRight; })[0],
              AllOf(HasSubstr("the loss that rank 1 ("), HasSubstr(". rank 1 ("),
                    HasSubstr("what it computes now is the auditor's")));
  EXPECT_THAT(findings(2, kRight,
                       [](int rank) {
                         return rank == 0 ? AuditHashes{9, 2, 3} : kRight;
                       })[0],
              HasSubstr("Two ranks cannot tell which of them is wrong"));
}

TEST(CompareAudit, ARankThatCannotComputeItAgainEndsAll) {
  const auto errors = dist::run_thread_ranks(3, [&](dist::ProcessGroup& group) {
    compare_audit(group, {0, 1, 2, 0}, {{"first", {}}, {"last", {}}}, kRight,
                  []() -> AuditHashes { throw DataError("no samples"); });
  });
  for (const auto& error : errors) {
    expect_error<DeviceError>([&] { std::rethrow_exception(error); },
                              "rank 1 cannot compute a micro-batch again: no samples");
  }
}

/// The message that all ranks get for parameters {a, b}, of which rank `r` has `values[r]` as b.
std::string unequal(const std::vector<float>& values) {
  const auto errors =
      dist::run_thread_ranks(static_cast<int>(values.size()), [&](dist::ProcessGroup& group) {
        require_equal_values(group, {{"a", tensor({1.0f})},
                                     {"b", tensor({values[static_cast<size_t>(group.rank())]})}});
      });
  std::set<std::string> texts;
  for (const auto& error : errors) {
    try {
      if (error) std::rethrow_exception(error);
      texts.insert("");
    } catch (const DeviceError& failure) {
      texts.insert(failure.what());
    }
  }
  EXPECT_EQ(texts.size(), 1u);
  return *texts.begin();
}

TEST(EqualValues, NamesTheRanksThatDifferFromMostOthers) {
  EXPECT_EQ(unequal({1, 1, 1}), "");
  EXPECT_THAT(unequal({1, 1, 2, 1}),
              AllOf(HasSubstr("got others on rank 2 ("),
                    HasSubstr(") than on ranks 0, 1, 3, first in b."), Not(HasSubstr("open"))));
  EXPECT_THAT(unequal({1, 2}), HasSubstr("it is open which are right"));
}

}  // namespace
}  // namespace lockstep::train
