#include "core/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockstep {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(bytes("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  // RFC 3720 B.4: 32 bytes of zeroes, and of ones.
  EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\xff'))), 0x62a8ab43U);
  EXPECT_EQ(masked_crc32c(0xe3069283U), 0xc78ab0e5U);
}

TEST(Crc32c, InstructionAndTableAgreeForEveryLengthAndAlignment) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * i + 7 * i);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size + begin <= text.size(); ++size) {
      const auto part = bytes(std::string_view(text).substr(begin, size));
      ASSERT_EQ(crc32c(part), crc32c_by_table(part)) << begin << " " << size;
    }
  }
}

TEST(Crc32c, GoesOnWhereItStopped) {
  const std::string text = "any bytes, in two parts";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view(text);
    EXPECT_EQ(crc32c(bytes(view.substr(cut)), crc32c(bytes(view.substr(0, cut)))),
              crc32c(bytes(view)));
    EXPECT_EQ(crc32c_by_table(bytes(view.substr(cut)), crc32c_by_table(bytes(view.substr(0, cut)))),
              crc32c(bytes(view)));
  }
}

}  // namespace
}  // namespace lockstep
