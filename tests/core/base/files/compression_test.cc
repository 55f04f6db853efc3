#include "core/base/files/compression.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/base/philox.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

/// Text with roughly the statistics of a language: a small vocabulary in which some words are rare.
std::string sample_text(size_t bytes) {
  std::string text;
  for (uint32_t i = 0; text.size() < bytes; ++i) {
    const auto words = philox({i, 0, 0, 0}, {1, 2});
    const uint32_t rank = (words[0] % 400) * (words[1] % 400) / 400;
    for (uint32_t letters = rank + 7; letters > 0; letters /= 5) {
      text += static_cast<char>('a' + (letters * 7 + rank) % 26);
    }
    text += words[2] % 12 == 0 ? ".\n" : " ";
  }
  text.resize(bytes);
  return text;
}

size_t program_size(const TemporaryDirectory& folder, const std::string& program) {
  const std::string out = (folder / "out").string();
  const std::string command = program + " < " + (folder / "in").string() + " > " + out;
  if (std::system(command.c_str()) != 0) return 0;
  return std::filesystem::file_size(out);
}

TEST(Compression, SizesAreThoseOfThePrograms) {
  const TemporaryDirectory folder;
  const std::string text = sample_text(440'000);
  put_file(folder / "in", text);
  const auto bytes = std::as_bytes(std::span(text));
  const struct {
    const char* program;
    size_t size;
  } cases[] = {
      {"gzip -9", gzip_size(bytes)}, {"xz -9", xz_size(bytes)}, {"bzip2 -9", bzip2_size(bytes)}};
  for (const auto& [program, size] : cases) {
    const auto expected = static_cast<double>(program_size(folder, program));
    ASSERT_GT(expected, 0) << program << " is needed for this test";
    EXPECT_NEAR(static_cast<double>(size), expected, 0.001 * expected) << program;
  }
}

TEST(Compression, NothingNeedsOnlyTheHeaders) {
  EXPECT_EQ(gzip_size({}), 20u);
  EXPECT_EQ(xz_size({}), 32u);
  EXPECT_EQ(bzip2_size({}), 14u);
}

}  // namespace
}  // namespace lockstep::train
