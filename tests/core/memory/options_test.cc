#include "core/memory/options.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
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
  expect_refused("max_split_size_mb:-0.5", "\"-0.5\"");
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
  expect_refused("roundup_power2_divisions:x256:1]", "\"x256:1]\"");
  expect_refused("roundup_power2_divisions:4]", "\"4]\"");
  expect_refused("roundup_power2_divisions:]", "\"]\"");
}

TEST(AllocatorOptions, UnknownKeysAreRefusedWithASuggestion) {
  expect_refused("max_splt_size_mb:64", "unknown key \"max_splt_size_mb\"",
                 "Did you mean \"max_split_size_mb\"?", "stream_reuse");
  expect_refused("release_lock_on_hipmalloc:True", "unknown key");
  expect_refused("expandable_segments", "has no value", "key:value");
  expect_refused(",", "has no value");
}

TEST(AllocatorOptions, TheDefaultsAreWritten) {
  EXPECT_EQ(to_string(AllocatorOptions()),
            "expandable_segments:True,max_split_size_mb:unlimited,roundup_power2_divisions:0,"
            "garbage_collection_threshold:0,per_process_memory_fraction:1,large_segment_size_mb:20,"
            "stream_reuse:wait,reserve_ratio:1.02,record_call_sites:False");
  EXPECT_EQ(allocator_option_text({}, "large_segment_size_mb"), "20");
  EXPECT_EQ(allocator_option_text({}, "backend"), "native");
  AllocatorOptions options;
  options.roundup_power2_divisions = {0};
  EXPECT_EQ(allocator_option_text(options, "roundup_power2_divisions"), "[>:0]");
  options.roundup_power2_divisions = {4};
  EXPECT_EQ(allocator_option_text(options, "roundup_power2_divisions"), "4");
}

TEST(AllocatorOptions, CudaBeginsWithMoreMemoryToSpare) {
  const AllocatorOptions on_cuda = default_allocator_options(DeviceType::kCUDA);
  AllocatorOptions expected;
  expected.reserve_ratio = 1.15;
  EXPECT_EQ(on_cuda, expected);
  EXPECT_NO_THROW(check_allocator_options(on_cuda, "test"));
  for (const DeviceType type : {DeviceType::kCPU, DeviceType::kHost, DeviceType::kMeta}) {
    EXPECT_EQ(default_allocator_options(type), AllocatorOptions());
  }
}

TEST(AllocatorOptions, TheEndsOfEachRangeAreAllowedAndNothingBeyond) {
  const std::string most_divisions = [] {
    std::string list;
    for (int i = 0; i <= 16; ++i) list += std::to_string(1 << i) + ":2,";
    return list;
  }();
  for (const std::string text :
       {"large_segment_size_mb:2", "large_segment_size_mb:65536", "reserve_ratio:1",
        "reserve_ratio:16", "garbage_collection_threshold:0", "garbage_collection_threshold:0.99",
        "per_process_memory_fraction:1", "per_process_memory_fraction:0.01", "max_split_size_mb:20",
        "max_split_size_mb:8796093022207", "roundup_power2_divisions:1024",
        "roundup_power2_divisions:1", "roundup_power2_divisions:[>:1]",
        "roundup_power2_divisions:[1:1,2:0]"}) {
    EXPECT_NO_THROW(options_of(text)) << text;
  }
  EXPECT_EQ(options_of("roundup_power2_divisions:[" + most_divisions + ">:4]")
                .roundup_power2_divisions.size(),
            18u);
  EXPECT_EQ(options_of("max_split_size_mb:8796093022207").max_split_size, (size_t{1} << 63) - kMiB);
  const std::string fraction = "a fraction of the device's memory above 0, at most 1.";
  const std::string divisions =
      "expected a power of two up to 1024 or 0, or a list such as [256:1,512:2,>:4] whose sizes "
      "are rising powers of two of MiB, up to 65536.";
  const std::string split = "expected MiB, not below large_segment_size_mb, or \"unlimited\".";
  for (const auto& [text, allowed] : std::vector<std::pair<std::string, std::string>>{
           {"large_segment_size_mb:1.99", "expected MiB, at least 2 and at most 65536."},
           {"large_segment_size_mb:65536.5", "expected MiB, at least 2 and at most 65536."},
           {"reserve_ratio:0.99", "expected a number from 1 to 16."},
           {"reserve_ratio:16.5", "expected a number from 1 to 16."},
           {"reserve_ratio:x", "expected a number from 1 to 16."},
           {"garbage_collection_threshold:-0.1", "a fraction of the budget below 1; 0 is off."},
           {"garbage_collection_threshold:1", "a fraction of the budget below 1; 0 is off."},
           {"per_process_memory_fraction:0", fraction},
           {"per_process_memory_fraction:1.01", fraction},
           {"max_split_size_mb:19.9", split},
           {"max_split_size_mb:8796093022208", split},
           {"stream_reuse:never", "expected wait or poll."},
           {"record_call_sites:1", "expected True or False."},
           {"expandable_segments:FALSE", "expected True or False."},
           {"backend:other", "expected native, the only one."},
           {"roundup_power2_divisions:2048", divisions},
           {"roundup_power2_divisions:-1", divisions},
           {"roundup_power2_divisions:x", divisions},
           {"roundup_power2_divisions:[", divisions},
           {"roundup_power2_divisions:[]", divisions},
           {"roundup_power2_divisions:[256]", divisions},
           {"roundup_power2_divisions:[256:x]", divisions},
           {"roundup_power2_divisions:[x:2]", divisions},
           {"roundup_power2_divisions:[3:2]", divisions},
           {"roundup_power2_divisions:[256:2,256:4]", divisions},
           {"roundup_power2_divisions:[>:2,>:4]", divisions},
           {"roundup_power2_divisions:[" + most_divisions + "131072:2]", divisions}}) {
    expect_refused(text, allowed);
  }
}

TEST(AllocatorOptions, EachKeyThatIsIgnoredTakesItsKindOfValue) {
  for (const char* key : {"release_lock_on_cudamalloc", "throw_on_cudamalloc_oom",
                          "graph_capture_record_stream_reuse", "pinned_use_cuda_host_register",
                          "pinned_use_background_threads", "pinned_free_catch_all"}) {
    for (const char* value : {"True", "False", "true", "false"}) {
      EXPECT_EQ(options_of(std::string(key) + ":" + value), AllocatorOptions());
    }
    expect_refused(std::string(key) + ":2", key, "True or False");
  }
  for (const char* key : {"max_non_split_rounding_mb", "pinned_num_register_threads",
                          "pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb",
                          "pinned_max_cached_size_mb"}) {
    EXPECT_EQ(options_of(std::string(key) + ":0"), AllocatorOptions());
    expect_refused(std::string(key) + ":x", key, "a whole number");
  }
}

TEST(AllocatorOptions, AListMayBeFollowedByAnotherKey) {
  const AllocatorOptions options =
      options_of("roundup_power2_divisions:[256:1,>:4],stream_reuse:poll,large_segment_size_mb:4");
  EXPECT_EQ(options.roundup_power2_divisions.size(), 10u);
  EXPECT_EQ(options.stream_reuse, StreamReuse::kPoll);
  EXPECT_EQ(options.large_segment_size, 4 * kMiB);
  EXPECT_EQ(options_of("stream_reuse:poll,stream_reuse:wait").stream_reuse, StreamReuse::kWait);
}

TEST(AllocatorOptions, TheFirstVariableThatIsSetIsReadOnce) {
  // The environment is read once, in a process of its own.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto size_with = [](const std::vector<std::string>& variables) {
    for (const std::string& name : variables) {
      ::setenv(name.c_str(), ("large_segment_size_mb:" + std::to_string(name.size())).c_str(), 1);
    }
    return allocator_options_from_environment(kCPU.type).large_segment_size / kMiB;
  };
  const std::string own = "LOCKSTEP_ALLOC_CONF", cuda = "PYTORCH_CUDA_ALLOC_CONF",
                    general = "PYTORCH_ALLOC_CONF";
  EXPECT_EXIT(
      {
        const bool right = size_with({own, cuda, general}) == own.size();
        ::setenv(own.c_str(), "large_segment_size_mb:2", 1);
        _exit(right && size_with({}) == own.size() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(size_with({cuda, general}) == cuda.size() ? 0 : 1), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(_exit(size_with({general}) == general.size() ? 0 : 1), testing::ExitedWithCode(0),
              "");
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
