#include "data/token_shards.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using Ids = std::vector<uint32_t>;

Ids ids_of(const TokenArray& tokens) {
  Ids ids;
  for (int64_t i = 0; i < tokens.size(); ++i) ids.push_back(tokens[i]);
  return ids;
}

class TokenShardsTest : public testing::Test {
 protected:
  std::string written(const Ids& ids, ShardFormat format) const {
    write_shard(folder_ / "shard", format, TokenArray::copy_of(ids));
    return file_content(folder_ / "shard");
  }
  std::string refusal(const std::string& bytes, ShardFormat format = ShardFormat::kLlmc) const {
    return message_of<DataError>(
        [&] { parse_shard(std::as_bytes(std::span(bytes)), format, "shard.bin"); });
  }
  TemporaryDirectory folder_;
};

std::string with_word(std::string bytes, size_t index, int32_t value) {
  std::memcpy(bytes.data() + index * 4, &value, 4);
  return bytes;
}

TEST_F(TokenShardsTest, LlmcFilesAreLaidOutAsLlmcReadsThem) {
  const std::string narrow = written({1, 2, 50256}, ShardFormat::kLlmc);
  ASSERT_EQ(narrow.size(), 1024u + 6);
  EXPECT_EQ(narrow.substr(0, 12), std::string("\x88\xd8\x34\x01\1\0\0\0\3\0\0\0", 12));
  EXPECT_EQ(narrow.substr(12, 1012), std::string(1012, '\0'));
  EXPECT_EQ(narrow.substr(1024), std::string("\1\0\2\0\x50\xc4", 6));
  const std::string wide = written({1, 65536}, ShardFormat::kLlmc);
  ASSERT_EQ(wide.size(), 1024u + 8);
  EXPECT_EQ(wide.substr(0, 12), std::string("\xa1\xd9\x34\x01\7\0\0\0\2\0\0\0", 12));
  EXPECT_EQ(wide.substr(1024), std::string("\1\0\0\0\0\0\1\0", 8));
}

TEST_F(TokenShardsTest, NanogptFilesAreTheTokensAlone) {
  EXPECT_EQ(written({1, 65535}, ShardFormat::kNanogpt), std::string("\1\0\xff\xff", 4));
  EXPECT_TRUE(says(message_of<DataError>([&] { written({65536}, ShardFormat::kNanogpt); }),
                   "ids below 65536"));
}

TEST_F(TokenShardsTest, LongShardsHoldAllTheirTokens) {
  Ids ids(200'001);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i * 7 % 65'000);
  for (const uint32_t largest : {65'001U, 70'000U}) {  // in two bytes each, and in four
    ids.back() = largest;
    written(ids, ShardFormat::kLlmc);
    EXPECT_EQ(ids_of(open_shard(folder_ / "shard", ShardFormat::kLlmc).tokens), ids);
  }
  const std::string bytes(200'001, 'b');  // widened a part at a time
  const TokenArray narrow(std::as_bytes(std::span(bytes)), 1, nullptr);
  write_shard(folder_ / "shard", ShardFormat::kNanogpt, narrow);
  EXPECT_EQ(ids_of(open_shard(folder_ / "shard", ShardFormat::kNanogpt).tokens),
            Ids(bytes.size(), 'b'));
}

TEST_F(TokenShardsTest, AMappedShardOutlivesItsFile) {
  written({5, 6, 70000}, ShardFormat::kLlmc);
  const TokenShard shard = open_shard(folder_ / "shard", ShardFormat::kLlmc);
  std::filesystem::remove(folder_ / "shard");
  EXPECT_EQ(ids_of(shard.tokens), (Ids{5, 6, 70000}));
  EXPECT_EQ(shard.version, 7);
}

TEST_F(TokenShardsTest, DamageIsNamedWithFileAndByte) {
  const std::string good = written({1, 2, 3}, ShardFormat::kLlmc);
  EXPECT_EQ(refusal(good), "(nothing thrown)");
  EXPECT_TRUE(says(refusal(""), "shard.bin: expected a header of 1024 bytes"));
  EXPECT_TRUE(says(refusal(good.substr(0, 1023)), "the file ends at byte 1023"));
  EXPECT_TRUE(
      says(refusal(good.substr(0, 1029)),
           "names 3 tokens of 2 bytes (at byte 8), so expected a file of 1030 bytes, but it "
           "ends at byte 1029"));
  EXPECT_TRUE(says(refusal(good + "xx"), "ends at byte 1032"));
  EXPECT_TRUE(says(refusal(with_word(good, 0, 7)),
                   "shard.bin: wrong magic at byte 0: expected "
                   "20240520 or 20240801, got 7"));
  EXPECT_TRUE(says(refusal(with_word(good, 0, 20240326)), "The file is a model of llm.c"));
  EXPECT_TRUE(says(refusal(with_word(good, 0, static_cast<int32_t>(0x88d83401))), "big-endian"));
  EXPECT_TRUE(says(refusal(with_word(good, 1, 2)), "wrong version at byte 4: expected 1"));
  EXPECT_TRUE(says(refusal(with_word(good, 2, -3)), "wrong number of tokens at byte 8"));
  EXPECT_TRUE(says(refusal(with_word(good, 2, 0)), "at least 1, got 0"));
}

TEST_F(TokenShardsTest, HeaderlessFilesMustHoldWholeTokens) {
  const auto refused = [&](const std::string& bytes) {
    return refusal(bytes, ShardFormat::kNanogpt);
  };
  EXPECT_TRUE(says(refused(""), "the file is empty"));
  EXPECT_TRUE(says(refused("abc"), "ends at byte 3, within one"));
  EXPECT_TRUE(says(refused(written({1}, ShardFormat::kLlmc)), "read it with the format llmc"));
}

TEST_F(TokenShardsTest, MissingFilesAndFoldersAreNamed) {
  const auto open = [&](const std::filesystem::path& path) {
    return message_of<DataError>([&] { open_shard(path, ShardFormat::kLlmc); });
  };
  EXPECT_TRUE(says(open(folder_ / "gone"), "gone: No such file or directory"));
  EXPECT_TRUE(says(open(folder_.path()), "Is a directory"));
  EXPECT_TRUE(says(open("/dev/null"), "/dev/null: it is not a regular file but a device"));
}

TEST_F(TokenShardsTest, NoTokensAreNotWritten) {
  EXPECT_TRUE(says(message_of<DataError>([&] { written({}, ShardFormat::kLlmc); }), "no tokens"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "shard"));
}

RC_GTEST_PROP(TokenShards, WhatIsWrittenIsRead, ()) {
  static const TemporaryDirectory folder;
  const auto limit = *rc::gen::element<uint32_t>(256, 65536, 65537, 1U << 31);
  const auto ids =
      *rc::gen::nonEmpty(rc::gen::container<Ids>(rc::gen::inRange<uint32_t>(0, limit)));
  const bool narrow = std::ranges::all_of(ids, [](uint32_t id) { return id < 65536; });
  const ShardFormat format =
      narrow && *rc::gen::arbitrary<bool>() ? ShardFormat::kNanogpt : ShardFormat::kLlmc;
  write_shard(folder / "s", format, TokenArray::copy_of(ids));
  RC_ASSERT(ids_of(open_shard(folder / "s", format).tokens) == ids);
}

RC_GTEST_PROP(TokenShards, DamagedFilesGiveDataErrorOrWholeTokens, ()) {
  static const TemporaryDirectory folder;
  const auto ids =
      *rc::gen::nonEmpty(rc::gen::container<Ids>(rc::gen::inRange<uint32_t>(0, 70000)));
  write_shard(folder / "s", ShardFormat::kLlmc, TokenArray::copy_of(ids));
  std::string bytes = file_content(folder / "s");
  // Most of a header is padding, so half of the damage goes to its first 16 bytes.
  const size_t end = *rc::gen::arbitrary<bool>() ? 16 : bytes.size();
  const auto at = *rc::gen::inRange<size_t>(0, end);
  if (*rc::gen::arbitrary<bool>()) {
    bytes.resize(at);
  } else {
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << *rc::gen::inRange(0, 8));
  }
  for (const ShardFormat format : {ShardFormat::kLlmc, ShardFormat::kNanogpt}) {
    try {
      const TokenShard shard = parse_shard(std::as_bytes(std::span(bytes)), format, "s");
      RC_ASSERT(std::ssize(ids_of(shard.tokens)) > 0);
    } catch (const DataError& error) {
      RC_ASSERT(std::string(error.what()).starts_with("[data] s: "));
    }
  }
}

TEST(TokenArray, TokensOfOneByteAreStoredInTwo) {
  const std::string text = "b\xff\n";
  const TokenArray bytes(std::as_bytes(std::span(text)), 1, nullptr);
  EXPECT_EQ(ids_of(bytes), (Ids{'b', 255, '\n'}));
  std::vector<int64_t> out(2);
  EXPECT_EQ(bytes.read(1, out), 255);
  const TemporaryDirectory folder;
  write_shard(folder / "one", ShardFormat::kLlmc, bytes);
  write_shard(folder / "two", ShardFormat::kLlmc, TokenArray::copy_of(ids_of(bytes)));
  EXPECT_EQ(file_content(folder / "one"), file_content(folder / "two"));
}

TEST(TokenArray, SlicesAndReadsAgree) {
  Ids ids(100);
  std::iota(ids.begin(), ids.end(), 65500);
  const TokenArray tokens = TokenArray::copy_of(ids).slice(10, 80);
  EXPECT_EQ(tokens.size(), 80);
  EXPECT_EQ(tokens[0], 65510u);
  std::vector<int64_t> out(5);
  EXPECT_EQ(tokens.read(75, out), 65589);
  EXPECT_EQ(out, (std::vector<int64_t>{65585, 65586, 65587, 65588, 65589}));
  EXPECT_THROW(tokens.read(76, out), InternalError);
}

}  // namespace
}  // namespace lockstep::train
