#include "train/weights/weight_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

TensorRecord bytes_record(std::string name, std::string_view bytes) {
  return {std::move(name),
          DType::kU8,
          {static_cast<int64_t>(bytes.size())},
          std::as_bytes(std::span(bytes))};
}

std::string text_of(const WeightEntry* entry) {
  if (entry == nullptr) return "(missing)";
  return {reinterpret_cast<const char*>(entry->tensor.bytes.data()), entry->tensor.bytes.size()};
}

/// A folder with the shards "one" (a, b) and "two" (c), and an index written by each test.
class ShardedFolder : public testing::Test {
 protected:
  ShardedFolder() {
    write_safetensors(folder_ / "one",
                      std::vector{bytes_record("a", "A"), bytes_record("b", "BB")});
    write_safetensors(folder_ / "two", std::vector{bytes_record("c", "CCC")});
  }
  void put_index(std::string_view text) const {
    put_file(folder_ / "model.safetensors.index.json", text);
  }
  std::string refusal(std::string_view index) const {
    put_index(index);
    return message_of<CheckpointError>([&] { WeightFiles files(folder_.path()); });
  }

  TemporaryDirectory folder_;
};

TEST(WeightFiles, OneFileIsRead) {
  const TemporaryDirectory folder;
  write_safetensors(folder / "w.safetensors", std::vector{bytes_record("a", "A")});
  const WeightFiles files(folder / "w.safetensors");
  EXPECT_EQ(text_of(files.find("a")), "A");
  EXPECT_EQ(files.find("a")->file, "w.safetensors");
  EXPECT_EQ(files.find("b"), nullptr);
  EXPECT_EQ(files.tensors().size(), 1U);
}

TEST_F(ShardedFolder, EveryTensorIsFoundInItsShard) {
  put_index(
      R"({"metadata": {"total_size": 6}, "weight_map": {"a": "one", "c": "two", "b": "one"}})");
  const WeightFiles files(folder_.path());
  ASSERT_EQ(files.tensors().size(), 3U);
  EXPECT_EQ(text_of(files.find("a")), "A");
  EXPECT_EQ(text_of(files.find("b")), "BB");
  EXPECT_EQ(text_of(files.find("c")), "CCC");
  EXPECT_EQ(files.find("b")->file, "one");
  EXPECT_EQ(files.find("c")->file, "two");
}

TEST_F(ShardedFolder, AWholeFileGoesBeforeTheIndex) {
  put_index("nonsense");
  write_safetensors(folder_ / "model.safetensors", std::vector{bytes_record("w", "W")});
  const WeightFiles files(folder_.path());
  EXPECT_EQ(files.tensors().size(), 1U);
  EXPECT_EQ(files.find("w")->file, "model.safetensors");
}

TEST_F(ShardedFolder, BytesStayReadableAfterTheObjectMoves) {
  put_index(R"({"weight_map": {"a": "one", "b": "one", "c": "two"}})");
  WeightFiles first(folder_.path());
  const WeightFiles second = std::move(first);
  EXPECT_EQ(text_of(second.find("c")), "CCC");
}

TEST_F(ShardedFolder, BadIndicesAreRefusedNamingFileAndTensor) {
  const struct {
    const char* index;
    std::vector<std::string_view> says;
  } cases[] = {
      {"", {"not valid JSON"}},
      {"{\"weight_map\": {\"a\": \"one\"", {"not valid JSON"}},
      {"[1]", {"\"weight_map\""}},
      {"{}", {"\"weight_map\""}},
      {R"({"weight_map": ["a"]})", {"\"weight_map\""}},
      {R"({"weight_map": {"a": 1}})", {"tensor \"a\"", "got 1"}},
      {R"({"weight_map": {"a": "one", "b": "one", "c": "gone"}})",
       {"\"c\" lies in gone", "missing"}},
      {R"({"weight_map": {"a": "one", "b": "one", "d": "two", "c": "two"}})",
       {"tensor \"d\" is not in two"}},
      {R"({"weight_map": {"a": "one", "c": "two"}})", {"one holds tensor \"b\""}},
      {R"({"weight_map": {"a": "one", "b": "two", "c": "two"}})", {"one holds tensor \"b\""}},
      {R"({"weight_map": {"a": "../one"}})", {"tensor \"a\" lies in \"../one\"", "beside"}},
      {R"({"weight_map": {"a": "/etc/passwd"}})", {"\"/etc/passwd\"", "beside"}},
      {R"({"weight_map": {"a": "sub/one"}})", {"beside"}},
      {R"({"weight_map": {"a": ".."}})", {"beside"}},
      {R"({"weight_map": {"a": ""}})", {"beside"}},
  };
  for (const auto& [index, parts] : cases) {
    const std::string message = refusal(index);
    EXPECT_TRUE(says(message, "model.safetensors.index.json"));
    for (const std::string_view part : parts) EXPECT_TRUE(says(message, part));
  }
}

TEST_F(ShardedFolder, ADeeplyNestedIndexIsRefused) {
  const std::string message = refusal(std::string(1'000'000, '['));
  EXPECT_TRUE(says(message, "model.safetensors.index.json"));
  EXPECT_TRUE(says(message, "nested deeper than 64"));
}

TEST_F(ShardedFolder, ADamagedShardIsNamed) {
  put_file(folder_ / "two", "xx");
  EXPECT_TRUE(says(refusal(R"({"weight_map": {"a": "one", "b": "one", "c": "two"}})"), "/two: "));
}

TEST(WeightFiles, FifosAreRefusedAndNotWaitedFor) {
  const TemporaryDirectory folder;
  const auto open = [](const std::filesystem::path& path) {
    return message_of<CheckpointError>([&] { WeightFiles files(path); });
  };
  const std::string index = folder / "model.safetensors.index.json";
  ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
  EXPECT_TRUE(says(open(folder.path()), index + ": it is not a regular file but a FIFO"));
  const std::string weights = folder / "model.safetensors";
  ASSERT_EQ(::mkfifo(weights.c_str(), 0600), 0);
  EXPECT_TRUE(says(open(folder.path()), weights + ": it is not a regular file but a FIFO"));
}

TEST(WeightFiles, PathsWithoutWeightsAreRefused) {
  const TemporaryDirectory folder;
  const auto open = [](const std::filesystem::path& path) {
    return message_of<CheckpointError>([&] { WeightFiles files(path); });
  };
  EXPECT_TRUE(says(open(folder.path()), "model.safetensors or model.safetensors.index.json"));
  EXPECT_TRUE(says(open(folder / "gone"), "gone: No such file"));
  put_file(folder / "text", "hello, this is no safetensors file");
  EXPECT_TRUE(says(open(folder / "text"), "Is this a safetensors file?"));
}

}  // namespace
}  // namespace lockstep::train
