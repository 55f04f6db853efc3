// The report of an OutOfMemoryError.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/current_scope.h"
#include "core/base/error.h"
#include "core/memory/caching_allocator.h"
#include "tests/core/expect_error.h"
#include "tests/core/memory/allocator_setup.h"
#include "tests/core/memory/book_memory.h"
#include "tests/core/memory/fake_memory.h"

namespace lockstep {
namespace {

constexpr Stream kOtherStream{kCPU, 1};

struct OutOfMemory : ::testing::Test {
  FakeMemory memory{32 * kMiB};
  CachingAllocator allocator{kCPU, memory};
};

TEST_F(OutOfMemory, ObserversSeeTheReportBeforeItIsThrown) {
  size_t seen = 0;
  std::string text;
  const int number = allocator.add_oom_observer([&](size_t bytes, const std::string& report) {
    seen = bytes;
    text = report;
    allocator.free(allocator.allocate(1, kStream));  // observers are called without the lock
  });
  expect_error<OutOfMemoryError>([&] { allocator.allocate(33 * kMiB, kStream); },
                                 "[allocator] out of memory: 33.0 MiB", "above the budget");
  EXPECT_EQ(seen, 33 * kMiB);
  EXPECT_NE(text.find("Budget 32.0 MiB"), std::string::npos) << text;
  EXPECT_EQ(allocator.memory_stats().num_ooms, 1);
  allocator.remove_oom_observer(number);
}

TEST_F(OutOfMemory, TheReportNamesTheLargestHoldersAndWhatWouldHelp) {
  const std::string module = "h.3.attn";
  Block held;
  {
    const ModuleScope scope(module);
    held = allocator.allocate(20 * kMiB, kStream);
  }
  const PoolId pool = allocator.create_pool();
  {
    const PoolGuard guard(allocator, pool);
    allocator.allocate(6 * kMiB, kStream);
  }
  expect_error<OutOfMemoryError>([&] { allocator.allocate(10 * kMiB, kStream); },
                                 "20.0 MiB in 1 block", "h.3.attn", "private pools hold 6.0 MiB",
                                 "Pool 1 keeps 6.0 MiB", "lower batch size");
  allocator.set_options(plain_segments());
  allocator.free(held);
}

TEST_F(OutOfMemory, TheReportAddsUpWhereTheMemoryIs) {
  FakeMemory plain(32 * kMiB, /*has_granules=*/false);
  CachingAllocator native(kCPU, plain);
  native.allocate(512, kStream);
  native.allocate(512, kOtherStream);
  native.allocate(20 * kMiB, kStream);
  expect_error<OutOfMemoryError>(
      [&] { native.allocate(20 * kMiB, kStream); }, "20.0 MiB (20971520 bytes) asked for",
      "Budget 32.0 MiB, of which 24.0 MiB is reserved; the device itself has 8.0 MiB left.",
      "On loan 20.0 MiB; given back but in use by other streams 0 bytes; cached 4.0 MiB, of which "
      "4.0 MiB in pieces too small for this request and 2.0 MiB with other streams; private pools "
      "hold 0 bytes.",
      "20.0 MiB in 3 blocks: no operator");
}

TEST_F(OutOfMemory, TheReportGivesLargeAmountsInGib) {
  BookMemory large(6144 * kMiB);
  CachingAllocator on_book(kBookDevice, large);
  const Block held = on_book.allocate(2560 * kMiB, kBookStream);
  expect_error<OutOfMemoryError>([&] { on_book.allocate(4096 * kMiB, kBookStream); },
                                 "4.00 GiB (4294967296 bytes) asked for", "Budget 6.00 GiB",
                                 "2.50 GiB in 1 block");
  on_book.free(held);
}

TEST_F(OutOfMemory, TheReportAdvisesToJoinPiecesWhereTheDeviceCan) {
  for (const bool has_granules : {false, true}) {
    FakeMemory small(32 * kMiB, has_granules);
    CachingAllocator native(kCPU, small, plain_segments());
    std::vector<Block> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(native.allocate(10 * kMiB, kStream));
    for (const int i : {0, 2}) native.free(blocks[static_cast<size_t>(i)]);
    const Block half = native.allocate(5 * kMiB, kStream);
    const Block other_half = native.allocate(6 * kMiB, kStream);
    try {
      native.allocate(8 * kMiB, kStream);
      ADD_FAILURE() << "there is room";
    } catch (const OutOfMemoryError& error) {
      const bool advises =
          std::string(error.what()).find("expandable_segments:True") != std::string::npos;
      EXPECT_EQ(advises, has_granules) << error.what();
    }
    for (const Block& block : {half, other_half, blocks[1]}) native.free(block);
  }
}

TEST_F(OutOfMemory, TheReportSaysWhoAskedAndWhatWouldHelp) {
  struct Named : OperatorName {
    explicit Named(const char* name) { set_name(name); }
  };
  const Named mm("mm"), add("add");
  const auto report_of = [&](CachingAllocator& of, size_t bytes, const Stream& stream) {
    try {
      of.allocate(bytes, stream);
    } catch (const OutOfMemoryError& error) {
      return std::string(error.what());
    }
    return std::string("it was served");
  };
  EXPECT_EQ(
      report_of(allocator, 32 * kMiB + 1, kStream),
      "[allocator] out of memory: 32.0 MiB (33554433 bytes) asked for on cpu stream 0, but "
      "that much is not to be had.\n"
      "  Budget 32.0 MiB, of which 0 bytes is reserved; the device itself has 32.0 MiB left.\n"
      "  On loan 0 bytes; given back but in use by other streams 0 bytes; cached 0 bytes, of "
      "which 0 bytes in pieces too small for this request and 0 bytes with other streams; "
      "private pools hold 0 bytes.\n"
      "  What would help:\n"
      "    The request alone is above the budget: lower the batch size or split the tensor.");
  const PoolId pool = allocator.create_pool();
  {
    const ModuleScope module("h.1");
    const OperatorScope scope(mm);
    allocator.allocate(4 * kMiB, kStream);
    allocator.allocate(4 * kMiB, kStream);
  }
  {
    const OperatorScope scope(add);
    allocator.allocate(1536, kStream);
  }
  std::string text;
  {
    const PoolGuard guard(allocator, pool);
    const ModuleScope module("h.2");
    const OperatorScope scope(mm);
    allocator.allocate(2 * kMiB, kStream);
    text = report_of(allocator, 24 * kMiB, kStream);
  }
  EXPECT_EQ(
      text,
      "[allocator] out of memory: 24.0 MiB (25165824 bytes) asked for on cpu stream 0 by mm "
      "in h.2 from pool 1, but that much is not to be had.\n"
      "  Budget 32.0 MiB, of which 12.0 MiB is reserved; the device itself has 20.0 MiB left.\n"
      "  On loan 10.0 MiB; given back but in use by other streams 0 bytes; cached 2.0 MiB, of "
      "which 2.0 MiB in pieces too small for this request and 2.0 MiB with other streams; "
      "private pools hold 2.0 MiB.\n"
      "  Largest holders:\n"
      "    8.0 MiB in 2 blocks: mm in h.1\n"
      "    2.0 MiB in 1 block: mm in h.2\n"
      "    1.5 KiB in 1 block: add\n"
      "  What would help:\n"
      "    A lower batch size, activation checkpoints, or freeing one of the holders above.");
}

TEST_F(OutOfMemory, TheReportNamesEightHolders) {
  for (int i = 0; i < 9; ++i) {
    const std::string module = "h." + std::to_string(i);
    const ModuleScope scope(module);
    allocator.allocate(512 * static_cast<size_t>(i + 1), kStream);
  }
  try {
    allocator.allocate(32 * kMiB, kStream);
    ADD_FAILURE() << "there is room";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("4.5 KiB in 1 block: no operator in h.8"), std::string::npos) << text;
    EXPECT_NE(text.find("in h.1\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("in h.0"), std::string::npos) << text;
    EXPECT_LT(text.find("in h.8"), text.find("in h.7"));
  }
}

TEST_F(OutOfMemory, TheReportNamesTheCallSiteOfALargeBlock) {
  AllocatorOptions options;
  options.record_call_sites = true;
  allocator.set_options(options);
  allocator.allocate(20 * kMiB, kStream);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(20 * kMiB, kStream); },
                                 "20.0 MiB in 1 block: no operator, called from ");
}

TEST_F(OutOfMemory, TheReportTellsPiecesThatLiveBlocksKeepApart) {
  // A small block in each granule: none can be moved.
  std::vector<Block> large;
  for (int i = 0; i < 16; ++i) {
    large.push_back(allocator.allocate(2 * kMiB - 512, kStream));
    allocator.allocate(512, kStream);
  }
  for (const Block& block : large) allocator.free(block);
  const std::string apart = "Free memory lies in pieces that blocks on loan keep apart.";
  expect_error<OutOfMemoryError>([&] { allocator.allocate(4 * kMiB, kStream); }, apart);
  // All that is in pieces would just do; a request of more would not fit if they were one.
  const size_t pieces = 16 * (2 * kMiB - 512);
  expect_error<OutOfMemoryError>([&] { allocator.allocate(pieces, kStream); }, apart);
  std::string report;
  allocator.add_oom_observer([&](size_t, const std::string& text) { report = text; });
  EXPECT_THROW(allocator.allocate(pieces + 512, kStream), OutOfMemoryError);
  EXPECT_FALSE(report.empty());
  EXPECT_EQ(report.find(apart), std::string::npos) << report;
}

}  // namespace
}  // namespace lockstep
