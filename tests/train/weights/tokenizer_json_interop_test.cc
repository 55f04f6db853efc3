// tokenizer.json, compared with the package that writes it.

#include <gtest/gtest.h>

#include "tests/data/tokenizers/recorded_tokenizers.h"
#include "tests/train/python.h"

namespace lockstep::train {
namespace {

constexpr int kTexts = 8500;
constexpr int kTokenizers = 7;  // that record_tokenizers.py makes

TEST(TokenizerJsonInterop, TextsHaveTheIdsOfThePackage) {
  const std::string missing = python_lacks("tokenizers", "tokenizers");
  if (!missing.empty()) GTEST_SKIP() << missing;
  const TemporaryDirectory folder;
  run_python(folder, fmt::format(R"(
import runpy
import sys
sys.argv = ["", "recorded.json", "{}", "7"]
runpy.run_path("{}/tests/data/tokenizers/record_tokenizers.py")
)",
                                 kTexts, LOCKSTEP_SOURCE_DIR));
  EXPECT_EQ(compare_recorded(nlohmann::json::parse(file_content(folder / "recorded.json"))),
            uint64_t{kTexts} * kTokenizers);
}

}  // namespace
}  // namespace lockstep::train
