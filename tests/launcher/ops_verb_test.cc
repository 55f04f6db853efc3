#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/data/table_file.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Json = nlohmann::json;

class Ops : public Program {
 protected:
  Json json(const std::string& arguments) const {
    const Result result = run("ops --json " + arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return Json::parse(result.output);
  }
};

TEST_F(Ops, JsonDescribesEveryOperator) {
  const Json list = json("");
  ASSERT_TRUE(list.is_array());
  EXPECT_GT(list.size(), 100u);
  for (const Json& op : list) {
    EXPECT_EQ(op.size(), 8u) << op;
    EXPECT_TRUE(op["name"].is_string() && op["autocast"].is_string()) << op;
    EXPECT_TRUE(op["kernels"].is_array() && op["tags"].is_array()) << op;
    EXPECT_TRUE(op["differentiable"].is_boolean()) << op;
    EXPECT_THAT(op["schema"].get<std::string>(), HasSubstr("->")) << op;
    // A structured operator needs a kernel unless it computes nothing.
    const bool computes = op["tags"] != Json({"allocates_only"});
    EXPECT_EQ(op["kind"] == "structured" && computes && op["kernels"].empty(), false) << op;
  }
}

TEST_F(Ops, JsonOfOneOperatorIsAListOfOne) {
  const Json list = json("mm");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["name"], "mm");
  EXPECT_EQ(list[0]["schema"], "mm(Tensor self, Tensor mat2) -> Tensor");
  EXPECT_EQ(list[0]["kind"], "structured");
  EXPECT_THAT(list[0]["kernels"], IsSupersetOf({"CPU", "Host"}));
  EXPECT_EQ(list[0]["autocast"], "lower precision");
  EXPECT_EQ(list[0]["differentiable"], true);
}

TEST_F(Ops, FormsShareKernelsButWhatOutWritesIsNotDifferentiable) {
  EXPECT_EQ(json("mm.out")[0]["kernels"], json("mm")[0]["kernels"]);
  EXPECT_EQ(json("mm.out")[0]["differentiable"], false);
  EXPECT_EQ(json("add_.Tensor")[0]["differentiable"], true);
}

TEST_F(Ops, AFallbackIsNoKernel) {
  // The size of the result depends on elements, for which a stream cannot wait.
  EXPECT_THAT(json("nonzero")[0]["kernels"], Not(Contains("Host")));
}

TEST_F(Ops, ViewsAndCompositesHaveNoKernels) {
  EXPECT_EQ(json("transpose.int")[0]["kind"], "view");
  EXPECT_EQ(json("transpose.int")[0]["kernels"], Json::array());
  EXPECT_EQ(json("reshape")[0]["kind"], "composite");
  EXPECT_EQ(json("reshape")[0]["differentiable"], true);
  EXPECT_EQ(json("isnan")[0]["differentiable"], false);
}

#ifdef LOCKSTEP_TEST_PLUGINS
TEST_F(Ops, LoadedPluginsAreShownAndOverrideBuiltIns) {
  const std::string load = fmt::format("--load '{}/libelementwise.so'", LOCKSTEP_TEST_PLUGINS);
  const Result one = run(fmt::format("ops {} test::scale_clamp", load));
  EXPECT_EQ(one.status, 0) << one.errors;
  EXPECT_THAT(one.output, HasSubstr("test::scale_clamp(Tensor self, float scale=1"));
  EXPECT_THAT(one.output, HasSubstr("batching       its own rule"));
  EXPECT_THAT(one.output, HasSubstr("autocast       f32"));
  EXPECT_THAT(one.output, HasSubstr("kernel at "));
  EXPECT_EQ(json(load + " tanh")[0]["kernels"], json("tanh")[0]["kernels"]);
  const Result two =
      run(fmt::format("ops {} --load '{}/libplain.so' plain::affine", load, LOCKSTEP_TEST_PLUGINS));
  EXPECT_EQ(two.status, 0) << two.errors;
  for (const char* verb : {"ops", "train", "eval"}) {
    const Result missing = run(fmt::format("{} --load nothing.so mm", verb));
    EXPECT_NE(missing.status, 0) << verb;
    EXPECT_THAT(missing.errors, HasSubstr("DataError: [plugin] nothing.so: no such file")) << verb;
  }
}

TEST_F(Ops, AConfigNamesAPluginsOperatorUnderMixedPrecision) {
  train::put_table(folder_ / "table.csv", 200, 6, 3);
  put_file(folder_ / "run.txtpb",
           "precision: BF16_MIXED\n"
           "model { mlp { inputs: 6 classes: 3 activation_operator: \"test::scale_clamp\" } }\n"
           "data { table { path: \"table.csv\" held_out_rows: 40 } }\n"
           "train { steps: 5 batch_size: 8 }\n");
  const std::string load = fmt::format("--load '{}/libelementwise.so'", LOCKSTEP_TEST_PLUGINS);
  const Result trained = run(fmt::format("train {} run.txtpb --run-dir out", load));
  EXPECT_EQ(trained.status, 0) << trained.errors;
  EXPECT_EQ(run(fmt::format("eval {} out", load)).status, 0);
  const Result missing = run("train run.txtpb --run-dir other");
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.errors + missing.output, HasSubstr("model.mlp.activation_operator"));
}
#endif

}  // namespace
}  // namespace lockstep::launcher
