#include "dist/collectives/operation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lockstep::dist {
namespace {

Operation all_reduce(int64_t count) {
  return {.kind = OpKind::kAllReduce, .dtype = DType::kF32, .count = count};
}

TEST(OperationTest, SignatureIsWrittenAsPeopleReadIt) {
  const auto text = [](const Operation& operation) {
    return to_string(signature_of(operation, 5, 17));
  };
  EXPECT_EQ(text(all_reduce(1024)), "all_reduce #17 of 1,024 float32, sum");
  EXPECT_EQ(text(all_reduce(0)), "all_reduce #17 of 0 float32, sum");
  EXPECT_EQ(text(all_reduce(1'234'567)), "all_reduce #17 of 1,234,567 float32, sum");
  Operation over_leaves = all_reduce(4);
  over_leaves.reduction.leaves = 8;
  over_leaves.deal = LeafDeal::even(8, 3);
  EXPECT_EQ(text(over_leaves), "all_reduce #17 of 4 float32, sum of 8 leaves");
  over_leaves.deal = LeafDeal::of_counts(std::vector<int64_t>{5, 3});
  EXPECT_EQ(text(over_leaves),
            fmt::format("all_reduce #17 of 4 float32, sum of 8 leaves in deal {:016x}",
                        over_leaves.deal.identity()));
  EXPECT_EQ(text({.kind = OpKind::kReduce,
                  .dtype = DType::kBF16,
                  .reduction = {ReduceOp::kPremultipliedSum, 0.5},
                  .root = 2,
                  .count = 999}),
            "reduce #17 of 999 bfloat16 to rank 2, premultiplied sum by 0.5");
  EXPECT_EQ(text({.kind = OpKind::kBroadcast, .dtype = DType::kI64, .root = 1, .count = 8}),
            "broadcast #17 of 8 int64 from rank 1");
  EXPECT_EQ(text({.kind = OpKind::kAllToAll, .dtype = DType::kF64, .count = 3}),
            "all_to_all #17 of float64");
  EXPECT_EQ(text({.kind = OpKind::kSend, .dtype = DType::kU8, .root = 3, .count = 1}),
            "send #17 of 1 uint8 to rank 3");
  EXPECT_EQ(text({.kind = OpKind::kReceive, .dtype = DType::kU8, .root = 3, .count = 1}),
            "recv #17 of 1 uint8 from rank 3");
  EXPECT_EQ(text({.kind = OpKind::kBarrier}), "barrier #17");
}

TEST(OperationTest, WhatAKindDoesNotUseIsNotPartOfItsSignature) {
  const auto equal = [](const Operation& a, const Operation& b) {
    const Signature x = signature_of(a, 1, 2), y = signature_of(b, 1, 2);
    EXPECT_EQ(hash(x) == hash(y), x == y);
    return x == y;
  };
  Operation operation = all_reduce(10);
  operation.root = 3;
  operation.reduction.factor = 0.5;
  EXPECT_TRUE(equal(operation, all_reduce(10)));

  EXPECT_TRUE(equal({.kind = OpKind::kBarrier, .dtype = DType::kF32, .count = 3},
                    {.kind = OpKind::kBarrier}));
  EXPECT_TRUE(equal({.kind = OpKind::kAllGather, .reduction = {ReduceOp::kMax}, .count = 3},
                    {.kind = OpKind::kAllGather, .count = 3}));
  EXPECT_TRUE(equal({.kind = OpKind::kAllToAll, .send_counts = {1, 2}, .receive_counts = {1, 0}},
                    {.kind = OpKind::kAllToAll, .send_counts = {0, 1}, .receive_counts = {2, 1}}));

  EXPECT_FALSE(equal(all_reduce(10), all_reduce(11)));
  EXPECT_FALSE(equal({.kind = OpKind::kReduce, .root = 0}, {.kind = OpKind::kReduce, .root = 1}));
}

TEST(OperationTest, EveryFieldOfASignatureChangesItsHash) {
  const Signature base{.group = 1, .sequence = 2, .kind = OpKind::kReduce, .count = 100};
  std::vector<Signature> signatures(8, base);
  signatures[1].group = 3;
  signatures[2].sequence = 3;
  signatures[3].kind = OpKind::kAllReduce;
  signatures[4].dtype = DType::kF16;
  signatures[5].reduction.op = ReduceOp::kMin;
  signatures[6].root = 1;
  signatures[7].count = 101;
  signatures.push_back(base);
  signatures.back().reduction = {ReduceOp::kPremultipliedSum, 0.5};
  signatures.push_back(base);
  signatures.back().reduction = {ReduceOp::kPremultipliedSum, 0.25};
  for (const int32_t leaves : {1, 8, 8 + 256, 8 + 65536}) {
    signatures.push_back(base);
    signatures.back().reduction.leaves = leaves;
  }
  for (const uint64_t deal : {1, 2}) {
    signatures.push_back(base);
    signatures.back().reduction.leaves = 8;
    signatures.back().deal = deal << 60 | deal;
  }
  std::set<uint64_t> hashes;
  for (const Signature& signature : signatures) hashes.insert(hash(signature));
  EXPECT_EQ(hashes.size(), signatures.size());
}

TEST(OperationTest, AFewBitsOfTheHashTellSimilarSignaturesApart) {
  // 4096 values hashed into 4096 slots at random leave 37 % (1/e) of the slots empty.
  std::set<uint64_t> low, high;
  for (int64_t count = 0; count < 4096; ++count) {
    const uint64_t bits = hash(signature_of(all_reduce(count * 1024), 0, 0));
    low.insert(bits & 0xfff);
    high.insert(bits >> 52);
  }
  EXPECT_NEAR(static_cast<double>(low.size()), 4096 * 0.632, 100);
  EXPECT_NEAR(static_cast<double>(high.size()), 4096 * 0.632, 100);
}

TEST(OperationTest, TheHashIsTheSameOnEveryMachine) {
  const Signature signature{.group = 0x123456789abcdef0,
                            .sequence = 17,
                            .kind = OpKind::kAllReduce,
                            .dtype = DType::kF32,
                            .reduction = {ReduceOp::kPremultipliedSum, 0.25},
                            .count = 1 << 20};
  EXPECT_EQ(hash(signature), 0x525d1f3cac26bb2bu);
}

}  // namespace
}  // namespace lockstep::dist
