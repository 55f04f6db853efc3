#include "configs/diagnosis.h"

#include <gtest/gtest.h>

#include <string>

#include "configs/load.h"
#include "configs/run.pb.h"

namespace lockstep::config {
namespace {

std::string error(const std::string& text) {
  try {
    load_text(text, "a");
  } catch (const SourceError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Diagnosis, UnknownFieldIsNamedWhereItBegins) {
  EXPECT_EQ(error("optimizer {\n  learning_rat : 1\n}"),
            "a:2:3: optimizer has no field \"learning_rat\". Did you mean \"learning_rate\"?");
  EXPECT_EQ(error("optimizer {\n  learning_rat # why\n\n: 1\n}"),
            "a:2:3: optimizer has no field \"learning_rat\". Did you mean \"learning_rate\"?");
  EXPECT_EQ(error("trian { steps: 1 }"),
            "a:1:1: a run has no field \"trian\". Did you mean \"train\"?");
  EXPECT_EQ(
      error("optimizer { adamw { momentum: 1 } }"),
      "a:1:21: optimizer.adamw has no field \"momentum\". Its fields: beta1, beta2, epsilon.");
}

TEST(Diagnosis, FieldSetTwiceNamesBothLines) {
  EXPECT_EQ(error("seed: 1\nthreads: 2\nseed: 1\n"),
            "a:3:1: seed is set a second time, after line 1. Keep one.");
  EXPECT_EQ(error("train { steps: 1 }\ntrain { batch_size: 1 }\n"),
            "a:2:1: train is set a second time, after line 1. Keep one.");
}

TEST(Diagnosis, TwoMembersOfAOneofAreBothNamed) {
  EXPECT_EQ(error("optimizer {\n sgd {}\n adamw {}\n}"),
            "a:3:2: optimizer has both sgd (line 2) and adamw: only one kind can be chosen.");
}

TEST(Diagnosis, WrongTypeSaysWhatWasExpected) {
  EXPECT_EQ(error("train { steps: many }"),
            "a:1:16: train.steps is many: expected an integer from 1 to 10^12.");
  EXPECT_EQ(error("train { steps: 1.5 }"),
            "a:1:16: train.steps is 1.5: expected an integer from 1 to 10^12.");
  EXPECT_EQ(error("train { steps: 99999999999999999999 }"),
            "a:1:16: train.steps is 99999999999999999999: expected an integer from 1 to "
            "10^12.");
  EXPECT_EQ(error("seed: -1"), "a:1:7: seed is -1: expected an integer from 0 to 2^64 - 1.");
  EXPECT_EQ(
      error("optimizer { learning_rate: \"1\" }"),
      "a:1:28: optimizer.learning_rate is \"1\": expected a number above 0 and at most 1000.");
  EXPECT_EQ(error("data { text { path: kjv } }"),
            "a:1:21: data.text.path is kjv: expected text in quotes.");
  EXPECT_EQ(error("optimizer { sgd { nesterov: 2 } }"),
            "a:1:29: optimizer.sgd.nesterov is 2: expected true or false.");
  EXPECT_EQ(error("train: 3"), "a:1:1: train holds fields: expected train { ... }, got 3.");
  EXPECT_EQ(error("seed { }"),
            "a:1:1: seed holds one value: expected seed: and an integer from 0 to "
            "2^64 - 1, got {.");
}

TEST(Diagnosis, UnknownEnumNameGetsTheNearest) {
  EXPECT_EQ(
      error("precision: F23"),
      "a:1:12: precision is F23: expected one of F32, BF16_MIXED, F16_MIXED. Did you mean F32?");
  EXPECT_EQ(error("schedule { kind: cosine }"),
            "a:1:18: schedule.kind is cosine: expected one of COSINE, CONSTANT, LINEAR, WSD, "
            "INVERSE_SQRT. Did "
            "you mean COSINE?");
}

TEST(Diagnosis, WrongValueOfAListIsNamedByItsIndex) {
  const auto in_resnet = [](const std::string& field) {
    return error("model { resnet {\n" + field + " } }");
  };
  EXPECT_EQ(in_resnet("blocks: [2, x]"),
            "a:2:13: model.resnet.blocks[1] is x: expected an integer from 1 to 1000.");
  EXPECT_EQ(in_resnet("blocks: 1 blocks: [2, 3] blocks: 1.5"),
            "a:2:34: model.resnet.blocks[3] is 1.5: expected an integer from 1 to 1000.");
  EXPECT_EQ(in_resnet("blocks: [1, ]"),
            "a:2:13: model.resnet.blocks[1] has no value: expected an integer from 1 to 1000, got "
            "].");
  EXPECT_EQ(in_resnet("blocks: [1 2]"),
            "a:2:12: model.resnet.blocks: expected , or ] after 1 values, got 2.");
  EXPECT_EQ(
      in_resnet("blocks { }"),
      "a:2:1: model.resnet.blocks holds a list: expected blocks: [a, b, ...], each an integer "
      "from 1 to 1000, got {.");
  EXPECT_EQ(in_resnet("blocks: [1] bocks: 2"),
            "a:2:13: model.resnet has no field \"bocks\". Did you mean \"blocks\"?");
}

TEST(Diagnosis, OneValueIsNoList) {
  EXPECT_EQ(error("seed: [1]"),
            "a:1:1: seed holds one value: expected seed: and an integer from 0 to "
            "2^64 - 1, got [.");
}

TEST(Diagnosis, MissingBraceOrValueIsNamed) {
  EXPECT_EQ(error("seed: 1\ntrain {\n  steps: 3\n"),
            "a:2:1: train { is never closed. Add the missing }.");
  EXPECT_EQ(error("seed:"),
            "a:1:6: seed has no value: expected an integer from 0 to "
            "2^64 - 1, got the end of the text.");
}

TEST(Diagnosis, KeepsTheParsersWordsForOtherMistakes) {
  EXPECT_EQ(error("seed: 1 }").substr(0, 7), "a:1:9: ");
  EXPECT_EQ(error("name: \"abc\nseed: 1").substr(0, 2), "a:");
}

TEST(Diagnosis, ReportsTheFirstOfSeveralMistakes) {
  EXPECT_EQ(error("seed: \"x\nbogus: 1").substr(0, 4), "a:1:");
  EXPECT_EQ(error("bogus: 1\nseed: 1.5").substr(0, 4), "a:1:");
}

}  // namespace
}  // namespace lockstep::config
