#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "nn/models/gpt2.h"
#include "nn/models/llama.h"
#include "train/weights/safetensors.h"

namespace lockstep::train {

/// Models of a few hundred parameters, for tests of weight files.
inline nn::Gpt2Options tiny_gpt2(int64_t layers = 2) {
  nn::Gpt2Options options;
  options.vocabulary = 11;
  options.context_length = 8;
  options.layers = layers;
  options.heads = 2;
  options.width = 6;
  return options;
}

inline nn::LlamaOptions tiny_llama(bool tied = false) {
  nn::LlamaOptions options;
  options.vocabulary = 11;
  options.context_length = 8;
  options.layers = 1;
  options.heads = 2;
  options.kv_heads = 1;
  options.width = 8;
  options.hidden_width = 12;
  options.tie_embeddings = tied;
  return options;
}

/// Whether both models' parameters have the same bits.
inline bool same_parameters(const nn::Module& a, const nn::Module& b) {
  const std::vector<Tensor> of_a = a.parameters();
  const std::vector<Tensor> of_b = b.parameters();
  if (of_a.size() != of_b.size()) return false;
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i].dtype() != of_b[i].dtype() || of_a[i].shape() != of_b[i].shape()) return false;
    if (std::memcmp(of_a[i].data(), of_b[i].data(), of_a[i].nbytes()) != 0) return false;
  }
  return true;
}

/// Owns tensors to be written to a file, with their bytes.
class OwnedTensors {
 public:
  /// The tensors of a file of `model`, with names changed by `rename`.
  template <class Rename>
  OwnedTensors(const nn::Module& model, Rename rename) {
    for (const nn::StoredParameter& parameter : model.stored_parameters()) {
      const Tensor tensor =
          (parameter.transposed ? parameter.tensor.detach().t() : parameter.tensor.detach())
              .contiguous();
      add(rename(parameter.name), tensor);
    }
  }
  explicit OwnedTensors(const nn::Module& model)
      : OwnedTensors(model, [](const std::string& name) { return name; }) {}

  void add(const std::string& name, const Tensor& tensor) {
    kept_.push_back(tensor);
    TensorRecord record{name, tensor.dtype(), {}, {}};
    record.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
    record.bytes = {static_cast<const std::byte*>(tensor.data()), tensor.nbytes()};
    records_.push_back(std::move(record));
  }
  void erase(const std::string& name) {
    std::erase_if(records_, [&](const TensorRecord& record) { return record.name == name; });
  }
  /// The tensor with that name; undefined if absent.
  Tensor at(const std::string& name) const {
    for (size_t i = 0; i < records_.size(); ++i) {
      for (const Tensor& tensor : kept_) {
        if (records_[i].name == name && tensor.data() == records_[i].bytes.data()) return tensor;
      }
    }
    return {};
  }
  const std::vector<TensorRecord>& records() const { return records_; }

 private:
  std::vector<Tensor> kept_;
  std::vector<TensorRecord> records_;
};

}  // namespace lockstep::train
