// `lockstep coordinate-check` as a user calls it.

#include <nlohmann/json.hpp>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Json = nlohmann::json;

class CoordinateVerb : public Program {
 protected:
  CoordinateVerb() {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("{} quick brown foxes. ", i % 37);
    put_file(folder_ / "text.txt", text);
    put_model("run.txtpb", "gpt2 { context_length: 16 layers: 2 heads: 2 width: 32 }");
    put_model(
        "llama.txtpb",
        "llama { context_length: 16 layers: 2 heads: 4 kv_heads: 2 width: 32 hidden_width: 96 "
        "}");
  }
  void put_model(const std::string& name, const std::string& model) const {
    put_file(folder_ / name, "model { " + model +
                                 " }\n"
                                 "data { text { path: \"text.txt\" held_out_bytes: 200 } }\n"
                                 "optimizer { learning_rate: 0.003 }\n"
                                 "train { steps: 100 batch_size: 8 }\n");
  }
  Result check(const std::string& arguments) const {
    return run("coordinate-check --widths 64,128,256 --seeds 2 " + arguments);
  }
  std::string verdict(const Json& found, const std::string& layer) const {
    for (const Json& each : found["layers"]) {
      if (each["layer"] == layer) return each["verdict"];
    }
    return "no such layer";
  }
};

TEST_F(CoordinateVerb, ActivationsGrowWithoutMup) {
  for (const char* config : {"run.txtpb", "llama.txtpb"}) {
    const Result found = check(std::string(config) + " --json");
    EXPECT_EQ(found.status, 1) << found.errors;
    const Json json = Json::parse(found.output);
    EXPECT_EQ(json["passed"], false);
    for (const char* layer : {"attention output", "MLP output", "logits"}) {
      EXPECT_EQ(verdict(json, layer), "grows") << config << layer << found.output;
    }
  }
}

TEST_F(CoordinateVerb, ActivationsKeepTheirSizesWithMup) {
  for (const char* config : {"run.txtpb", "llama.txtpb"}) {
    const Result found = check(std::string(config) + " --set model.mup.base_width=64 -o check.svg");
    EXPECT_EQ(found.status, 0) << found.errors << found.output;
    EXPECT_TRUE(says(found.output, "\npassed\nwrote check.svg\n"));
    for (const char* layer : {"embedding", "attention output", "MLP output", "blocks", "logits"}) {
      EXPECT_TRUE(says(found.output, layer)) << layer;
    }
    EXPECT_TRUE(says(file_content(folder_ / "check.svg"), "attention output: constant"));
  }
}

TEST_F(CoordinateVerb, EveryOptimizerWithARulePasses) {
  for (const char* rule :
       {"optimizer.lion={} --set optimizer.learning_rate=0.001", "optimizer.muon={}",
        "optimizer.sgd={} --set optimizer.learning_rate=0.1 --set optimizer.clip_grad_norm=0"}) {
    const Result found =
        check(std::string("run.txtpb --set model.mup.base_width=64 --set ") + rule);
    EXPECT_EQ(found.status, 0) << rule << found.errors << found.output;
  }
}

TEST_F(CoordinateVerb, WiderModelsMayHaveMoreHeads) {
  const Result found =
      check("llama.txtpb --more-heads --set model.mup.base_width=64 --set model.mup.base_heads=8");
  EXPECT_EQ(found.status, 0) << found.errors << found.output;
  const Result refused = check("run.txtpb --more-heads --set model.mup.base_width=64");
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(says(refused.errors, "expected model.mup.base_heads")) << refused.errors;
}

TEST_F(CoordinateVerb, TheSameSeedsGiveTheSameNumbers) {
  const std::string first = check("run.txtpb --json").output;
  EXPECT_EQ(check("run.txtpb --json").output, first);
  EXPECT_NE(check("run.txtpb --json --set seed=9").output, first);
}

TEST_F(CoordinateVerb, NoFileIsWrittenThatNobodyAskedFor) {
  check("run.txtpb");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(CoordinateVerb, BadInputIsRefused) {
  const auto refusal = [&](const std::string& arguments) {
    const Result result = run("coordinate-check " + arguments);
    EXPECT_EQ(result.status, 2) << arguments << result.output;
    return result.errors;
  };
  EXPECT_TRUE(says(refusal("run.txtpb --widths 32"), "at least two different widths"));
  EXPECT_TRUE(says(refusal("run.txtpb --widths 32,x"), "expected widths above 0"));
  EXPECT_TRUE(says(refusal("run.txtpb --widths 0,32"), "expected widths above 0"));
  EXPECT_TRUE(says(refusal("llama.txtpb --widths 32,66"), "4 heads do not divide the width 66"));
  EXPECT_TRUE(says(refusal("run.txtpb --more-heads --widths 32,40"),
                   "a model of width 40 would have 2.5 heads, as one of width 32 has 2"));
  EXPECT_TRUE(says(refusal("run.txtpb --set model.mup.base_width=33"), "do not divide"));
  EXPECT_TRUE(says(refusal("run.txtpb -o check.gif"), "no ending that says what to write"));
  put_file(folder_ / "mlp.txtpb",
           "model { mlp { inputs: 4 classes: 2 } } data { random {} } train { steps: 2 batch_size: "
           "2 }");
  EXPECT_TRUE(says(refusal("mlp.txtpb"), "model.mlp is no transformer"));
}

}  // namespace
}  // namespace lockstep::launcher
