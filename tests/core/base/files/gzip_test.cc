#include "core/base/files/gzip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {
namespace {

std::string unpacked(std::vector<std::byte> packed) {
  size_t at = 0;
  const ByteSource source = gunzipped(
      [&](std::span<std::byte> into) {
        const size_t count = std::min(into.size(), packed.size() - at);
        std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(at), count, into.begin());
        at += count;
        return count;
      },
      "packed");
  std::string text;
  std::vector<std::byte> piece(1000);
  while (const size_t got = source(piece)) {
    text.append(reinterpret_cast<const char*>(piece.data()), got);
  }
  return text;
}

TEST(Gzip, UnpacksToWhatWasPacked) {
  std::string random;
  for (uint32_t i = 0, bits = 1; i < 300'000; ++i, bits = bits * 1664525 + 1013904223) {
    random += static_cast<char>(bits >> 24);
  }
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(1 << 20, 'x'), random}) {
    EXPECT_EQ(unpacked(gzipped(std::as_bytes(std::span(text)))), text);
  }
}

TEST(Gzip, EqualBytesArePackedEqually) {
  const std::string text(5000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(gzipped(bytes), gzipped(bytes));
  EXPECT_LT(gzipped(bytes).size(), 100u);
}

}  // namespace
}  // namespace lockstep
