#include "configs/annotated_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "configs/run.pb.h"
#include "tests/configs/examples.h"

namespace lockstep::config {
namespace {

struct Loaded {
  RunConfig config;
  Origins origins;
};

Loaded loaded(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Loaded result;
  merge_text(result.config, result.origins, text, "a.txtpb");
  for (const std::string& assignment : overrides) {
    set_value(result.config, result.origins, assignment);
  }
  resolve(result.config, result.origins);
  return result;
}

/// The line of `text` that sets `field`.
std::string line_of(const std::string& text, const std::string& field) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty()) continue;
    const std::string_view written = std::string_view(line).substr(line.find_first_not_of(' '));
    if (written.starts_with(field + ":") || written.starts_with(field + " {}")) return line;
  }
  return "no line";
}

TEST(AnnotatedText, SaysWhereEveryValueCameFrom) {
  const Loaded run = loaded(kSmallest, {"train.log_every=2"});
  const std::string text = annotated_text(run.config, run.origins);
  EXPECT_TRUE(line_of(text, "steps").ends_with("# a.txtpb:3:9")) << text;
  EXPECT_TRUE(line_of(text, "log_every").ends_with("# --set train.log_every=2"));
  EXPECT_TRUE(line_of(text, "beta1").ends_with("# default"));
  EXPECT_TRUE(line_of(text, "random").ends_with("# a.txtpb:2:8"));
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const bool is_value = line.find(": ") != line.npos && !line.starts_with("#");
    EXPECT_TRUE(!is_value || line.find("  # ") != line.npos) << line;
  }
}

TEST(AnnotatedText, SaysWhatAValueWasChosenFor) {
  const Loaded run = loaded(kSmallest, {"reproducibility=BITWISE", "train.batch_size=16"});
  const std::string line = line_of(annotated_text(run.config, run.origins), "micro_batch_size");
  EXPECT_TRUE(line.find("micro_batch_size: 2 ") != line.npos) << line;
  EXPECT_TRUE(line.ends_with("# chosen: 8 leaves")) << line;
}

TEST(AnnotatedText, ReadsBackToTheSameConfig) {
  const Loaded run =
      loaded(std::string(kSmallest) + "optimizer { sgd {} }", {"name=other", "seed=3"});
  EXPECT_EQ(to_text(load_text(annotated_text(run.config, run.origins))), to_text(run.config));
}

TEST(AnnotatedText, WritesAListOnOneLineWithOneOrigin) {
  Loaded run;
  merge_text(run.config, run.origins, kSmallestClassifier, "a.txtpb");
  set_value(run.config, run.origins, "model.resnet.blocks=1");
  set_value(run.config, run.origins, "model.resnet.blocks+=[2, 3]");
  resolve(run.config, run.origins);
  const std::string text = annotated_text(run.config, run.origins);
  EXPECT_TRUE(line_of(text, "blocks").starts_with("    blocks: [1, 2, 3] ")) << text;
  EXPECT_TRUE(line_of(text, "blocks").ends_with("  # --set model.resnet.blocks+=[2, 3]")) << text;
  EXPECT_EQ(to_text(load_text(text)), to_text(run.config));
}

TEST(AnnotatedText, AnOriginStaysOnItsLine) {
  Loaded run = loaded(kSmallest);
  run.origins["seed"] = "--set seed=1\nseed: 2";
  EXPECT_EQ(load_text(annotated_text(run.config, run.origins)).seed(), 1337U);
}

TEST(Differences, AreValuesThatOneDoesNotShare) {
  const RunConfig a = load_text(kSmallest);
  const RunConfig b = load_text(std::string(kSmallest) + "seed: 7 optimizer { sgd {} }");
  EXPECT_TRUE(differences(a, a).empty());
  std::string text;
  for (const Difference& difference : differences(a, b)) {
    text += difference.path + " " + difference.a + "|" + difference.b + "\n";
  }
  EXPECT_EQ(text,
            "optimizer.adamw.beta1 0.9|\n"
            "optimizer.adamw.beta2 0.95|\n"
            "optimizer.adamw.epsilon 1e-08|\n"
            "optimizer.sgd.momentum |0.9\n"
            "optimizer.sgd.nesterov |false\n"
            "seed 1337|7\n");
}

TEST(Differences, ShowListsAsAWhole) {
  const auto with_blocks = [](const std::string& blocks) {
    RunConfig config;
    Origins origins;
    merge_text(config, origins, kSmallestClassifier, "a.txtpb");
    set_value(config, origins, "model.resnet.blocks=" + blocks);
    resolve(config, origins);
    return config;
  };
  EXPECT_TRUE(differences(with_blocks("1,2"), with_blocks("[1, 2]")).empty());
  const std::vector<Difference> found = differences(with_blocks("1,2"), with_blocks("1,2,3"));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].path, "model.resnet.blocks");
  EXPECT_EQ(found[0].a, "[1, 2]");
  EXPECT_EQ(found[0].b, "[1, 2, 3]");
}

}  // namespace
}  // namespace lockstep::config
