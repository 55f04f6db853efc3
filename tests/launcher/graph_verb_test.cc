#include <cstdlib>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class Graph : public Program {
 protected:
  std::string text_of(const std::string& name) const { return file_content(folder_ / name); }
};

TEST_F(Graph, PrintsWhatTheLossRecordsWithParametersByName) {
  put_config("run.txtpb");
  const Result result = run("graph run.txtpb");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "digraph backward {"));
  EXPECT_TRUE(says(result.output, "wte"));
  EXPECT_TRUE(says(result.output, "AccumulateGrad"));
  EXPECT_TRUE(says(result.output, "Backward0"));
}

TEST_F(Graph, WritesADotFile) {
  put_config("run.txtpb");
  EXPECT_EQ(run("graph run.txtpb -o loss.dot").status, 0);
  EXPECT_EQ(text_of("loss.dot"), run("graph run.txtpb").output);
}

TEST_F(Graph, DrawsAnSvg) {
  if (std::system("dot -V 2>/dev/null") != 0) GTEST_SKIP() << "Graphviz is not installed";
  put_config("run.txtpb");
  const Result result = run("graph run.txtpb -o loss.svg");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(text_of("loss.svg"), "<svg"));
  EXPECT_TRUE(says(text_of("loss.svg"), "AccumulateGrad"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "loss.svg.dot"));
}

TEST_F(Graph, FoldsEqualLayers) {
  put_config("run.txtpb");
  const std::string folded = run("graph run.txtpb --set model.gpt2.layers=8").output;
  EXPECT_TRUE(says(folded, "6 more blocks of "));
  const std::string whole = run("graph run.txtpb --set model.gpt2.layers=8 --every-block").output;
  EXPECT_FALSE(says(whole, "more blocks"));
  EXPECT_TRUE(says(whole, "h.4.mlp.c_fc.weight"));
  EXPECT_FALSE(says(folded, "h.4.mlp.c_fc.weight"));
  EXPECT_TRUE(says(folded, "h.0.mlp.c_fc.weight"));
  EXPECT_TRUE(says(folded, "h.7.mlp.c_fc.weight"));
}

TEST_F(Graph, OfCompiledBlocksIsTextAPictureOrJson) {
  put_config("run.txtpb");
  const Result text = run("graph run.txtpb --compiled");
  EXPECT_EQ(text.status, 0) << text.errors;
  EXPECT_TRUE(says(text.output, "# Gpt2Block, forward\ngraph("));
  EXPECT_TRUE(says(text.output, "# Gpt2Block, backward\ngraph("));
  EXPECT_EQ(run("graph run.txtpb --compiled -o blocks.dot").status, 0);
  EXPECT_TRUE(says(text_of("blocks.dot"), "digraph compiled {"));
  EXPECT_EQ(run("graph run.txtpb --compiled -o blocks.json").status, 0);
  EXPECT_TRUE(says(text_of("blocks.json"), "\"name\": \"Gpt2Block, forward\""));
  const Result without = run("graph run.txtpb -o loss.json");
  EXPECT_EQ(without.status, 2);
  EXPECT_TRUE(says(without.errors, "--compiled"));
}

TEST_F(Graph, SaysWhatItCannotWrite) {
  put_config("run.txtpb");
  const Result no_suffix = run("graph run.txtpb -o picture");
  EXPECT_EQ(no_suffix.status, 2);
  EXPECT_TRUE(says(no_suffix.errors, "ending"));
  const Result no_folder = run("graph run.txtpb -o missing/loss.dot");
  EXPECT_EQ(no_folder.status, 3);
  EXPECT_TRUE(says(no_folder.errors, "missing/loss.dot"));
}

}  // namespace
}  // namespace lockstep::launcher
