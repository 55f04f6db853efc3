#include <gtest/gtest.h>

#include "tests/core/base/temporary_directory.h"
#include "train/bisect/bisect.h"

namespace lockstep::train {
namespace {

class DescribeBisection : public testing::Test {
 protected:
  DescribeBisection() {
    found_.element = ElementDifference{.tensor = 1,
                                       .type = "float32[2, 3]",
                                       .element = 4,
                                       .index = {1, 1},
                                       .a = "0 (0x0)",
                                       .b = "1 (0x1)",
                                       .differing = 2,
                                       .elements = 6};
    found_.part = {3, 1};
    found_.micro_batches = 4;
    found_.leaf = 2;
    found_.operator_name = "mm";
    found_.phase = "backward";
    found_.module = "h.1";
    found_.call = 5;
  }
  RecordedRun run(const std::string& name) const {
    return {.directory = RunDirectory::create_at(folder_ / name, RunDirectory::Existing::kContinue),
            .name = name};
  }
  std::string text() const { return describe(result_, run("a"), run("long")); }
  /// The lines about what was found.
  std::string of_found() {
    result_.differing_step = 4;
    result_.replayed = 2;
    result_.found = found_;
    const std::string all = text();
    const std::string begin =
        "first differing step: 4\nreplayed 2 steps of each run from the beginning\n";
    EXPECT_EQ(all.substr(0, begin.size()), begin);
    return all.substr(begin.size());
  }

  TemporaryDirectory folder_;
  Bisection result_;
  OperatorDifference found_;
};

TEST_F(DescribeBisection, SaysInWhatRunsThatWereNotReplayedAreTheSame) {
  EXPECT_EQ(text(), "losses and gradient norms are the same, weights are not\n");
  result_.differing_step = 7;
  result_.notes = {"one", "two"};
  EXPECT_EQ(text(), "one\ntwo\nfirst differing step: 7\n");
  result_.notes.clear();
  result_.identical = true;
  EXPECT_EQ(text(), "losses, gradient norms and weights are the same, bit for bit\n");
  result_.with_tolerance = true;
  EXPECT_EQ(text(), "losses and gradient norms are the same within the tolerance\n");
}

TEST_F(DescribeBisection, SaysWhereTheReplayBegan) {
  result_.identical = true;
  result_.replayed = 1;
  result_.from_step = 6;
  EXPECT_EQ(text(),
            "losses, gradient norms and weights are the same, bit for bit\n"
            "replayed 1 step of each run from the checkpoints of step 6\n"
            "all operators gave the same bits in both\n");
  result_.compared = 12;
  result_.with_tolerance = true;
  EXPECT_EQ(text(),
            "losses and gradient norms are the same within the tolerance\n"
            "replayed 1 step of each run from the checkpoints of step 6\n"
            "12 calls that both make gave numbers within the tolerance\n");
}

TEST_F(DescribeBisection, NamesTheOperatorItsPlaceAndBothValues) {
  EXPECT_EQ(of_found(),
            "first operator that differs: mm\n"
            "step 4, micro-batch 1 (of 0 to 3), leaf 2, backward of h.1\n"
            "call 5 of mm there\n"
            "result 1, float32[2, 3]: element 4 at [1, 1], the first of 2 that differ (of 6)\n"
            "  a     0 (0x0)\n"
            "  long  1 (0x1)\n"
            "its inputs are the same, bit for bit\n");
  found_.inputs = {"self", "other"};
  found_.module = "";
  found_.element->differing = 0;
  EXPECT_EQ(of_found(),
            "first operator that differs: mm\n"
            "step 4, micro-batch 1 (of 0 to 3), leaf 2, backward\n"
            "call 5 of mm there\n"
            "  a     0 (0x0)\n"
            "  long  1 (0x1)\n"
            "its inputs differ: self, other\n");
}

TEST_F(DescribeBisection, WithAToleranceTellsTheDistance) {
  found_.distance = 0.25;
  found_.element->differing = 0;
  found_.inputs = {"self"};
  EXPECT_EQ(of_found(),
            "first operator that differs: mm\n"
            "step 4, micro-batch 1 (of 0 to 3), leaf 2, backward of h.1\n"
            "call 5 of mm there\n"
            "  a     0 (0x0)\n"
            "  long  1 (0x1)\n"
            "that is 2.5e-01 of the largest number that it writes\n");
}

TEST_F(DescribeBisection, SaysIfTheCallsAreOthersOrDoNotRepeat) {
  found_.part.micro_batch = std::nullopt;
  found_.element.reset();
  EXPECT_EQ(of_found(),
            "first operator that differs: mm\n"
            "step 4, behind the micro-batches: sums and update\n"
            "call 5 of mm there\n"
            "it gave the same bits when it was computed once more: the operator does not repeat "
            "itself in this process\n");
  found_.operator_of_b = "none";
  EXPECT_EQ(of_found(),
            "first operator that differs: mm\n"
            "step 4, behind the micro-batches: sums and update\n"
            "the runs make other calls: mm in a, none in long\n");
}

TEST_F(DescribeBisection, StepsThatDoNotRepeatAreTold) {
  result_.differing_step = 5;
  result_.replayed = 2;
  result_.unrepeated = {{5, "a", "loss", 1.5, 2.5}};
  EXPECT_EQ(text(),
            "first differing step: 5\n"
            "replayed 2 steps of each run from the beginning\n"
            "step 5 of a does not repeat: loss 1.5 was recorded, and is 2.5 here\n"
            "all operators gave the same bits in both\n"
            "what made the runs part is not in their configs: a fault of a machine, or of what "
            "one rank does not do, such as sums over ranks\n");
  result_.found = found_;
  const std::string found = text();
  EXPECT_TRUE(
      found.ends_with("its inputs are the same, bit for bit\n"
                      "step 5 of a does not repeat: loss 1.5 was recorded, and is 2.5 here\n"))
      << found;
}

}  // namespace
}  // namespace lockstep::train
