// Runs every file of the corpora through its parser. Files named good_* must be accepted and bad_*
// refused, so that a parser that accepts or refuses everything fails.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "tests/core/base/temporary_directory.h"
#include "tests/fuzz/growth.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path& corpora() {
  static const fs::path kFolder = LOCKSTEP_SOURCE_DIR "/tests/fuzz/corpus";
  return kFolder;
}

Outcome run(const Target& target, const std::string& bytes) {
  return target.run({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, FilesAreTakenAndRefusedAsTheirNamesSay) {
  std::map<Outcome, int> files;
  for (const auto& entry : fs::directory_iterator(corpora() / GetParam().name)) {
    const std::string name = entry.path().filename().string();
    const bool good = name.starts_with("good_");
    ASSERT_TRUE(good || name.starts_with("bad_")) << entry.path();
    const Outcome expected = good ? Outcome::kAccepted : Outcome::kRefused;
    try {
      EXPECT_EQ(run(GetParam(), train::file_content(entry.path())), expected) << entry.path();
    } catch (const std::exception& error) {
      ADD_FAILURE() << entry.path() << ": " << error.what();
    }
    ++files[expected];
  }
  EXPECT_GE(files[Outcome::kAccepted], 1);
  EXPECT_GE(files[Outcome::kRefused], 1);
}

TEST_P(Corpus, NoFileThatIsCutShortOrHasAByteChangedBreaksTheParser) {
  for (const auto& entry : fs::directory_iterator(corpora() / GetParam().name)) {
    const std::string whole = train::file_content(entry.path());
    // About 64 positions of every file, plus each of the first 16 bytes, where headers are.
    const size_t step = std::max<size_t>(1, whole.size() / 64);
    for (size_t at = 0; at < whole.size(); at += at < 16 ? 1 : step) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
      for (const std::string& input : {whole.substr(0, at), changed}) {
        try {
          run(GetParam(), input);
        } catch (const std::exception& error) {
          ADD_FAILURE() << entry.path() << " at byte " << at << ": " << error.what();
        }
      }
    }
  }
}

TEST_P(Corpus, NoFileThatIsGrownToAGreatLengthOrDepthBreaksTheParser) {
  constexpr size_t kBytes = 400'000;  // more than 60,000 nested objects
  uint64_t number = 0;
  for (const auto& entry : fs::directory_iterator(corpora() / GetParam().name)) {
    const std::string whole = train::file_content(entry.path());
    for (uint64_t way = 0; way < kWaysToGrow; ++way, ++number) {
      // Multiples of a prime spread over the positions and lengths of stretches.
      const uint64_t choice = way + kWaysToGrow * number * 7919;
      const auto* bytes = reinterpret_cast<const uint8_t*>(whole.data());
      try {
        run(GetParam(), grown({bytes, whole.size()}, choice, kBytes));
      } catch (const std::exception& error) {
        ADD_FAILURE() << entry.path() << " grown by choice " << choice << ": "
                      << std::string(error.what()).substr(0, 1000);
      }
    }
  }
}

TEST(Growth, NestsOrRepeatsAStretchUpToALength) {
  const std::string text = "abc";
  const Input input(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  EXPECT_EQ(grown(input, 0, 7), "aaaaabc");
  EXPECT_EQ(grown(input, 1, 7), "[[a]]bc");
  EXPECT_EQ(grown(input, 2, 9), "{\"a\":a}bc");
  EXPECT_EQ(grown(input, 3 + kWaysToGrow, 7), "a((b))c");
  EXPECT_EQ(grown(input, 0, 3), "abc");
  EXPECT_EQ(grown({}, 1, 100), "");
}

INSTANTIATE_TEST_SUITE_P(Parsers, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Corpora, BelongToTargetsAndAreSmall) {
  for (const auto& entry : fs::recursive_directory_iterator(corpora())) {
    if (entry.is_directory()) continue;
    const std::string folder = entry.path().parent_path().filename().string();
    EXPECT_TRUE(std::ranges::any_of(targets(), [&](const Target& target) {
      return folder == target.name;
    })) << entry.path();
    EXPECT_LT(entry.file_size(), 4096u) << entry.path();
  }
}

}  // namespace
}  // namespace lockstep::fuzz
