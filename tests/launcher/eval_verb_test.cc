// `lockstep eval` as a user calls it.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using Eval = Program;

TEST_F(Eval, PerplexityIsTheExponentialOfTheLoss) {
  put_config("run.txtpb");
  put_file(folder_ / "text.txtpb", "data { text { path: 'text' held_out_bytes: 100 } }\n");
  put_file(folder_ / "text", std::string(400, 'a'));
  ASSERT_EQ(run("train run.txtpb text.txtpb --run-dir out").status, 0);
  const Result told = run("eval out --json");
  ASSERT_EQ(told.status, 0) << told.errors;
  const auto json = nlohmann::json::parse(told.output);
  const double loss = json["loss"].get<double>();
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(loss), 1e-4 * std::exp(loss));
  // Each token is a byte.
  EXPECT_NEAR(json["bits_per_byte"].get<double>(), loss / std::log(2), 1e-4);
  const std::string text = run("eval out").output;
  EXPECT_TRUE(says(text, fmt::format("loss           {:.6f}\n", loss))) << text;
  EXPECT_TRUE(says(text, fmt::format("perplexity     {:.4f}\n", std::exp(loss)))) << text;
}

}  // namespace
}  // namespace lockstep::launcher
