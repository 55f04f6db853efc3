#include "configs/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

class Load : public testing::Test {
 protected:
  Load()
      : folder_(std::filesystem::temp_directory_path() /
                ("lockstep_load_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Load() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  /// Message of the error that load throws for these files and overrides.
  static std::string error(const std::vector<std::string>& files,
                           const std::vector<std::string>& overrides = {}) {
    try {
      load(files, overrides);
    } catch (const SourceError& e) {
      return e.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

TEST_F(Load, LaterFilesWinFieldByField) {
  const std::string base = file("base.txtpb", kSmallest);
  const std::string more = file("more.txtpb", "seed: 7 train { steps: 9 } optimizer { sgd {} }");
  const std::string last = file("last.txtpb", "train { log_every: 2 }");
  const RunConfig config = load(std::vector{base, more, last});
  EXPECT_EQ(config.seed(), 7U);
  EXPECT_EQ(config.train().steps(), 9);
  EXPECT_EQ(config.train().batch_size(), 4);
  EXPECT_EQ(config.train().log_every(), 2);
  EXPECT_TRUE(config.optimizer().has_sgd());
  EXPECT_EQ(config.name(), "last");
}

TEST_F(Load, AnExampleThatMovedIsFoundUnderItsOldPath) {
  std::filesystem::create_directories(folder_ / "configs/examples");
  const std::string moved = file("configs/examples/run.txtpb", "train { steps: 7 }\n");
  const std::string old = folder_ / "configs/run.txtpb";
  EXPECT_EQ(moved_config(old), moved);
  EXPECT_EQ(moved_config(moved), "");
  EXPECT_EQ(moved_config(folder_ / "configs/other.txtpb"), "");
  RunConfig config;
  Origins origins;
  merge_file(config, origins, old);
  EXPECT_EQ(config.train().steps(), 7);
  EXPECT_EQ(origins.at("train.steps"), moved + ":1:9");
  EXPECT_NE(error({folder_ / "configs/other.txtpb"}).find("cannot be read"), std::string::npos);
}

TEST_F(Load, AnotherMemberOfAOneofReplacesTheFirst) {
  const std::string base = file("base.txtpb", kSmallest);
  const std::string text = file("text.txtpb", "data { text { path: 'a b.txt' } }");
  EXPECT_EQ(load(std::vector{base, text}).data().text().path(), "a b.txt");
  const RunConfig back = load(std::vector{base, text}, std::vector<std::string>{"data.random={}"});
  EXPECT_TRUE(back.data().has_random());
}

TEST_F(Load, OverridesAreTypedByTheSchema) {
  const std::string base = file("base.txtpb", kSmallest);
  const RunConfig config =
      load(std::vector{base},
           std::vector<std::string>{"name=trial-2", "train.steps=0x10", "schedule.kind=CONSTANT",
                                    "optimizer.learning_rate=3e-4", "optimizer.sgd.nesterov=true",
                                    "data.text.path=dir with space/a=b.txt"});
  EXPECT_EQ(config.name(), "trial-2");
  EXPECT_EQ(config.train().steps(), 16);
  EXPECT_EQ(config.schedule().kind(), ScheduleConfig::CONSTANT);
  EXPECT_EQ(config.optimizer().learning_rate(), 3e-4);
  EXPECT_TRUE(config.optimizer().sgd().nesterov());
  EXPECT_EQ(config.data().text().path(), "dir with space/a=b.txt");
}

TEST_F(Load, OverridesThatDoNotFitAreRefused) {
  const std::string base = file("base.txtpb", kSmallest);
  const auto refusal = [&](const std::string& assignment) {
    return error({base}, {assignment}).substr(("--set " + assignment + ": ").size());
  };
  EXPECT_EQ(refusal("train.steps"), "expected path=value, as in --set train.steps=100.");
  EXPECT_EQ(refusal("train.step=5"), "train has no field \"step\". Did you mean \"steps\"?");
  EXPECT_EQ(refusal("optimiser.adamw.beta1=0"),
            "a run has no field \"optimiser\". Did you mean \"optimizer\"?");
  EXPECT_EQ(refusal("train.steps=lots"),
            "train.steps is lots: expected an integer from 1 to 10^12.");
  EXPECT_EQ(refusal("train.steps="), "train.steps is empty: expected an integer from 1 to 10^12.");
  EXPECT_EQ(refusal("train.steps=5 6"), "train.steps is 5 6: expected an integer from 1 to 10^12.");
  EXPECT_EQ(refusal("train.steps.x=5"), "train.steps holds one value, it has no fields.");
  EXPECT_EQ(refusal("optimizer.sgd.nesterov=yes"),
            "optimizer.sgd.nesterov is yes: expected true or false.");
  EXPECT_EQ(refusal("schedule.kind=COSIN"),
            "schedule.kind is COSIN: expected one of COSINE, CONSTANT, LINEAR, WSD, INVERSE_SQRT. "
            "Did you mean "
            "COSINE?");
  EXPECT_EQ(refusal("seed=-1"), "seed is -1: expected an integer from 0 to 2^64 - 1.");
  EXPECT_EQ(
      refusal("optimizer=3"),
      "optimizer holds fields: set one of them, as in optimizer.FIELD=VALUE, or choose it with "
      "optimizer={}.");
  EXPECT_EQ(refusal("data.random.seed=3"), "data.random has no field \"seed\", nor any other.");
}

class Lists : public Load {
 protected:
  std::string blocks(const std::vector<std::string>& texts,
                     const std::vector<std::string>& overrides = {}, Origins* origins = nullptr) {
    std::vector<std::string> files = {file("0.txtpb", kSmallestClassifier)};
    for (const std::string& text : texts) {
      files.push_back(
          file(std::to_string(files.size()) + ".txtpb", "model { resnet { " + text + " } }"));
    }
    try {
      const RunConfig config = load(files, overrides, origins);
      std::string found;
      for (const int64_t count : config.model().resnet().blocks()) {
        found += (found.empty() ? "" : " ") + std::to_string(count);
      }
      return found;
    } catch (const SourceError& e) {
      return e.problem();
    }
  }
};

TEST_F(Lists, AreWrittenInOnePieceOrSeveral) {
  EXPECT_EQ(blocks({}), "2 2 2 2");
  EXPECT_EQ(blocks({"blocks: [1, 3]"}), "1 3");
  EXPECT_EQ(blocks({"blocks: 1 blocks: 3"}), "1 3");
  EXPECT_EQ(blocks({"blocks: 1 height: 4 blocks: [2, 3]"}), "1 2 3");
}

TEST_F(Lists, OfALaterFileReplaceTheEarlierOnes) {
  EXPECT_EQ(blocks({"blocks: [1, 3]", "blocks: 4"}), "4");
  EXPECT_EQ(blocks({"blocks: [1, 3]", "height: 4"}), "1 3");
  EXPECT_EQ(blocks({"blocks: [1, 3]", "blocks: []"}),
            "model.resnet.blocks is []: expected at least one stage, as in [2, 2].");
}

TEST_F(Lists, AreReplacedOrAppendedToByOverrides) {
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks=[1, 2]"}), "1 2");
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks=1,2"}), "1 2");
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks+=3"}), "5 3");
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks+=[3, 4]", "model.resnet.blocks+=0x6"}),
            "5 3 4 6");
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks=[]", "model.resnet.blocks+=3"}), "3");
}

TEST_F(Lists, AppendingStartsFromTheDefault) {
  EXPECT_EQ(blocks({}, {"model.resnet.blocks+=3"}), "2 2 2 2 3");
}

TEST_F(Lists, OverridesThatDoNotFitAreRefused) {
  EXPECT_EQ(blocks({}, {"model.resnet.blocks=1,two"}),
            "model.resnet.blocks[1] is two: expected an integer from 1 to 1000.");
  EXPECT_EQ(blocks({"blocks: 5"}, {"model.resnet.blocks+=two"}),
            "model.resnet.blocks[1] is two: expected an integer from 1 to 1000.");
  EXPECT_EQ(blocks({}, {"model.resnet.blocks="}),
            "model.resnet.blocks is empty: expected [a, b, ...], each an integer from 1 to 1000.");
  EXPECT_EQ(blocks({}, {"model.resnet.blocks=[1"}),
            "model.resnet.blocks is [1: expected [a, b, ...], each an integer from 1 to 1000.");
  EXPECT_EQ(blocks({}, {"model.resnet.blocks.x=1"}),
            "model.resnet.blocks holds a list, it has no fields.");
  EXPECT_EQ(blocks({}, {"seed+=3"}), "seed holds one value: += appends to lists only. Use =.");
  EXPECT_EQ(blocks({}, {"optimizer.sgd+={}"}),
            "optimizer.sgd holds fields: += appends to lists only. Use =.");
  EXPECT_EQ(blocks({}, {"model.resnet.blcks+=3"}),
            "model.resnet has no field \"blcks\". Did you mean \"blocks\"?");
}

TEST_F(Lists, OriginIsTheLastChange) {
  Origins origins;
  const std::string first = folder_ / "1.txtpb";
  const std::string second = folder_ / "2.txtpb";
  const auto origin = [&] { return origins.at("model.resnet.blocks"); };
  blocks({}, {}, &origins);
  EXPECT_EQ(origin(), "default");
  blocks({"blocks: [1, 3]", "height: 4"}, {}, &origins);
  EXPECT_EQ(origin(), first + ":1:18");
  blocks({"blocks: [1, 3]", "blocks: 1\n blocks: 2"}, {}, &origins);
  EXPECT_EQ(origin(), second + ":2:2");
  blocks({"blocks: [1, 3]"}, {"model.resnet.blocks+=4"}, &origins);
  EXPECT_EQ(origin(), "--set model.resnet.blocks+=4");
}

TEST_F(Lists, ThatWereEmptiedStayEmpty) {
  const std::string text =
      "model { mlp { inputs: 4 classes: 2 hidden_widths: [] } } data { random {} } "
      "train { steps: 1 batch_size: 1 }";
  const RunConfig config = load_text(text);
  EXPECT_EQ(config.model().mlp().hidden_widths_size(), 0);
  EXPECT_NE(to_text(config).find("hidden_widths: []\n"), std::string::npos);
  EXPECT_EQ(load_text(to_text(config)).model().mlp().hidden_widths_size(), 0);
}

TEST_F(Lists, OfADroppedMessageAreForgotten) {
  RunConfig config;
  Origins origins;
  merge_text(config, origins, kSmallestClassifier, "a");
  set_value(config, origins, "model.mlp.hidden_widths=[]");
  set_value(config, origins, "model.resnet.blocks+=3");
  merge_text(config, origins, "model { mlp { inputs: 4 classes: 2 } }", "b");
  resolve(config, origins);
  EXPECT_EQ(config.model().mlp().hidden_widths_size(), 1);
  EXPECT_EQ(origins.at("model.mlp.hidden_widths"), "default");
}

TEST_F(Load, OriginsNameFileLineFlagOrDefault) {
  const std::string base = file("base.txtpb", kSmallest);
  const std::string more = file("more.txtpb", "# a comment\n  seed: 7\n  train {\n\tsteps: 9 }\n");
  Origins origins;
  load(std::vector{base, more}, std::vector<std::string>{"train.log_every=2"}, &origins);
  EXPECT_EQ(origins.at("seed"), more + ":2:3");
  EXPECT_EQ(origins.at("train.steps"), more + ":4:9");
  EXPECT_EQ(origins.at("train.batch_size"), base + ":3:18");
  EXPECT_EQ(origins.at("train.log_every"), "--set train.log_every=2");
  EXPECT_EQ(origins.at("train.leaves"), "default");
  EXPECT_EQ(origins.at("optimizer.adamw.beta1"), "default");
}

TEST_F(Load, OriginOfAMessageIsTheOverrideThatChoseIt) {
  const std::string base = file("base.txtpb", kSmallest);
  EXPECT_EQ(error({base}, {"model.llama.heads=2"}).substr(0, 53),
            "--set model.llama.heads=2: model.llama.context_length");
  EXPECT_EQ(error({base}, {"model.gpt2.heads=2", "model.gpt2={}"}), "no error");
}

TEST_F(Load, AnErrorBlamesTheLayerThatSetTheValueLast) {
  const std::string base = file("base.txtpb", kSmallest);
  const auto rate = [](const std::string& value) {
    return "optimizer { learning_rate: " + value + " }";
  };
  const std::string wrong = file("wrong.txtpb", "\n" + rate("-1"));
  const std::string right = file("right.txtpb", rate("0.5"));
  const std::string also_wrong = file("also_wrong.txtpb", "\n\n " + rate("-2"));
  constexpr const char* kFlag = "optimizer.learning_rate=-3";
  const auto blamed = [&](const std::vector<std::string>& files,
                          const std::vector<std::string>& flags = {}) {
    const std::string text = error(files, flags);
    return text.substr(0, text.find(": optimizer.learning_rate is -"));
  };
  EXPECT_EQ(blamed({base, wrong}), wrong + ":2:13");
  EXPECT_EQ(blamed({base, right, wrong}), wrong + ":2:13");
  EXPECT_EQ(blamed({base, wrong, also_wrong}), also_wrong + ":3:14");
  EXPECT_EQ(blamed({base, wrong}, {kFlag}), std::string("--set ") + kFlag);
  EXPECT_EQ(blamed({base, wrong, right}), "no error");
  EXPECT_EQ(blamed({base, wrong}, {"optimizer.learning_rate=0.5"}), "no error");
}

TEST_F(Load, AnErrorOfAWholeMessageBlamesTheLayerThatWroteItLast) {
  const std::string base = file("base.txtpb", kSmallest);
  const std::string more =
      file("more.txtpb", "train { log_every: 2 }\nmodel { llama { context_length: 8 } }");
  const std::string text = error({base, more});
  EXPECT_EQ(text.substr(0, text.find(": model.llama.")), more + ":2:9");
}

TEST_F(Load, OriginsForgetWhatWasReplaced) {
  const std::string base =
      file("base.txtpb", std::string(kSmallest) + "optimizer { adamw { beta1: 0.5 } }");
  Origins origins;
  load(std::vector{base}, std::vector<std::string>{"optimizer.sgd.momentum=0"}, &origins);
  EXPECT_EQ(origins.count("optimizer.adamw.beta1"), 0U);
  EXPECT_EQ(origins.at("optimizer.sgd.momentum"), "--set optimizer.sgd.momentum=0");
}

TEST_F(Load, FilesThatAreNoConfigAreRefused) {
  EXPECT_EQ(error({"no_such_file.txtpb"}),
            "no_such_file.txtpb: cannot be read: No such file or directory.");
  EXPECT_EQ(error({folder_}), folder_.string() + ": cannot be read: Is a directory.");
  const std::string binary = file("a.safetensors", std::string("ab\0\1", 4));
  EXPECT_EQ(error({binary}), binary +
                                 ": is not text: byte 2 is 0x00. A config is a protobuf text "
                                 "file such as configs/examples/gpt_kjv.txtpb.");
  EXPECT_EQ(error({"/dev/zero"}),
            "/dev/zero: cannot be read: it is not a regular file but a device: "
            "copy its contents into a file.");
  const std::string large = file("large.txtpb", std::string((4 << 20) + 1, '\n'));
  EXPECT_EQ(error({large}), large + ": is larger than 4 MiB, so it is no config.");
  const std::string empty = file("empty.txtpb", "");
  EXPECT_EQ(
      error({empty}),
      empty + ": model is required: expected model { ... }. Set it in the file or with --set.");
}

TEST_F(Load, FailedLayerLeavesTheConfigAsItWas) {
  RunConfig config = load_text(kSmallest);
  const std::string before = to_text(config);
  Origins origins;
  EXPECT_THROW(merge_text(config, origins, "seed: 3 train { steps: x }", "a"), SourceError);
  EXPECT_THROW(set_value(config, origins, "model.llama.wdth=3"), SourceError);
  EXPECT_THROW(set_value(config, origins, "model.resnet.blocks+=x"), SourceError);
  EXPECT_EQ(to_text(config), before);
}

TEST(SourceError, KeepsThePlaceApartSoThatProgramsCanNameTheKindBetween) {
  try {
    load_text("\noptimizer {\n  learning_rat: 1\n}\n", "configs/my_run.txtpb");
    FAIL();
  } catch (const SourceError& e) {
    EXPECT_EQ(e.where(), "configs/my_run.txtpb:3:3");
    EXPECT_EQ(e.problem(),
              "optimizer has no field \"learning_rat\". Did you mean \"learning_rate\"?");
    EXPECT_EQ(e.what(), e.where() + ": " + e.problem());
    EXPECT_STREQ(e.kind(), "ConfigError");
  }
}

}  // namespace
}  // namespace lockstep::config
