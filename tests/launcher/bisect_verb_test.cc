// `lockstep bisect`, planted faults and `lockstep data of-step` as a user calls them.

#include <gtest/gtest.h>

#include "tests/launcher/text_run.h"

namespace lockstep::launcher {
namespace {

class BisectVerb : public TextRun {
 protected:
  BisectVerb() : TextRun(4) {}
  const std::string fault_ = "--set inject.flip=step=3,operator=addmm,call=2,element=5,bit=0 ";
};

TEST_F(BisectVerb, NamesTheOperatorThatAFaultWasPlantedIn) {
  ASSERT_EQ(train("a").status, 0);
  ASSERT_EQ(train("b", fault_ + "--inject-faults").status, 0);
  EXPECT_TRUE(says(file_content(folder_ / "b/environment.json"), "\"injected_fault\": \"step=3"));
  const Result found = run("bisect a b --replay-equal");
  EXPECT_EQ(found.status, 1) << found.errors;
  EXPECT_TRUE(says(found.output, "first operator that differs: addmm\n"));
  EXPECT_TRUE(says(found.output, "step 3, micro-batch 0"));
  EXPECT_TRUE(says(found.output, "element 5 at ["));
  EXPECT_EQ(run("bisect a a").status, 0);
}

TEST_F(BisectVerb, AFaultThatNobodyAskedForIsRefused) {
  const Result refused = train("b", fault_);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(says(refused.errors, "compute wrong numbers on purpose"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

TEST_F(BisectVerb, EndsWithTheStatusOfItsError) {
  ASSERT_EQ(train("a").status, 0);
  ASSERT_EQ(train("c", "--set seed=2").status, 0);
  EXPECT_EQ(run("bisect a nothing").status, 3);
  EXPECT_EQ(run("bisect a c").status, 2);
  EXPECT_EQ(run("bisect a").status, 2);
  put_file(folder_ / "c/environment.json", "{\"version\": \"999.0.0\"}");
  EXPECT_EQ(run("bisect a c").status, 4);
  put_file(folder_ / "c/environment.json", "{");
  EXPECT_EQ(run("bisect a c").status, 3);
}

TEST_F(BisectVerb, RunsOfOtherRanksWithoutBitwiseNeedATolerance) {
  const std::string size = "--set train.micro_batch_size=1";  // one for each rank
  ASSERT_EQ(train("a", size).status, 0);
  ASSERT_EQ(train("c", size).status, 0);
  put_file(folder_ / "c/starts.jsonl", "{\"start\":\"x\",\"ranks\":2}\n");
  const Result refused = run("bisect a c --replay-equal");
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(says(refused.errors, "a was computed by one rank, and c by 2 ranks with DDP"));
  EXPECT_EQ(run("bisect a c --replay-equal --tolerance 1e-6").status, 0);
}

TEST_F(BisectVerb, DataOfAStepIsShownWithItsFiles) {
  ASSERT_EQ(train("a").status, 0);
  const Result shown = run("data of-step a 3");
  EXPECT_EQ(shown.status, 0) << shown.errors;
  EXPECT_TRUE(says(shown.output, "step 3: batch 2, 2 samples of 8 tokens\n"));
  EXPECT_TRUE(says(shown.output, "text.txt"));
  EXPECT_EQ(run("data of-step a 5").status, 3);
  EXPECT_EQ(run("data of-step a 0").status, 2);
}

}  // namespace
}  // namespace lockstep::launcher
