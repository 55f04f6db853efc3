// tokenizer.json, compared with the package that writes it.

#include <gtest/gtest.h>

#include "tests/data/tokenizers/recorded_tokenizers.h"
#include "tests/train/python.h"

namespace lockstep::train {
namespace {

TEST(TokenizerJsonInterop, TextsHaveTheIdsOfThePackage) {
  const std::string missing = python_lacks("tokenizers", "tokenizers");
  if (!missing.empty()) GTEST_SKIP() << missing;
  const TemporaryDirectory folder;
  run_python(folder, fmt::format(R"(
import runpy
import sys
sys.argv = ["", "recorded.json", "8500", "7"]
runpy.run_path("{}/tests/data/tokenizers/record_tokenizers.py")
)",
                                 LOCKSTEP_SOURCE_DIR));
  EXPECT_EQ(compare_recorded(nlohmann::json::parse(file_content(folder / "recorded.json"))),
            51'000U);
}

}  // namespace
}  // namespace lockstep::train
