#include "core/memory/options.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/memory/units.h"
#include "tests/core/expect_error.h"

namespace lockstep {
namespace {

AllocatorOptions options_of(const std::string& text) {
  return parse_allocator_options(text, "test");
}

template <class... Parts>
void expect_refused(const std::string& text, const Parts&... parts) {
  SCOPED_TRACE(text);
  expect_error<ConfigError>([&] { options_of(text); }, "[allocator] test: ", parts...);
}

TEST(AllocatorOptions, EmptyTextKeepsTheDefaults) {
  EXPECT_EQ(options_of(""), AllocatorOptions());
  AllocatorOptions defaults;
  defaults.reserve_ratio = 2;
  EXPECT_EQ(parse_allocator_options(" ", "test", defaults), defaults);
}

TEST(AllocatorOptions, EveryKeyIsRead) {
  const AllocatorOptions options = options_of(
      "expandable_segments:False,max_split_size_mb:128,roundup_power2_divisions:4,"
      "garbage_collection_threshold:0.6,per_process_memory_fraction:0.5,large_segment_size_mb:32,"
      "stream_reuse:poll,reserve_ratio:1.25,record_call_sites:True,backend:native");
  AllocatorOptions expected;
  expected.expandable_segments = false;
  expected.max_split_size = 128 * kMiB;
  expected.roundup_power2_divisions = {4};
  expected.garbage_collection_threshold = 0.6;
  expected.per_process_memory_fraction = 0.5;
  expected.large_segment_size = 32 * kMiB;
  expected.stream_reuse = StreamReuse::kPoll;
  expected.reserve_ratio = 1.25;
  expected.record_call_sites = true;
  EXPECT_EQ(options, expected);
}

TEST(AllocatorOptions, SpacesAndATrailingCommaMeanNothing) {
  EXPECT_EQ(options_of(" max_split_size_mb : 64 , expandable_segments: False ,").max_split_size,
            64 * kMiB);
}

TEST(AllocatorOptions, TheLaterOfTwoEqualKeysWins) {
  EXPECT_EQ(options_of("max_split_size_mb:64,max_split_size_mb:32").max_split_size, 32 * kMiB);
}

TEST(AllocatorOptions, ADivisionListNamesTheEndsOfSizeClasses) {
  // 1 below 256 MiB, 2 from there to 512 MiB, 4 above.
  const std::vector<int> expected = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4};
  EXPECT_EQ(options_of("roundup_power2_divisions:[256:1,512:2,>:4]").roundup_power2_divisions,
            expected);
  EXPECT_EQ(options_of("roundup_power2_divisions:[2:8]").roundup_power2_divisions,
            (std::vector<int>{8, 8, 0}))
      << "what is larger than the last class is not rounded";
  EXPECT_EQ(options_of("roundup_power2_divisions:0").roundup_power2_divisions, std::vector<int>());
}

TEST(AllocatorOptions, KeysThatOnlyPyTorchNeedsAreCheckedAndHaveNoEffect) {
  EXPECT_EQ(options_of("release_lock_on_cudamalloc:True,pinned_use_background_threads:False,"
                       "pinned_num_register_threads:8,graph_capture_record_stream_reuse:True"),
            AllocatorOptions());
  expect_refused("pinned_use_background_threads:7", "pinned_use_background_threads", "\"7\"",
                 "True or False");
}

TEST(AllocatorOptions, ErrorsNameSourceKeyValueAndWhatIsAllowed) {
  expect_refused("max_split_size_mb:abc", "max_split_size_mb cannot be \"abc\"", "expected MiB");
  expect_refused("max_split_size_mb:", "cannot be \"\"");
  expect_refused("max_split_size_mb:12", "max_split_size_mb cannot be \"12\"",
                 "not below large_segment_size_mb");
  expect_refused("max_split_size_mb:-30", "\"-30\"");
  expect_refused("garbage_collection_threshold:1", "below 1");
  expect_refused("garbage_collection_threshold:nan", "below 1");
  expect_refused("per_process_memory_fraction:0", "above 0");
  expect_refused("per_process_memory_fraction:1e400", "\"1e400\"");
  expect_refused("large_segment_size_mb:1", "at least 2");
  expect_refused("stream_reuse:sometimes", "wait or poll");
  expect_refused("expandable_segments:yes", "\"yes\"", "True or False");
  expect_refused("backend:cudaMallocAsync", "backend cannot be \"cudaMallocAsync\"", "native");
  expect_refused("roundup_power2_divisions:3", "a power of two");
  expect_refused("roundup_power2_divisions:[256:3]", "a power of two");
  expect_refused("roundup_power2_divisions:[512:2,256:1]", "rising");
  expect_refused("roundup_power2_divisions:[>:2,256:1]", "rising");
  expect_refused("roundup_power2_divisions:[131072:2]", "65536");
  expect_refused("roundup_power2_divisions:[]", "\"[]\"");
  expect_refused("roundup_power2_divisions:[256:1", "\"[256:1\"");
}

TEST(AllocatorOptions, UnknownKeysAreRefusedWithASuggestion) {
  expect_refused("max_splt_size_mb:64", "unknown key \"max_splt_size_mb\"",
                 "Did you mean \"max_split_size_mb\"?", "stream_reuse");
  expect_refused("release_lock_on_hipmalloc:True", "unknown key");
  expect_refused("expandable_segments", "has no value", "key:value");
  expect_refused(",", "has no value");
}

TEST(AllocatorOptions, ValuesThatCodeSetsAreCheckedAlike) {
  AllocatorOptions options;
  check_allocator_options(options, "test");
  options.per_process_memory_fraction = 1.5;
  expect_error<ConfigError>([&] { check_allocator_options(options, "set_options"); },
                            "set_options: per_process_memory_fraction cannot be \"1.5\"");
}

AllocatorOptions any_options() {
  AllocatorOptions options;
  options.expandable_segments = *rc::gen::arbitrary<bool>();
  options.large_segment_size = *rc::gen::inRange<size_t>(2 * kMiB, 100 * kMiB);
  if (*rc::gen::arbitrary<bool>()) {
    options.max_split_size = *rc::gen::inRange<size_t>(options.large_segment_size, size_t{1} << 50);
  }
  options.roundup_power2_divisions =
      *rc::gen::container<std::vector<int>>(rc::gen::element(0, 1, 2, 4, 8, 1024));
  options.roundup_power2_divisions.resize(
      std::min<size_t>(18, options.roundup_power2_divisions.size()));
  options.garbage_collection_threshold = *rc::gen::inRange(0, 1'000'000) / 1e6;
  options.per_process_memory_fraction = *rc::gen::inRange(1, 1'000'001) / 1e6;
  options.stream_reuse = *rc::gen::element(StreamReuse::kWait, StreamReuse::kPoll);
  options.reserve_ratio = 1 + *rc::gen::inRange(0, 1000) / 99.0;
  options.record_call_sites = *rc::gen::arbitrary<bool>();
  return options;
}

RC_GTEST_PROP(AllocatorOptions, TextOfOptionsReadsBackToTheSame, ()) {
  const AllocatorOptions options = any_options();
  RC_ASSERT(options_of(to_string(options)) == options);
  AllocatorOptions others = any_options();
  RC_ASSERT(parse_allocator_options(to_string(options), "test", others) == options);
}

}  // namespace
}  // namespace lockstep
