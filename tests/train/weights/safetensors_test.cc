#include "train/weights/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <set>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

/// A whole file: length, header, and `data_bytes` bytes of data.
std::string file_with(std::string_view header, size_t data_bytes = 0) {
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file.append(header).append(data_bytes, 'd');
}

SafetensorsContent parse(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "model.safetensors");
}

std::string refusal(const std::string& file) {
  return message_of<CheckpointError>([&] { parse(file); });
}

TensorRecord record(std::string name, DType dtype, std::vector<int64_t> shape,
                    std::string_view bytes) {
  return {std::move(name), dtype, std::move(shape), std::as_bytes(std::span(bytes))};
}

std::string text_of(const TensorRecord& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

constexpr std::string_view kTwo =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[3],)"
    R"("data_offsets":[8,11]}})";

TEST(Safetensors, WritesTheReferenceLayout) {
  const TemporaryDirectory folder;
  write_safetensors(folder / "m", std::vector{record("z", DType::kF32, {1}, "zzzz"),
                                              record("b", DType::kBool, {}, "b"),
                                              record("a", DType::kF32, {1, 1}, "aaaa"),
                                              record("i", DType::kI64, {1}, "iiiiiiii")});
  std::string header =
      R"({"__metadata__":{"format":"pt"},"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},)"
      R"("z":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},)"
      R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[16,17]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(file_content(folder / "m"), file_with(header) + "iiiiiiiiaaaazzzzb");
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const TemporaryDirectory folder;
  const bool holds = rc::check([&] {
    std::vector<std::string> storage;
    std::vector<TensorRecord> tensors;
    // Names have at most 8 characters, so none is the reserved "__metadata__".
    const auto names = *rc::gen::container<std::set<std::string>>(
        rc::gen::map(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)),
                     [](const std::string& s) { return s.substr(0, 8); }));
    storage.reserve(names.size());
    for (const std::string& name : names) {
      const auto dtype = static_cast<DType>(*rc::gen::inRange(0, kDTypeCount));
      const auto shape = *rc::gen::resize(
          4, rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 4)));
      size_t bytes = size_of(dtype);
      for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
      storage.push_back(*rc::gen::container<std::string>(bytes, rc::gen::arbitrary<char>()));
      tensors.push_back(record(name, dtype, shape, storage.back()));
    }
    write_safetensors(folder / "m", tensors, {{"step", "12"}});

    const SafetensorsFile file(folder / "m");
    RC_ASSERT(file.metadata() ==
              (std::map<std::string, std::string>{{"format", "pt"}, {"step", "12"}}));
    RC_ASSERT(file.tensors().size() == tensors.size());
    for (const TensorRecord& want : tensors) {
      const TensorRecord& got = file.at(want.name);
      RC_ASSERT(got.dtype == want.dtype);
      RC_ASSERT(got.shape == want.shape);
      RC_ASSERT(text_of(got) == text_of(want));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(Safetensors, EveryFlipAndEveryTruncationIsRefusedOrWellFormed) {
  const std::string good = file_with(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b\u00e9":{"dtype":"BF16","shape":[1,3],"data_offsets":[8,14]},"e":{"dtype":"U8",)"
      R"("shape":[0],"data_offsets":[14,14]}} )",
      14);
  ASSERT_EQ(parse(good).tensors.size(), 3u);
  const auto check = [](const std::string& file) {
    try {
      size_t bytes = 0;
      for (const TensorRecord& tensor : parse(file).tensors) {
        size_t expected = size_of(tensor.dtype);
        for (const int64_t size : tensor.shape) expected *= static_cast<size_t>(size);
        EXPECT_EQ(tensor.bytes.size(), expected);
        bytes += expected;
      }
      EXPECT_LE(bytes, file.size());
      return true;
    } catch (const CheckpointError&) {
      return false;
    }
  };
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(check(good.substr(0, length))) << length;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      check(flipped);
    }
  }
  const bool holds = rc::check("random bytes in place of any part", [&] {
    std::string mutated = good;
    const auto at = *rc::gen::inRange<size_t>(0, good.size());
    const auto length = *rc::gen::inRange<size_t>(0, 12);
    mutated.replace(at, length, *rc::gen::arbitrary<std::string>());
    check(mutated);
  });
  EXPECT_TRUE(holds);
}

TEST(Safetensors, ScalarsEmptyTensorsAndEmptyFilesAreLegal) {
  EXPECT_TRUE(parse(file_with("{}")).tensors.empty());
  EXPECT_TRUE(parse(file_with(R"({"__metadata__":{}}  )")).metadata.empty());
  const auto content = parse(file_with(
      R"({"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[3,0],)"
      R"("data_offsets":[8,8]}})",
      8));
  ASSERT_EQ(content.tensors.size(), 2u);
  EXPECT_TRUE(content.tensors[0].shape.empty());
  EXPECT_EQ(content.tensors[0].bytes.size(), 8u);
  EXPECT_TRUE(content.tensors[1].bytes.empty());
}

TEST(Safetensors, MalformedFilesAreRefusedByCause) {
  EXPECT_EQ(parse(file_with(kTwo, 11)).tensors.size(), 2u);
  const auto one = [](std::string_view entry, size_t bytes) {
    return file_with(std::string(R"({"w":)") + std::string(entry) + "}", bytes);
  };
  const auto with_length = [](uint64_t length) {
    std::string file = file_with("{}");
    std::memcpy(file.data(), &length, sizeof(length));
    return file;
  };
  const struct {
    std::string file;
    std::string_view says;
  } cases[] = {
      {"", "0 bytes are too few"},
      {"1234567", "7 bytes are too few"},
      {with_length(100'000'001), "expected at most 100000000"},
      {with_length(~uint64_t{0}), "expected at most 100000000"},
      {with_length(3), "truncated"},
      {file_with(""), "does not start with"},
      {file_with(" {}"), "does not start with"},
      {file_with("\xEF\xBB\xBF{}"), "does not start with"},
      {file_with(std::string_view("{}\0\0", 4)), "NUL"},
      {file_with("{} x"), "not valid JSON"},
      {file_with("{\"w\":" + std::string(1'000'000, '[')), "\"w\" holds an array"},
      {file_with("{\"a"), "not valid JSON"},
      {file_with("{\"\xff\":1}"), "not valid JSON"},
      {file_with(R"({"w":1})"), "\"w\" holds a number"},
      {file_with(R"({"w":[]})"), "\"w\" holds an array"},
      {file_with(R"({"w":null})"), "\"w\" holds null"},
      {file_with(R"({"__metadata__":{"a":1}})"), "holds a number"},
      {file_with(R"({"__metadata__":{"a":{}}})"), "holds an object"},
      {file_with(R"({"__metadata__":{"a":"","a":""}})"), "\"a\" of __metadata__ stands twice"},
      {file_with(R"({"__metadata__":{},"__metadata__":{}})"), "stands twice"},
      {file_with(kTwo, 10), "tensor \"b\" ends at byte 11"},
      {file_with(kTwo, 12), "1 bytes follow the last tensor"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],)"
           R"("data_offsets":[4,8]})",
           8),
       "\"w\" stands twice"},
      {one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4),
       "two members dtype"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})", 4), "unknown member \"x\""},
      {one(R"({"dtype":"F32","shape":[1]})", 4), "tensor \"w\" has no data_offsets"},
      {one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})", 4), "dtype \"F31\""},
      {one(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})", 4), "holds a number"},
      {one(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", 4), "holds a number"},
      {one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4), "negative number"},
      {one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4), "no integer"},
      {one(R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})", 4), "holds an array"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", 4), "3 data_offsets"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4), "\"w\" lies at bytes 4 to 0"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8), "holes"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
       "4 bytes where its shape needs 8"},
      {one(R"({"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]})", 4),
       "too large"},
      {one(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]})", 4),
       "too large"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]},"v":{"dtype":"F32","shape":[1],)"
           R"("data_offsets":[2,6]})",
           6),
       "\"v\" lies at bytes 2 to 6 where the next free byte is 4"},
      {file_with(std::string(R"({"w":{"dtype":"F32","shape":)") + std::string(100000, '[')),
       "holds an array"},
  };
  for (const auto& [file, part] : cases) {
    const std::string message = refusal(file);
    EXPECT_TRUE(says(message, part));
    EXPECT_TRUE(says(message, "[safetensors] model.safetensors: "));
  }
}

TEST(Safetensors, TheWriterRefusesWhatNoReaderWouldTake) {
  const TemporaryDirectory folder;
  const auto refused = [&](std::vector<TensorRecord> tensors) {
    return message_of<CheckpointError>([&] { write_safetensors(folder / "m", tensors); });
  };
  const TensorRecord good = record("w", DType::kF32, {1}, "abcd");
  EXPECT_TRUE(says(refused({good, good}), "\"w\" is reserved or used twice"));
  EXPECT_TRUE(says(refused({record("__metadata__", DType::kI8, {1}, "a")}), "reserved"));
  EXPECT_TRUE(says(refused({record("w", DType::kF32, {2}, "abcd")}),
                   "\"w\" has 4 bytes where its shape needs 8"));
  EXPECT_TRUE(says(refused({record("w", DType::kI8, {-1}, "")}), "the size -1"));
  EXPECT_TRUE(says(refused({record("\xff", DType::kI8, {1}, "a")}), "not UTF-8"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, FilesThatCannotBeReadOrWrittenAreNamed) {
  const TemporaryDirectory folder;
  const auto open = [](const std::filesystem::path& path) {
    return message_of<CheckpointError>([&] { SafetensorsFile file(path); });
  };
  EXPECT_TRUE(says(open(folder / "gone"), "gone: No such file or directory"));
  EXPECT_TRUE(says(open(folder.path()), "Is a directory"));
  put_file(folder / "empty", "");
  EXPECT_TRUE(says(open(folder / "empty"), "0 bytes are too few"));
  EXPECT_TRUE(
      says(message_of<CheckpointError>([&] { write_safetensors(folder / "no/m.safetensors", {}); }),
           "No such file or directory"));
  write_safetensors(folder / "m", {});
  EXPECT_TRUE(says(message_of<CheckpointError>([&] { SafetensorsFile(folder / "m").at("w"); }),
                   "no tensor \"w\""));
}

// Our writer reproduces files of the reference implementation byte for byte.
TEST(Safetensors, RewritingAReferenceFileChangesNothing) {
  const std::filesystem::path parity = LOCKSTEP_SOURCE_DIR "/../shared/parity";
  if (!std::filesystem::exists(parity)) GTEST_SKIP() << "no reference files here";
  const TemporaryDirectory folder;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(parity)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(entry.path());
    write_safetensors(folder / "copy", file.tensors());
    EXPECT_EQ(file_content(folder / "copy"), file_content(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace lockstep::train
