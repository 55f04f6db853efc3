#include "core/base/files/zstd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::file_content;
using train::message_of;
using train::put_file;
using train::says;
using train::TemporaryDirectory;

std::string unzstd(const std::string& packed) {
  const ByteSource source = zstd_unpacked(
      [&, at = size_t{0}](std::span<std::byte> into) mutable {
        const size_t count = std::min(into.size(), packed.size() - at);
        std::copy_n(reinterpret_cast<const std::byte*>(packed.data()) + at, count, into.begin());
        at += count;
        return count;
      },
      "some.zst");
  std::string text;
  std::vector<std::byte> piece(1000);
  while (const size_t got = source(piece)) {
    text.append(reinterpret_cast<const char*>(piece.data()), got);
  }
  return text;
}

/// A frame with the contents in a raw block, as RFC 8878 describes it.
std::string frame_of(const std::string& text) {
  const auto size = static_cast<uint32_t>(text.size());
  const uint32_t block = size << 3 | 1;        // the last block, raw
  std::string frame = "\x28\xb5\x2f\xfd\x20";  // one segment, whose size has one byte
  frame += static_cast<char>(size);
  for (const int shift : {0, 8, 16}) frame += static_cast<char>(block >> shift & 0xff);
  return frame + text;
}

TEST(Zstd, UnpacksFramesOneBehindTheOther) {
  if (!has_zstd()) GTEST_SKIP() << "built without libzstd";
  EXPECT_EQ(unzstd(frame_of("a text")), "a text");
  EXPECT_EQ(unzstd(frame_of("a text") + frame_of("") + frame_of(", another")), "a text, another");
  EXPECT_EQ(unzstd(""), "");
}

TEST(Zstd, UnpacksWhatTheProgramPacked) {
  if (!has_zstd()) GTEST_SKIP() << "built without libzstd";
  if (std::system("zstd --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no zstd";
  std::string text;
  for (uint32_t i = 0, bits = 1; i < 300'000; ++i, bits = bits * 1664525 + 1013904223) {
    text += i % 1000 < 500 ? 'x' : static_cast<char>(bits >> 24);
  }
  const TemporaryDirectory folder;
  put_file(folder / "text", text);
  const std::string command = "zstd -q -19 '" + (folder / "text").string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(unzstd(file_content(folder / "text.zst")), text);
}

TEST(Zstd, DamageIsNamed) {
  if (!has_zstd()) GTEST_SKIP() << "built without libzstd";
  const std::string frame = frame_of("a text");
  const auto complaint = [](const std::string& packed) {
    return message_of<DataError>([&] { unzstd(packed); });
  };
  for (size_t size = 1; size < frame.size(); ++size) {
    EXPECT_TRUE(says(complaint(frame.substr(0, size)), "some.zst: the compressed data is cut off"))
        << size;
  }
  EXPECT_TRUE(says(complaint(frame + "more"), "some.zst: the compressed data is damaged"));
  EXPECT_TRUE(says(complaint("plain text"), "some.zst: the compressed data is damaged"));
}

TEST(Zstd, AFrameThatAsksForTooMuchMemoryIsRefused) {
  if (!has_zstd()) GTEST_SKIP() << "built without libzstd";
  // A window of 2^(10 + 31) bytes.
  const std::string frame("\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", 9);
  EXPECT_TRUE(
      says(message_of<DataError>([&] { unzstd(frame); }), "Frame requires too much memory"));
}

TEST(Zstd, IsNamedWhereItIsMissing) {
  if (has_zstd()) GTEST_SKIP() << "built with libzstd";
  EXPECT_TRUE(says(message_of<DataError>([] { unzstd(""); }), "some.zst: this build of Lockstep"));
}

}  // namespace
}  // namespace lockstep
