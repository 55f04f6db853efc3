#include "core/base/files/mapped_file.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep {
namespace {

using train::file_content;
using train::message_of;
using train::put_file;
using train::says;

TEST(MappedFile, AFileThatShrinksIsAnErrorWithItsName) {
  const train::TemporaryDirectory folder;
  const std::filesystem::path path = folder / "shard.bin";
  put_file(path, std::string(1 << 16, 'x'));
  const MappedFile file(path);
  const MappedFile other(path);
  check_mapped(file.bytes().data());
  std::filesystem::resize_file(path, 100);
  EXPECT_EQ(file.bytes().back(), std::byte{0});  // no SIGBUS
  EXPECT_EQ(file.bytes().front(), std::byte{'x'});
  EXPECT_TRUE(says(message_of<DataError>([&] { check_mapped(file.bytes().data()); }), "shard.bin"));
  // Too few bytes missing for a page, and the same bytes by another mapping.
  EXPECT_THROW(check_mapped(other.bytes().data()), DataError);
}

TEST(MappedFile, OtherAddressesAndReplacedFilesAreNoErrors) {
  const train::TemporaryDirectory folder;
  put_file(folder / "a", "12345678");
  const MappedFile file(folder / "a");
  put_file(folder / "b", "1");
  std::filesystem::rename(folder / "b", folder / "a");
  check_mapped(file.bytes().data());
  EXPECT_EQ(file.bytes().size(), 8u);
  const int elsewhere = 0;
  check_mapped(&elsewhere);
}

}  // namespace
}  // namespace lockstep
