#include "data/token_cache.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

constexpr ContentHash kKey{1, 2};

void store(const TokenCache& cache, std::string_view text, const ContentHash& key = kKey) {
  cache.store("tokens", key,
              std::array{std::as_bytes(std::span(text.substr(0, 3))),
                         std::as_bytes(std::span(text.substr(3)))});
}

std::string found(const TokenCache& cache, const ContentHash& key = kKey) {
  const auto entry = cache.find("tokens", key);
  if (!entry) return "(none)";
  return {reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size()};
}

TEST(TokenCache, GivesBackWhatWasStoredUnderTheSameKeyOnly) {
  const TemporaryDirectory folder;
  const TokenCache cache(folder / "a/b");
  EXPECT_EQ(found(cache), "(none)");
  store(cache, "content");
  EXPECT_EQ(found(cache), "content");
  EXPECT_EQ(found(cache, {2, 1}), "(none)");
  EXPECT_FALSE(cache.find("other", kKey));
  store(cache, "changed");
  EXPECT_EQ(found(cache), "changed");
}

TEST(TokenCache, ADamagedEntryCountsAsMissing) {
  const TemporaryDirectory folder;
  const TokenCache cache(folder.path());
  store(cache, "content");
  const auto path = cache.path("tokens", kKey);
  const std::string good = file_content(path);
  // Bytes 48 to 63 of the header are unused.
  for (size_t at = 0; at < good.size(); ++at) {
    if (at >= 48 && at < 64) continue;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    put_file(path, bad);
    EXPECT_EQ(found(cache), "(none)") << "byte " << at;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    put_file(path, good.substr(0, size));
    EXPECT_EQ(found(cache), "(none)") << "cut to " << size;
  }
  put_file(path, good);
  EXPECT_EQ(found(cache), "content");
}

TEST(TokenCache, AnEntryUnderAnothersNameIsNotTaken) {
  const TemporaryDirectory folder;
  const TokenCache cache(folder.path());
  store(cache, "content");
  std::filesystem::copy(cache.path("tokens", kKey), cache.path("tokens", {5, 6}));
  EXPECT_EQ(found(cache, {5, 6}), "(none)");
}

TEST(TokenCache, AFolderThatCannotBeWrittenIsDoneWithout) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "");
  const TokenCache cache(folder / "file/below");
  EXPECT_NO_THROW(store(cache, "content"));
  EXPECT_EQ(found(cache), "(none)");
  const TokenCache none({});
  store(none, "content");
  EXPECT_EQ(found(none), "(none)");
}

TEST(ContentHash, PartsAreToldApart) {
  const auto hash = [](std::string_view a, std::string_view b) {
    return ContentHasher().add(a).add(b).result();
  };
  EXPECT_EQ(hash("ab", "c"), hash("ab", "c"));
  EXPECT_NE(hash("ab", "c"), hash("a", "bc"));
  EXPECT_NE(hash("", ""), ContentHasher().add("").result());
  EXPECT_EQ((ContentHash{0x1, 0xab}.hex()), "00000000000000ab0000000000000001");
}

}  // namespace
}  // namespace lockstep::train
