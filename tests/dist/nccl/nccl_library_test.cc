#include "dist/nccl/nccl_library.h"

#include <gtest/gtest.h>

#include <exception>

#include "core/base/error.h"
#include "tests/core/expect_error.h"
#include "tests/dist/nccl/fake_nccl.h"

namespace lockstep::dist {
namespace {

TEST(NcclLibrary, AFileThatIsNotThereIsNamed) {
  expect_error<BackendError>([] { (void)load_nccl("/nowhere/libnccl.so.2"); },
                             "/nowhere/libnccl.so.2", "cannot be loaded", "2.19.0");
}

TEST(NcclLibrary, AnotherLibraryIsNoNccl) {
  expect_error<BackendError>([] { (void)load_nccl("libm.so.6"); }, "libm.so.6",
                             "no ncclGetVersion");
}

TEST(NcclLibrary, AnOldOneIsRefusedWithFileAndVersion) {
  FakeNccl fake;
  fake.version = 21805;
  fake.missing = {"ncclCommRegister"};  // the version must be reported first
  expect_error<BackendError>([&] { (void)fake.library(); }, "fake/libnccl.so.2", "too old",
                             "expected NCCL 2.19.0 or newer, got 2.18.5");
}

TEST(NcclLibrary, VersionsBefore29AreReadToo) {
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
  EXPECT_EQ(nccl_version_text(20900), "2.9.0");
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
}

TEST(NcclLibrary, AMissingFunctionIsNamedWithTheFile) {
  FakeNccl fake;
  fake.missing = {"ncclSend"};
  expect_error<BackendError>([&] { (void)fake.library(); }, "fake/libnccl.so.2", "2.28.9",
                             "has no ncclSend");
}

TEST(NcclLibrary, ShrinkIsOptional) {
  FakeNccl fake;
  EXPECT_TRUE(fake.library()->can_shrink());
  fake.missing = {"ncclCommShrink"};
  fake.version = 22005;
  EXPECT_FALSE(fake.library()->can_shrink());
}

TEST(NcclLibrary, ErrorsHaveNcclsWords) {
  const FakeNccl fake;
  const auto library = fake.library();
  expect_error<BackendError>(
      [&] {
        std::rethrow_exception(
            nccl_error(*library, nccl::Result::kSystemError, "ncclAllReduce", nullptr));
      },
      "ncclAllReduce failed", "fake trouble", "fake detail", "2.28.9");
  expect_error<PeerLostError>(
      [&] {
        std::rethrow_exception(
            nccl_error(*library, nccl::Result::kRemoteError, "ncclAllReduce", nullptr));
      },
      "remote process exited");
}

TEST(NcclLibrary, TheOneOfThisMachineIsLoaded) {
  std::shared_ptr<const NcclLibrary> library;
  try {
    library = load_nccl();
  } catch (const BackendError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_GE(library->version, NcclLibrary::kOldest);
  EXPECT_NE(library->file.find("libnccl"), std::string::npos) << library->file;
  EXPECT_STRNE(library->functions.ncclGetErrorString(nccl::Result::kInvalidUsage), "");
}

}  // namespace
}  // namespace lockstep::dist
