#include "train/weights/gguf_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/core/base/temporary_directory.h"
#include "tests/train/tiny_models.h"

namespace lockstep::train {
namespace {

/// The number of tensors that a GGUF file announces.
uint64_t tensors_in(const std::string& file) {
  uint64_t count = 0;
  std::memcpy(&count, file.data() + 8, sizeof(count));
  return count;
}

/// Bytes of the weights with matrices in a dtype of `matrix_bytes` and vectors in 32 bits.
size_t weight_bytes(const nn::Module& model, size_t matrix_bytes) {
  size_t bytes = 0;
  for (const nn::StoredParameter& each : model.stored_parameters()) {
    bytes += static_cast<size_t>(each.tensor.numel()) * (each.tensor.dim() > 1 ? matrix_bytes : 4);
  }
  return bytes;
}

template <class Model>
void expect_all_weights(const Model& model, const std::vector<std::string>& names) {
  const TemporaryDirectory folder;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    save_gguf(model, nullptr, folder / "model.gguf", dtype, "tiny");
    const std::string file = file_content(folder / "model.gguf");
    EXPECT_EQ(tensors_in(file), model.stored_parameters().size());
    for (const std::string& name : names) EXPECT_NE(file.find(name), file.npos) << name;
    // Each tensor begins at a multiple of 32 bytes; names and metadata take a few kilobytes.
    const size_t weights = weight_bytes(model, size_of(dtype));
    EXPECT_GE(file.size(), weights);
    EXPECT_LT(file.size(), weights + 32 * model.stored_parameters().size() + 4096);
  }
}

TEST(GgufModel, HoldsAllWeightsOfAGpt2) {
  const nn::Gpt2 model(tiny_gpt2(2));
  expect_all_weights(model, {"token_embd.weight", "position_embd.weight", "blk.0.attn_qkv.weight",
                             "blk.1.ffn_down.bias", "output_norm.bias"});
}

TEST(GgufModel, HoldsAllWeightsOfALlama) {
  const nn::Llama model(tiny_llama());
  expect_all_weights(model, {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_k.weight",
                             "blk.0.attn_v.weight", "blk.0.ffn_gate.weight", "output_norm.weight",
                             "output.weight"});
}

}  // namespace
}  // namespace lockstep::train
