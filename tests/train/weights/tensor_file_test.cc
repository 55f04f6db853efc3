#include "train/weights/tensor_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.h"
#include "core/ops/factory/factory.h"
#include "core/ops/view/view.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/expect_error.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

TEST(TensorFile, AViewIsWrittenWithoutTheRestOfItsStorage) {
  const TemporaryDirectory folder;
  const Tensor large = arange(0, 100000).to(DType::kF32).view({1000, 100});
  save_tensors(folder / "a", std::vector<nn::StoredParameter>{{"row", large.select(0, 7)}});
  EXPECT_LT(fs::file_size(folder / "a"), 1000u);
  const SafetensorsFile file(folder / "a");
  float first = 0;
  std::memcpy(&first, file.at("row").bytes.data(), sizeof(first));
  EXPECT_EQ(first, 700);
}

TEST(TensorFile, TiedTensorsAreStoredOnceAndTheSecondNameIsRecorded) {
  const TemporaryDirectory folder;
  const Tensor weight = ones({100, 100});
  save_tensors(folder / "a", std::vector<nn::StoredParameter>{{"wte.weight", weight},
                                                              {"lm_head.weight", weight}});
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.metadata().at("lm_head.weight"), "wte.weight");
}

TEST(TensorFile, DifferentViewsOfOneStorageAreBothStored) {
  const TemporaryDirectory folder;
  const Tensor both = arange(0, 6).view({2, 3});
  save_tensors(folder / "a",
               std::vector<nn::StoredParameter>{
                   {"a", both.select(0, 0)}, {"b", both.select(0, 1)}, {"t", both.t()}});
  EXPECT_EQ(SafetensorsFile(folder / "a").tensors().size(), 3u);
}

TEST(TensorFile, ATransposedTensorIsWrittenAsItsTranspose) {
  const TemporaryDirectory folder;
  const Tensor matrix = arange(0, 6).view({2, 3});
  save_tensors(folder / "a", std::vector<nn::StoredParameter>{{"w", matrix, true}});
  const SafetensorsFile file(folder / "a");
  EXPECT_EQ(file.at("w").shape, (std::vector<int64_t>{3, 2}));
  int64_t elements[6];
  std::memcpy(elements, file.at("w").bytes.data(), sizeof(elements));
  EXPECT_EQ(elements[1], 3);
}

TEST(TensorFile, LoadingFillsWhatSavingWrote) {
  const TemporaryDirectory folder;
  const Tensor a = arange(0, 10).to(DType::kF32);
  save_tensors(folder / "a", std::vector<nn::StoredParameter>{{"x", a}});
  const Tensor b = zeros({10});
  load_tensors(folder / "a", std::vector<nn::StoredParameter>{{"x", b}});
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.nbytes()), 0);
}

TEST(TensorFile, EveryMismatchIsListedAndNothingIsFilled) {
  const TemporaryDirectory folder;
  save_tensors(folder / "a", std::vector<nn::StoredParameter>{
                                 {"same", ones({2})}, {"shape", ones({3})}, {"extra", ones({1})}});
  const Tensor same = zeros({2});
  const std::string message = message_of<CheckpointError>([&] {
    load_tensors(folder / "a", std::vector<nn::StoredParameter>{
                                   {"same", same}, {"shape", zeros({4})}, {"absent", zeros({1})}});
  });
  EXPECT_TRUE(says(message, "missing absent"));
  EXPECT_TRUE(says(message, "unexpected extra"));
  EXPECT_TRUE(says(message, "shape: expected float32[4], got float32[3]"));
  EXPECT_EQ(same.data<float>()[0], 0);
}

TEST(TensorFile, TheDigestIsOfEachTensorHoweverTheyLieInThePiecesThatAreRead) {
  const TemporaryDirectory folder;
  const fs::path path = folder / "a.safetensors";
  const FileDigest written = save_tensors(
      path, std::vector<nn::StoredParameter>{{"a", arange(0, 3).to(DType::kF32)},
                                             {"b", arange(0, 700'000).to(DType::kF32)},
                                             {"c", zeros({0})},
                                             {"d", arange(0, 200'000).to(DType::kF64)},
                                             {"e", arange(0, 300'000).to(DType::kF32)}});
  EXPECT_EQ(digest_of(path), written);
  EXPECT_EQ(digest_of(SafetensorsFile(path)), written);
}

TEST(TensorFile, IsComparedWithTheDigestsThatWereReadAlready) {
  const TemporaryDirectory folder;
  const fs::path path = folder / "a.safetensors";
  const std::vector<nn::StoredParameter> tensors = {{"x", ones({3})}, {"y", ones({2})}};
  FileDigests written;
  FileDigest& digest = written["a.safetensors"] = save_tensors(path, tensors);
  load_tensors(path, tensors, &written);
  digest.tensors["y"].low ^= 1;
  expect_error<CheckpointError>([&] { load_tensors(path, tensors, &written); },
                                "tensor \"y\" is not what was written");
  digest.tensors.erase("y");
  digest.tensors["absent"] = {};
  expect_error<CheckpointError>([&] { load_tensors(path, tensors, &written); },
                                "tensor \"absent\" is not what was written");
}

TEST(TensorFile, EveryFlippedBitIsFoundByTheDigest) {
  const TemporaryDirectory folder;
  const fs::path path = folder / "a.safetensors";
  const FileDigest written =
      save_tensors(path, std::vector<nn::StoredParameter>{{"x", ones({3})}, {"y", zeros({2})}});
  EXPECT_EQ(written, digest_of(path));
  const std::string whole = file_content(path);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 1 << (byte % 8));
    put_file(path, damaged);
    EXPECT_THROW(check_digest(path, written, digest_of(path)), CheckpointError) << byte;
  }
}

}  // namespace
}  // namespace lockstep::train
